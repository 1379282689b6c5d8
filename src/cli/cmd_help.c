/* intarsia help, and what is printed without a command. */
#include <stdio.h>

#include "cli/cli.h"

typedef struct help_args {
    bool markdown, man;
} help_args;

static const cli_option options[] = {
    {0, "markdown", NULL, CLI_FLAG, offsetof(help_args, markdown), "all of the help as docs/command-line.md has it"},
    {0, "man", NULL, CLI_FLAG, offsetof(help_args, man),
     "all of the help as a man page: intarsia help --man | man -l -"},
};

static const char text[] = "examples:\n"
                           "  intarsia help\n"
                           "  intarsia help run\n";

const char cli_about[] = "inlays raw CUDA code into tile kernels, and runs the result on GPUs or on a simulator";
const char cli_exit_codes[] = "0 good, 1 something was wrong with the input, 2 the command was called wrongly";

void cli_print_overview(void) {
    printf("Intarsia %s.\n\nusage: intarsia COMMAND ...\n\n", cli_about);
    for (size_t i = 0; i < cli_n_commands; i++) printf("  %-10s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    printf("  %-10s %s\n", "--version", "its version, and those of what it works with");
    printf("\n'intarsia help COMMAND' tells more, with examples. A good start:\n\n"
           "  intarsia run --sim -n 4 examples/01-simple-shift/simple-shift.py\n\nexit codes: %s\n",
           cli_exit_codes);
}

static void print_markdown(void) {
    puts("# The command line\n");
    puts("<!-- Written by `intarsia help --markdown`; a test compares the two. -->\n");
    puts("```text");
    cli_print_overview();
    puts("```");
    for (size_t i = 0; i < cli_n_commands; i++) {
        printf("\n## intarsia %s\n\n```text\n", cli_commands[i]->name);
        cli_print_help(cli_commands[i]);
        puts("```");
    }
}

static int unknown(cli_app *app, const char *word) {
    return cli_usage(app, "'intarsia help' lists the commands", "there is no command '%s'", word);
}

static int run(cli_app *app, const void *user, const cli_list *operands) {
    const help_args *args = user;
    if (args->markdown) {
        print_markdown();
        return CLI_OK;
    }
    if (args->man) {
        cli_print_man();
        return CLI_OK;
    }
    if (operands->count == 0) cli_print_overview();
    for (size_t i = 0; i < operands->count; i++) {
        const cli_command *command = cli_find_command(operands->items[i]);
        if (!command) return unknown(app, operands->items[i]);
        cli_print_help(command);
    }
    return CLI_OK;
}

const cli_command cli_help = {
    .name = "help",
    .usage = "[COMMAND]",
    .summary = "the commands, or the help of one",
    .text = text,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_size = sizeof(help_args),
    .run = run,
};
