/*
 * The command line program: one table of commands (main.c), one file per command (cmd_NAME.c), one place that reads
 * options (options.c) and one that writes files (output.c).
 *
 * A command describes itself by a cli_command: its options as a table, from which both reading them and the help come,
 * so that the two can't drift apart. Its `run` gets a filled-in structure of its own type and what is left of the line.
 *
 * Errors go where the library's own go, into the context's diagnostics; main.c prints them at the end. Running out of
 * memory jumps to the guard that main.c has set (see base/arena.h), so commands don't check for it.
 */
#ifndef ITS_CLI_CLI_H
#define ITS_CLI_CLI_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/diag.h"
#include "intarsia/base.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 }; /* exit codes; `run` adds those of the programs it runs */

typedef ITS_VEC(const char *) cli_list;

typedef struct cli_app {
    its_context *ctx;
    its_arena arena; /* lives as long as the program */
    bool color;      /* on stderr */
} cli_app;

/* -- options ------------------------------------------------------------------------------------------------------- */

typedef enum cli_kind {
    CLI_FLAG,  /* bool */
    CLI_TEXT,  /* const char * */
    CLI_LIST,  /* cli_list: may be given several times */
    CLI_COUNT, /* cli_number: a whole number of 32 bits */
    CLI_SIZE,  /* cli_number: bytes, with K, M or G */
    CLI_DIM3,  /* cli_dim3: X, X,Y or X,Y,Z */
} cli_kind;

typedef struct cli_number {
    bool given;
    uint64_t value;
} cli_number;

typedef struct cli_dim3 {
    bool given;
    uint32_t at[3];
} cli_dim3;

typedef struct cli_option {
    char letter;          /* 'o', or 0 if it has none */
    const char *name;     /* "output", for --output */
    const char *argument; /* what the help calls its argument, NULL for CLI_FLAG */
    cli_kind kind;
    size_t offset; /* of the field in the command's own structure */
    const char *help;
} cli_option;

/* -- commands ------------------------------------------------------------------------------------------------------ */

typedef struct cli_command {
    const char *name;
    const char *usage;   /* what follows the name: "[OPTIONS] FILE.ptx" */
    const char *summary; /* one line for the list of commands */
    const char *text;    /* the help below the options: what one needs to know, and examples */
    const cli_option *options;
    size_t n_options;
    size_t args_size; /* of the command's own structure */
    bool first_ends;  /* what follows the first operand belongs to another program */
    int (*run)(cli_app *app, const void *args, const cli_list *operands); /* returns the exit code */
} cli_command;

/* The table, in the order of the help. */
extern const cli_command *const cli_commands[];
extern const size_t cli_n_commands;
const cli_command *cli_find_command(const char *name);

extern const cli_command cli_cc, cli_link, cli_inspect, cli_check, cli_fmt, cli_run, cli_sim, cli_doctor, cli_cache,
    cli_help;

/* Reads `argv` into `args` (cleared before) and `operands`; CLI_USAGE with a diagnostic if it can't. */
int cli_parse(cli_app *app, const cli_command *command, char **argv, void *args, cli_list *operands, bool *help);

extern const cli_option cli_help_option; /* which every command has */
extern const char cli_about[], cli_exit_codes[];

void cli_print_help(const cli_command *command);
void cli_print_overview(void);
void cli_print_man(void); /* all of it, for man(1) */
void cli_print_version(cli_app *app);

/* -- what commands share ------------------------------------------------------------------------------------------- */

/* An error about how the program was called; returns CLI_USAGE. `hint` may be NULL. */
int cli_usage(cli_app *app, const char *hint, const char *format, ...) ITS_PRINTF(3, 4);
/* The exit code of a library status. */
int cli_status(its_status status);
/* The one operand of a command that takes exactly one called `what`; NULL after a diagnostic. */
const char *cli_only_operand(cli_app *app, const cli_command *command, const cli_list *operands, const char *what);

/*
 * Whole numbers and sizes, strictly: nothing but digits (0x... too) and the suffix; false if it is none or too large.
 */
bool cli_read_u64(const char *text, uint64_t *value);
bool cli_read_size(const char *text, uint64_t *value);

/*
 * Writes a file aside and renames it into place, so that nobody ever sees half of it; "-" or NULL is standard output.
 * What is at `path` and is no plain file (a device, a pipe) is written to directly.
 */
int cli_write(cli_app *app, const char *path, const char *data, size_t size);
/* A whole file, NUL-terminated, in the arena; "-" is standard input. NULL after a diagnostic. */
char *cli_read(cli_app *app, const char *path, size_t *size);
bool cli_has_suffix(const char *text, const char *suffix);

#endif
