/* The man page intarsia(1), from the tables and texts that the help is printed from. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/* One line of text as roff takes it literally: an ASCII minus stays one, and nothing is taken for a request. */
static void print_line(const char *text, size_t size) {
    if (size && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
    for (size_t i = 0; i < size; i++) {
        static const char special[] = "\\-'`^~";
        static const char *const spelled[] = {"\\e", "\\-", "\\(aq", "\\(ga", "\\(ha", "\\(ti"};
        const char *found = strchr(special, text[i]);
        if (found)
            fputs(spelled[found - special], stdout);
        else
            putchar(text[i]);
    }
}

static void print_text(const char *text) {
    print_line(text, strlen(text));
}

/* Paragraphs are filled; what is indented keeps its lines. */
static void print_paragraphs(const char *text) {
    enum { NOTHING, FILLED, LINES } state = NOTHING;
    while (*text) {
        size_t size = strcspn(text, "\n");
        bool indented = *text == ' ';
        if (state == LINES && !indented) {
            puts(".fi\n.RE");
            state = NOTHING;
        }
        if (indented && state != LINES) {
            puts(".PP\n.RS\n.nf");
            state = LINES;
        } else if (size && state == NOTHING) {
            puts(".PP");
            state = FILLED;
        } else if (size == 0) {
            state = NOTHING;
        }
        size_t margin = indented ? strspn(text, " ") : 0;
        if (margin > 2) margin = 2;
        print_line(text + margin, size - margin);
        if (size) putchar('\n');
        text += size + (text[size] != 0);
    }
    if (state == LINES) puts(".fi\n.RE");
}

static void print_option(const cli_option *option) {
    fputs(".TP\n.B ", stdout);
    if (option->letter) printf("\\-%c, ", option->letter);
    fputs("\\-\\-", stdout);
    print_text(option->name);
    if (option->argument) {
        fputs(" \\fI", stdout);
        print_text(option->argument);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    for (const char *line = option->help; *line;) {
        size_t size = strcspn(line, "\n");
        print_line(line, size);
        putchar('\n');
        line += size + (line[size] != 0);
    }
}

static void print_command(const cli_command *command) {
    printf(".SS intarsia %s\n", command->name);
    print_text(command->summary);
    fputs("\n.PP\n.B intarsia ", stdout);
    print_text(command->name);
    fputs(" \\fR", stdout);
    print_text(command->usage);
    putchar('\n');
    for (size_t i = 0; i < command->n_options; i++) print_option(&command->options[i]);
    print_option(&cli_help_option);
    print_paragraphs(command->text);
}

void cli_print_man(void) {
    printf(
        ".\\\" Written by `intarsia help --man`.\n.TH INTARSIA 1 \"\" \"Intarsia %s\" \"User Commands\"\n.nh\n.ad l\n",
        its_version());
    printf(".SH NAME\nintarsia \\- %s\n", cli_about);
    puts(".SH SYNOPSIS\n.B intarsia\n.I COMMAND\n.RI [ OPTIONS ]\n.RI [ ARGUMENTS ]\n.br\n.B intarsia \\-\\-version");
    puts(".SH COMMANDS");
    for (size_t i = 0; i < cli_n_commands; i++) print_command(cli_commands[i]);
    printf(".SH EXIT STATUS\n%s\n", cli_exit_codes);
}
