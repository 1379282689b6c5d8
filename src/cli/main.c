/* The program `intarsia`: the table of commands, and what happens around each of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

const cli_command *const cli_commands[] = {
    &cli_run, &cli_cc, &cli_link, &cli_sim, &cli_inspect, &cli_check, &cli_fmt, &cli_doctor, &cli_cache, &cli_help,
};
const size_t cli_n_commands = sizeof cli_commands / sizeof *cli_commands;

const cli_command *cli_find_command(const char *name) {
    for (size_t i = 0; i < cli_n_commands; i++)
        if (strcmp(cli_commands[i]->name, name) == 0) return cli_commands[i];
    return NULL;
}

static int unknown_command(cli_app *app, const char *word) {
    const char **names = its_arena_array(&app->arena, cli_n_commands, sizeof *names);
    for (size_t i = 0; i < cli_n_commands; i++) names[i] = cli_commands[i]->name;
    const char *closest = its_closest(word, names, cli_n_commands);
    const char *hint = closest ? its_arena_printf(&app->arena, "did you mean 'intarsia %s'?", closest)
                               : "'intarsia help' lists the commands";
    return cli_usage(app, hint, "there is no %s '%s'", word[0] == '-' ? "option" : "command", word);
}

/* Requires a guard; ensures that every failure but running out of memory has left a diagnostic. */
static int run_command(cli_app *app, char **argv) {
    const char *word = argv[0];
    if (!word) {
        cli_print_overview();
        return CLI_USAGE;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        cli_print_version(app);
        return CLI_OK;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) word = "help";
    const cli_command *command = cli_find_command(word);
    if (!command) return unknown_command(app, word);
    void *args = its_arena_alloc(&app->arena, command->args_size + 1);
    cli_list operands = {0};
    bool help;
    int code = cli_parse(app, command, argv + 1, args, &operands, &help);
    if (code) return code;
    if (help) {
        cli_print_help(command);
        return CLI_OK;
    }
    return command->run(app, args, &operands);
}

/* Prints what the context has to say; `code` if that worked out, so that nothing is lost silently. */
static int report(cli_app *app, int code) {
    if (its_diag_count(app->ctx) == 0) return code;
    char *text = its_diag_render(app->ctx, app->color);
    fputs(text ? text : "error: out of memory\n", stderr);
    its_free(app->ctx, text);
    return code;
}

/* What went to standard output must have arrived: a full disk is an error, not half a file. */
static int flush_output(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    perror("error: can't write standard output");
    return code ? code : CLI_FAILED;
}

static bool wants_color(void) {
    const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(STDERR_FILENO) && !(no_color && *no_color) && !(terminal && strcmp(terminal, "dumb") == 0);
}

int main(int argc, char **argv) {
    (void)argc;
    cli_app app = {.ctx = its_context_new(NULL), .color = wants_color()};
    if (!app.ctx) {
        fputs("error: out of memory\n", stderr);
        return CLI_FAILED;
    }
    its_arena_init(&app.arena, app.ctx);
    volatile int code = CLI_FAILED;
    its_guard guard;
    if (its_guard_enter(app.ctx, &guard)) {
        its_guard_failed(app.ctx, &guard);
    } else {
        code = run_command(&app, argv + (argv[0] ? 1 : 0));
        its_guard_leave(app.ctx, &guard);
    }
    code = report(&app, flush_output(code));
    its_arena_free(&app.arena);
    its_context_free(app.ctx);
    return code;
}
