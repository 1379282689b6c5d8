/*
 * Runs the files of tests/link/data. Each is PTX with comments that say what is to happen:
 *
 *     // MODULE region UNIT [0=id:count]   what follows, up to the next such line, is a region's module
 *     // MODULE library                    or a library; what stands before the first is the main module
 *     // OPTION no_inline | strip_prints | trap_asserts | keep_externs | budget N | region_budget N | deferred PREFIX
 *     // OPTION leave_out N                the N-th call of the main module into others; 0: all of them
 *     // OPTION version M.N | limit_waits | own_window
 *     // EXPECT text           the output holds this, behind what the EXPECT before it found; blanks count as one
 *     // ABSENT text           the output does not hold this anywhere
 *     // REPORT text           the report holds this line
 *     // ERROR line:column text      linking fails, with such an error at that place in this file; all errors are
 * listed
 *     // WARNING line:column text    likewise
 *     // ALSO line:column text       a further place of the ERROR or WARNING before it
 *     // HINT text                   of the ERROR or WARNING before it
 *     // PTXAS [-c]            ptxas takes the output for its target
 *     // CALLS n               the machine code has so many calls
 *
 * Modules keep the lines of this file, so places are lines of the file.
 */
#include "common.h"

#include <dirent.h>
#include <errno.h>

#define DATA ITS_SOURCE_DIR "/tests/link/data"

enum { MOST_MODULES = 16, MOST_LINES = 400 };

typedef struct data_file {
    const char *name;
    char *text;
    size_t size;
    char *lines[MOST_LINES]; /* what stands behind `// ` */
    int n_lines;
} data_file;

typedef struct data_link {
    its_context *ctx;
    its_module *modules[MOST_MODULES];
    uint32_t n_modules;
    its_link_region regions[MOST_MODULES];
    its_module *libraries[MOST_MODULES];
    const char *deferred[MOST_MODULES];
    its_link_input input;
    its_linked *linked;
    char *ptx;
    size_t ptx_size;
} data_link;

static tools found;

/* -- reading ------------------------------------------------------------------------------------------------------- */

/* What follows `word` and blanks in the line, or NULL if the line does not start with it. */
static char *behind(char *line, const char *word) {
    size_t size = strlen(word);
    if (strncmp(line, word, size) != 0 || (line[size] && line[size] != ' ')) return NULL;
    return line + size + strspn(line + size, " ");
}

static void read_directives(data_file *file) {
    for (char *at = file->text; *at;) {
        size_t size = strcspn(at, "\n");
        char *start = at + strspn(at, " \t");
        if (strncmp(start, "// ", 3) == 0 && file->n_lines < MOST_LINES) {
            char *line = strndup(start + 3, size - (size_t)(start - at) - 3);
            file->lines[file->n_lines++] = line;
        }
        at += size + (at[size] == '\n');
    }
}

/* The directives themselves must not reach the output. */
static void blank_directives(char *text) {
    for (char *at = text; *at; at += *at == '\n') {
        size_t size = strcspn(at, "\n");
        if (strncmp(at, "// ", 3) == 0 && at[3] >= 'A' && at[3] <= 'Z' && at[4] >= 'A' && at[4] <= 'Z')
            memset(at, ' ', size);
        at += size;
    }
}

/* Parses the lines from `from` to `to` as one module; what stands before is blank lines, so that places agree. */
static its_module *parse_part(data_link *link, const data_file *file, const char *from, const char *to) {
    size_t size = (size_t)(to - file->text);
    char *text = malloc(size + 1);
    for (size_t i = 0; i < size; i++) text[i] = file->text + i >= from || file->text[i] == '\n' ? file->text[i] : ' ';
    text[size] = 0;
    blank_directives(text);
    for (char *at = text, *version = strstr(text, ".version"); version && at < version; at++)
        if (*at != '\n') *at = ' '; /* what the file says about itself */
    its_module *module;
    if (its_ptx_parse(link->ctx, file->name, text, size, &module) != ITS_OK) {
        char *shown = its_diag_render(link->ctx, false);
        fail_msg("%s: %s", file->name, shown);
    }
    free(text);
    link->modules[link->n_modules++] = module;
    return module;
}

static void add_module(data_link *link, const data_file *file, char *head, const char *from, const char *to) {
    its_module *module = parse_part(link, file, from, to);
    char *unit = head ? behind(head, "region") : NULL;
    if (!head) {
        link->input.main = module;
    } else if (unit) {
        char *map = strchr(unit, ' ');
        if (map) *map++ = 0;
        link->regions[link->input.n_regions++] = (its_link_region){unit, module, 0, map};
    } else {
        assert_non_null(behind(head, "library"));
        link->libraries[link->input.n_libraries++] = module;
    }
}

static void read_modules(data_link *link, data_file *file) {
    const char *from = file->text;
    char *head = NULL;
    int line = 0;
    for (char *at = file->text; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
        if (strncmp(at, "// MODULE ", 10) != 0) continue;
        add_module(link, file, head, from, at);
        while (!(head = behind(file->lines[line++], "MODULE"))) continue;
        from = at;
    }
    add_module(link, file, head, from, file->text + file->size);
}

static void read_options(data_link *link, const data_file *file) {
    its_link_options *options = &link->input.options;
    for (int i = 0; i < file->n_lines; i++) {
        char *option = behind(file->lines[i], "OPTION"), *value;
        if (!option) continue;
        if (behind(option, "no_inline"))
            options->no_inline = true;
        else if (behind(option, "strip_prints"))
            options->strip_prints = true;
        else if (behind(option, "trap_asserts"))
            options->trap_asserts = true;
        else if (behind(option, "limit_waits"))
            options->limit_waits = true;
        else if (behind(option, "own_window"))
            options->own_window = true;
        else if (behind(option, "keep_externs"))
            options->keep_externs = true;
        else if ((value = behind(option, "budget")))
            options->budget = (uint32_t)strtoul(value, NULL, 10);
        else if ((value = behind(option, "leave_out")))
            options->leave_out = strtoul(value, NULL, 10) ? (uint32_t)strtoul(value, NULL, 10) : ITS_LEAVE_OUT_ALL;
        else if ((value = behind(option, "deferred")))
            link->deferred[options->n_deferred++] = value;
        else if ((value = behind(option, "region_budget")))
            link->regions[0].budget = (uint32_t)strtoul(value, NULL, 10);
        else if ((value = behind(option, "version"))) {
            options->version_major = (uint32_t)strtoul(value, &value, 10);
            options->version_minor = (uint32_t)strtoul(value + 1, NULL, 10);
        } else
            fail_msg("%s: unknown option '%s'", file->name, option);
    }
    options->deferred = link->deferred;
    link->input.regions = link->regions;
    link->input.libraries = link->libraries;
}

/* -- comparing ----------------------------------------------------------------------------------------------------- */

/* Runs of blanks become one; none at the ends. */
static char *squeeze(const char *text) {
    char *out = malloc(strlen(text) + 1), *to = out;
    for (const char *at = text; *at; at++) {
        bool blank = *at == ' ' || *at == '\t' || *at == '\n';
        if (!blank)
            *to++ = *at;
        else if (to > out && to[-1] != ' ')
            *to++ = ' ';
    }
    while (to > out && to[-1] == ' ') to--;
    *to = 0;
    return out;
}

static void check_output(const data_link *link, const data_file *file) {
    char *output = squeeze(link->ptx);
    const char *from = output;
    for (int i = 0; i < file->n_lines; i++) {
        char *wanted = behind(file->lines[i], "EXPECT"), *absent = behind(file->lines[i], "ABSENT");
        char *text = squeeze(wanted ? wanted : absent ? absent : "");
        const char *at = *text ? strstr(wanted ? from : output, text) : NULL;
        if (wanted && !at) fail_msg("%s: the output lacks '%s' behind '%.60s'\n%s", file->name, text, from, link->ptx);
        if (absent && at) fail_msg("%s: the output has '%s'\n%s", file->name, text, link->ptx);
        if (wanted) from = at + strlen(text);
        free(text);
    }
    free(output);
}

static void check_report(const data_link *link, const data_file *file) {
    char *shown = its_report_text(link->ctx, its_linked_report(link->linked)), *report = squeeze(shown);
    for (int i = 0; i < file->n_lines; i++) {
        char *wanted = behind(file->lines[i], "REPORT");
        if (wanted && !strstr(report, wanted)) fail_msg("%s: the report lacks '%s'\n%s", file->name, wanted, shown);
    }
    free(report);
    its_free(link->ctx, shown);
}

static bool is_at(const its_diag_place *place, char **text) {
    uint32_t line = (uint32_t)strtoul(*text, text, 10), column = (uint32_t)strtoul(*text + 1, text, 10);
    *text += strspn(*text, " ");
    return place->line == line && place->column == column;
}

static bool has_place(const its_diag *diag, char *wanted) {
    for (uint32_t i = 1; i < diag->n_places; i++) {
        char *text = wanted;
        if (is_at(&diag->places[i], &text) && strstr(diag->places[i].label, text)) return true;
    }
    return false;
}

/* The diagnostics of one severity, in order, and nothing but those. */
static void check_diags(const data_link *link, const data_file *file, its_severity severity, const char *word) {
    char *shown = its_diag_render(link->ctx, false);
    const its_diag *diag = NULL;
    size_t next = 0, count = its_diag_count(link->ctx), wanted_count = 0, have = 0;
    for (size_t i = 0; i < count; i++) have += its_diag_get(link->ctx, i)->severity == severity;
    for (int i = 0; i < file->n_lines; i++) {
        char *wanted = behind(file->lines[i], word), *also = behind(file->lines[i], "ALSO");
        char *hint = behind(file->lines[i], "HINT");
        if (wanted) {
            while (next < count && its_diag_get(link->ctx, next)->severity != severity) next++;
            if (next == count) fail_msg("%s: no %s '%s'\n%s", file->name, word, wanted, shown);
            diag = its_diag_get(link->ctx, next++);
            wanted_count++;
            its_diag_place nowhere = {0};
            bool placed = is_at(diag->n_places ? &diag->places[0] : &nowhere, &wanted);
            if (!placed || !strstr(diag->message, wanted))
                fail_msg("%s: wanted %s, got\n%s", file->name, file->lines[i], shown);
        } else if (also && diag && !has_place(diag, also)) {
            fail_msg("%s: wanted %s, got\n%s", file->name, file->lines[i], shown);
        } else if (hint && diag && (!diag->hint || !strstr(diag->hint, hint))) {
            fail_msg("%s: wanted %s, got\n%s", file->name, file->lines[i], shown);
        }
    }
    if (have != wanted_count) fail_msg("%s: %zu of '%s' wanted, got\n%s", file->name, wanted_count, word, shown);
    its_free(link->ctx, shown);
}

static void check_machine_code(const data_link *link, const data_file *file) {
    char cubin[1200];
    bool assembled = false;
    const char *arch = its_linked_module(link->linked)->targets[0]->text;
    for (int i = 0; i < file->n_lines && *found.ptxas; i++) {
        char *ptxas = behind(file->lines[i], "PTXAS"), *calls = behind(file->lines[i], "CALLS");
        if (ptxas) {
            assembled = assemble(link->ctx, &found, link->ptx, link->ptx_size, arch, *ptxas != 0, cubin, sizeof cubin);
            if (!assembled) fail_msg("%s: ptxas refuses\n%s", file->name, link->ptx);
        }
        if (calls && assembled && *found.nvdisasm)
            assert_int_equal(count_calls(link->ctx, &found, cubin), strtol(calls, NULL, 10));
    }
}

/* What the report says about calls is what the PTX holds. */
static void check_kept(const data_link *link, const data_file *file) {
    char *ptx = squeeze(link->ptx);
    uint32_t calls = 0;
    for (const char *at = ptx; (at = strstr(at, "call")); at += 4)
        calls += (at == ptx || at[-1] == ' ') && (at[4] == ' ' || strncmp(at + 4, ".uni ", 5) == 0);
    if (calls != its_linked_report(link->linked)->n_kept)
        fail_msg("%s: %u calls in the output, %u in the report\n%s", file->name, calls,
                 its_linked_report(link->linked)->n_kept, link->ptx);
    free(ptx);
}

/* -- running ------------------------------------------------------------------------------------------------------- */

static bool wants_error(const data_file *file) {
    for (int i = 0; i < file->n_lines; i++)
        if (behind(file->lines[i], "ERROR")) return true;
    return false;
}

/* The same text again: the output of the linker is a module like any other. */
static void check_round_trip(const data_link *link, const data_file *file) {
    its_module *again;
    char *text;
    size_t size;
    if (its_ptx_parse(link->ctx, "output", link->ptx, link->ptx_size, &again) != ITS_OK) {
        char *shown = its_diag_render(link->ctx, false);
        fail_msg("%s: the output can't be read\n%s", file->name, shown);
    }
    assert_int_equal(its_ptx_print(again, &text, &size), ITS_OK);
    assert_string_equal(text, link->ptx);
    its_free(link->ctx, text);
    its_module_free(again);
}

static void check_success(data_link *link, const data_file *file) {
    assert_int_equal(its_ptx_print(its_linked_module(link->linked), &link->ptx, &link->ptx_size), ITS_OK);
    check_diags(link, file, ITS_WARNING, "WARNING");
    check_output(link, file);
    check_report(link, file);
    check_kept(link, file);
    check_round_trip(link, file);
    check_machine_code(link, file);
    its_free(link->ctx, link->ptx);
}

static void run_file(void **state) {
    data_file file = {.name = *state};
    data_link link = {.ctx = its_context_new(NULL)};
    char path[1024];
    snprintf(path, sizeof path, DATA "/%s", file.name);
    file.text = read_file(path, &file.size);
    assert_non_null(file.text);
    read_directives(&file);
    read_modules(&link, &file);
    read_options(&link, &file);
    for (int twice = 0; twice < 2; twice++) { /* linking leaves its input as it was */
        its_diag_clear(link.ctx);
        its_status status = its_link(link.ctx, &link.input, &link.linked);
        if (wants_error(&file)) {
            assert_int_equal(status, ITS_ERR_INPUT);
            assert_null(link.linked);
            check_diags(&link, &file, ITS_ERROR, "ERROR");
            continue;
        }
        if (status != ITS_OK) fail_msg("%s: %s", file.name, its_diag_render(link.ctx, false));
        check_success(&link, &file);
        its_linked_free(link.linked);
    }
    for (uint32_t i = 0; i < link.n_modules; i++) its_module_free(link.modules[i]);
    its_context_free(link.ctx);
    for (int i = 0; i < file.n_lines; i++) free(file.lines[i]);
    free(file.text);
}

static int is_ptx(const struct dirent *entry) {
    size_t size = strlen(entry->d_name);
    return size > 4 && strcmp(entry->d_name + size - 4, ".ptx") == 0;
}

int main(int argc, char **argv) {
    struct dirent **entries;
    int count = scandir(DATA, &entries, is_ptx, alphasort);
    if (count <= 0) return 1;
    struct CMUnitTest *tests = calloc((size_t)count, sizeof *tests);
    size_t n = 0;
    find_tools(&found);
    for (int i = 0; i < count; i++) {
        if (argc > 1 && !strstr(entries[i]->d_name, argv[1])) continue;
        tests[n++] = (struct CMUnitTest){entries[i]->d_name, run_file, NULL, NULL, entries[i]->d_name};
    }
    int failed = _cmocka_run_group_tests("link/data", tests, n, NULL, NULL);
    remove_tools(&found);
    for (int i = 0; i < count; i++) free(entries[i]);
    free(entries);
    free(tests);
    return failed;
}
