/* Options of commands that compile device files, and the compiling. */
#ifndef ITS_CLI_COMPILE_H
#define ITS_CLI_COMPILE_H

#include "cli/cli.h"
#include "intarsia/cc.h"

#define CLI_DEFAULT_ARCH "sm_80"

/* The first field of the structure of a command that has CLI_COMPILE_OPTIONS. */
typedef struct cli_compile_args {
    const char *arch, *dialect;
    cli_list includes, defines, passed, instances;
    bool no_cache;
} cli_compile_args;

#define CLI_COMPILE_OPTIONS                                                                                         \
    {0,                                                                                                             \
     "arch",                                                                                                        \
     "SM",                                                                                                          \
     CLI_TEXT,                                                                                                      \
     offsetof(cli_compile_args, arch),                                                                              \
     "the GPU to compile for: sm_80 (default), sm_90a ..."},                                                        \
        {0,                                                                                                         \
         "dialect",                                                                                                 \
         "NAME",                                                                                                    \
         CLI_TEXT,                                                                                                  \
         offsetof(cli_compile_args, dialect),                                                                       \
         "what the source is written in: cuda (default), ptx, or\na dialect's shared object"},                      \
        {'I', "include", "DIR", CLI_LIST, offsetof(cli_compile_args, includes), "look for headers in DIR as well"}, \
        {'D', "define", "NAME[=VALUE]", CLI_LIST, offsetof(cli_compile_args, defines), "define a macro"},           \
        {'X',                                                                                                       \
         "pass",                                                                                                    \
         "OPTION",                                                                                                  \
         CLI_LIST,                                                                                                  \
         offsetof(cli_compile_args, passed),                                                                        \
         "give OPTION to the compiler as it is: -X -lineinfo"},                                                     \
        {0,                                                                                                         \
         "instance",                                                                                                \
         "NAME",                                                                                                    \
         CLI_LIST,                                                                                                  \
         offsetof(cli_compile_args, instances),                                                                     \
         "compile this template instance: --instance 'scale<float>'"},                                              \
    {                                                                                                               \
        0, "no-cache", NULL, CLI_FLAG, offsetof(cli_compile_args, no_cache), "compile even if the result is known"  \
    }

/* Compiles `path` ("-": standard input); prints the compiler's warnings to standard error. */
its_status cli_compile(cli_app *app, const cli_compile_args *args, const char *path, its_unit **unit);

#endif
