/* Reading the command line against a command's table of options, and printing help from the same table. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#define HELP_COLUMN 30

/* -- numbers ------------------------------------------------------------------------------------------------------- */

/* Digits of base 10, or of base 16 after 0x; moves `*text` behind them. */
static bool read_digits(const char **text, uint64_t *value) {
    const char *p = *text;
    uint64_t base = 10, sum = 0;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) base = 16, p += 2;
    const char *first = p;
    for (;; p++) {
        uint64_t digit;
        if (*p >= '0' && *p <= '9')
            digit = (uint64_t)(*p - '0');
        else if (base == 16 && (*p | 32) >= 'a' && (*p | 32) <= 'f')
            digit = (uint64_t)((*p | 32) - 'a') + 10;
        else
            break;
        if (sum > (UINT64_MAX - digit) / base) return false;
        sum = sum * base + digit;
    }
    *text = p;
    *value = sum;
    return p != first;
}

bool cli_read_u64(const char *text, uint64_t *value) {
    return read_digits(&text, value) && *text == 0;
}

bool cli_read_size(const char *text, uint64_t *value) {
    if (!read_digits(&text, value)) return false;
    unsigned shift = 0;
    if (*text) {
        switch (*text++ | 32) {
        case 'k':
            shift = 10;
            break;
        case 'm':
            shift = 20;
            break;
        case 'g':
            shift = 30;
            break;
        default:
            return false;
        }
        if (*text == 'i' || *text == 'I') text++;
        if (*text == 'b' || *text == 'B') text++;
    }
    if (*text || *value > UINT64_MAX >> shift) return false;
    *value <<= shift;
    return true;
}

static bool read_dim3(const char *text, cli_dim3 *dim) {
    *dim = (cli_dim3){true, {1, 1, 1}};
    for (int i = 0; i < 3; i++) {
        uint64_t value;
        if (!read_digits(&text, &value) || value == 0 || value > INT32_MAX) return false;
        dim->at[i] = (uint32_t)value;
        if (*text == 0) return true;
        if (*text++ != ',') return false;
    }
    return false;
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

const cli_option cli_help_option = {'h', "help", NULL, CLI_FLAG, 0, "this help"};

static bool same_name(const char *name, const char *word, size_t size) {
    return strlen(name) == size && memcmp(name, word, size) == 0;
}

static const cli_option *find_long(const cli_command *command, const char *word, size_t size) {
    for (size_t i = 0; i < command->n_options; i++)
        if (same_name(command->options[i].name, word, size)) return &command->options[i];
    return same_name(cli_help_option.name, word, size) ? &cli_help_option : NULL;
}

static const cli_option *find_letter(const cli_command *command, char letter) {
    for (size_t i = 0; i < command->n_options; i++)
        if (command->options[i].letter == letter) return &command->options[i];
    return letter == cli_help_option.letter ? &cli_help_option : NULL;
}

static int unknown_option(cli_app *app, const cli_command *command, const char *word, size_t size) {
    const char **names = its_arena_array(&app->arena, command->n_options + 1, sizeof *names);
    for (size_t i = 0; i < command->n_options; i++) names[i] = command->options[i].name;
    names[command->n_options] = cli_help_option.name;
    const char *bare = its_arena_text(&app->arena, word, size);
    const char *closest = strlen(bare) > 3 ? its_closest(bare + 2, names, command->n_options + 1) : NULL;
    const char *hint = closest ? its_arena_printf(&app->arena, "did you mean --%s?", closest)
                               : its_arena_printf(&app->arena, "'intarsia help %s' lists its options", command->name);
    return cli_usage(app, hint, "'intarsia %s' has no option '%s'", command->name, bare);
}

static int bad_value(cli_app *app, const cli_option *option, const char *value) {
    static const char *const wanted[] = {
        [CLI_COUNT] = "a whole number below 4294967296",
        [CLI_SIZE] = "a number of bytes such as 4096, 64K, 16M or 1G",
        [CLI_DIM3] = "one to three whole numbers above 0 such as 4 or 4,2,1",
    };
    return cli_usage(app, NULL, "--%s takes %s, not '%s'", option->name, wanted[option->kind], value);
}

/* Stores an option's value in the command's structure. */
static int store(cli_app *app, const cli_option *option, void *args, const char *value) {
    void *field = (char *)args + option->offset;
    cli_number *number = field;
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)field = true;
        return CLI_OK;
    case CLI_TEXT:
        *(const char **)field = value;
        return CLI_OK;
    case CLI_LIST:
        ITS_PUSH(&app->arena, (cli_list *)field, value);
        return CLI_OK;
    case CLI_COUNT:
        number->given = cli_read_u64(value, &number->value) && number->value <= UINT32_MAX;
        return number->given ? CLI_OK : bad_value(app, option, value);
    case CLI_SIZE:
        number->given = cli_read_size(value, &number->value);
        return number->given ? CLI_OK : bad_value(app, option, value);
    case CLI_DIM3:
        return read_dim3(value, field) ? CLI_OK : bad_value(app, option, value);
    }
    return CLI_USAGE;
}

typedef struct reader {
    cli_app *app;
    const cli_command *command;
    char **argv; /* the next word */
    void *args;
    bool help;
} reader;

/* One option that was found; `value` is what was glued to it, or NULL. */
static int take(reader *r, const cli_option *option, const char *value) {
    if (option == &cli_help_option) {
        r->help = true;
        return CLI_OK;
    }
    if (option->kind == CLI_FLAG) {
        if (value) return cli_usage(r->app, NULL, "--%s takes no value", option->name);
        return store(r->app, option, r->args, NULL);
    }
    if (!value) value = *r->argv ? *r->argv++ : NULL;
    if (!value) return cli_usage(r->app, NULL, "--%s needs a value (%s)", option->name, option->argument);
    return store(r->app, option, r->args, value);
}

static int take_long(reader *r, const char *word) {
    const char *equals = strchr(word, '=');
    size_t size = equals ? (size_t)(equals - word) : strlen(word);
    const cli_option *option = find_long(r->command, word + 2, size - 2);
    return option ? take(r, option, equals ? equals + 1 : NULL) : unknown_option(r->app, r->command, word, size);
}

/* -o FILE, -oFILE, and flags in one word: -qv */
static int take_letters(reader *r, const char *word) {
    for (const char *p = word + 1; *p; p++) {
        const cli_option *option = find_letter(r->command, *p);
        if (!option) return unknown_option(r->app, r->command, word, strlen(word));
        bool flag = option->kind == CLI_FLAG;
        int code = take(r, option, !flag && p[1] ? p + 1 : NULL);
        if (code || !flag) return code;
    }
    return CLI_OK;
}

int cli_parse(cli_app *app, const cli_command *command, char **argv, void *args, cli_list *operands, bool *help) {
    reader r = {app, command, argv, args, false};
    memset(args, 0, command->args_size);
    bool options = true;
    int code = CLI_OK;
    while (*r.argv && code == CLI_OK) {
        const char *word = *r.argv++;
        if (!options || word[0] != '-' || word[1] == 0) {
            ITS_PUSH(&app->arena, operands, word);
            if (command->first_ends) options = false;
        } else if (strcmp(word, "--") == 0) {
            options = false;
        } else {
            code = word[1] == '-' ? take_long(&r, word) : take_letters(&r, word);
        }
    }
    *help = r.help;
    return r.help ? CLI_OK : code;
}

/* -- help ---------------------------------------------------------------------------------------------------------- */

static void print_option(const cli_option *option) {
    char left[128];
    int size = snprintf(left, sizeof left, "  %c%c%s --%s%s%s", option->letter ? '-' : ' ',
                        option->letter ? option->letter : ' ', option->letter ? "," : " ", option->name,
                        option->argument ? " " : "", option->argument ? option->argument : "");
    fputs(left, stdout);
    if (size > HELP_COLUMN - 2)
        printf("\n%*s", HELP_COLUMN, "");
    else
        printf("%*s", HELP_COLUMN - size, "");
    for (const char *p = option->help; *p; p++) {
        putchar(*p);
        if (*p == '\n') printf("%*s", HELP_COLUMN, "");
    }
    putchar('\n');
}

void cli_print_help(const cli_command *command) {
    printf("intarsia %s: %s\n\nusage: intarsia %s %s\n", command->name, command->summary, command->name,
           command->usage);
    puts("\noptions:");
    for (size_t i = 0; i < command->n_options; i++) print_option(&command->options[i]);
    print_option(&cli_help_option);
    printf("\n%s", command->text);
}
