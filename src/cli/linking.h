/*
 * Putting a kernel and what it needs together, for the commands that link: the files, what they are, and their options.
 */
#ifndef ITS_CLI_LINKING_H
#define ITS_CLI_LINKING_H

#include "cli/compile.h"
#include "intarsia/link.h"

/* The first field of the structure of a command that has CLI_LINK_OPTIONS. */
typedef struct cli_link_args {
    cli_compile_args compile;
    cli_list libraries, deferred;
    bool no_inline, strip_prints, trap_asserts, keep_externs, limit_waits, own_window;
    cli_number budget;
    const char *barrier_map;
    uint32_t ptx_major, ptx_minor; /* no option: the newest PTX that the assembler takes; 0: no limit */
} cli_link_args;

#define CLI_LINK_OPTIONS                                                                                       \
    {'l',                                                                                                      \
     "library",                                                                                                \
     "FILE",                                                                                                   \
     CLI_LIST,                                                                                                 \
     offsetof(cli_link_args, libraries),                                                                       \
     "take definitions of externs from this file"},                                                            \
        {0, "no-inline", NULL, CLI_FLAG, offsetof(cli_link_args, no_inline), "leave every call a call"},       \
        {0,                                                                                                    \
         "budget",                                                                                             \
         "N",                                                                                                  \
         CLI_COUNT,                                                                                            \
         offsetof(cli_link_args, budget),                                                                      \
         "don't inline a function of more than N instructions that\nis called more than once (default 2000)"}, \
        {0, "strip-prints", NULL, CLI_FLAG, offsetof(cli_link_args, strip_prints), "remove calls of printf"},  \
        {0,                                                                                                    \
         "trap-asserts",                                                                                       \
         NULL,                                                                                                 \
         CLI_FLAG,                                                                                             \
         offsetof(cli_link_args, trap_asserts),                                                                \
         "let a failed assert trap instead of printing"},                                                      \
        {0,                                                                                                    \
         "keep-externs",                                                                                       \
         NULL,                                                                                                 \
         CLI_FLAG,                                                                                             \
         offsetof(cli_link_args, keep_externs),                                                                \
         "leave externs that nobody provides open"},                                                           \
        {0,                                                                                                    \
         "defer",                                                                                              \
         "PREFIX",                                                                                             \
         CLI_LIST,                                                                                             \
         offsetof(cli_link_args, deferred),                                                                    \
         "the same, only for names that start with PREFIX"},                                                   \
        {0,                                                                                                    \
         "limit-waits",                                                                                        \
         NULL,                                                                                                 \
         CLI_FLAG,                                                                                             \
         offsetof(cli_link_args, limit_waits),                                                                 \
         "let loops that wait for memory trap past a time limit,\nwhich the host sets (docs/linking.md)"},     \
        {0,                                                                                                    \
         "own-window",                                                                                         \
         NULL,                                                                                                 \
         CLI_FLAG,                                                                                             \
         offsetof(cli_link_args, own_window),                                                                  \
         "refuse regions with dynamic shared memory: it is all the\nkernel's own, as in Triton's kernels"},    \
    {                                                                                                          \
        0, "barrier-map", "MAP", CLI_TEXT, offsetof(cli_link_args, barrier_map),                               \
            "barriers of regions made for a warp partition: 0=id:count"                                        \
    }

/* What was opened, to be closed with cli_linking_close. */
typedef struct cli_linking {
    cli_app *app;
    const cli_link_args *args;
    const char *arch; /* what device files are compiled for */
    its_module *main;
    ITS_VEC(its_module *) modules; /* all others */
    ITS_VEC(its_link_region) regions;
    ITS_VEC(its_module *) libraries;
    cli_list own_barriers; /* units whose barriers are the built-in ones */
    its_linked *linked;
} cli_linking;

/*
 * Opens `main` and the region files, and links them. A file that ends in .ptx (or is "-") is parsed, any other
 * compiled. A region file may be given as UNIT=FILE; a lone one stands for every unit that `main` calls. If `main`
 * calls none, the files only provide definitions. `add` (may be NULL) is asked for further libraries before linking.
 */
its_status cli_linking_open(cli_linking *l, cli_app *app, const cli_link_args *args, const char *main,
                            const char *const *files, size_t n_files, its_status (*add)(cli_linking *l, void *user),
                            void *user);
/*
 * Links the same modules once more without some of the calls, see its_link_options.leave_out. What that has to say is
 * the same as before and dropped, unless it fails.
 */
its_status cli_linking_without(cli_linking *l, uint32_t leave_out, its_linked **linked);
void cli_linking_close(cli_linking *l);
/* Adds a library; the linking frees it. */
void cli_linking_add_library(cli_linking *l, its_module *library);
/*
 * The functions that an input declares and doesn't define, of those whose names start with `prefix`; maybe some twice.
 */
cli_list cli_linking_wanted(const cli_linking *l, const char *prefix);

#endif
