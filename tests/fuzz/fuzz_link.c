/*
 * Fuzzes the linker: the text up to the first "// MODULE" is the main module, each further one a region or a library,
 * as in tests/link/data. Oracle: what links prints as text that is accepted again and prints the same; what does not
 * leaves an error. Built without the verifier between passes (-DNDEBUG), modules that ptxas would refuse reach every
 * pass.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "intarsia/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SEPARATOR "// MODULE "

enum { MOST = 6 };

typedef struct modules {
    its_module *items[MOST];
    bool region[MOST];
    uint32_t n;
    bool valid; /* all of them, says the verifier */
} modules;

/* Does it survive printing? If not, that is fuzz_parse's business. */
static bool is_stable(its_context *ctx, const its_module *module) {
    its_module *again;
    char *first, *second;
    if (its_ptx_print(module, &first, NULL) != ITS_OK) abort();
    bool ok = its_ptx_parse(ctx, "printed.ptx", first, strlen(first), &again) == ITS_OK;
    if (ok) {
        if (its_ptx_print(again, &second, NULL) != ITS_OK) abort();
        ok = strcmp(first, second) == 0;
        its_free(ctx, second);
        its_module_free(again);
    }
    its_free(ctx, first);
    return ok;
}

static bool parse_all(its_context *ctx, const char *text, size_t size, modules *modules) {
    const char *at = text, *end = text + size;
    bool region = false;
    while (modules->n < MOST) {
        const char *next = memmem(at, (size_t)(end - at), SEPARATOR, strlen(SEPARATOR));
        size_t part = (size_t)((next ? next : end) - at);
        if (its_ptx_parse(ctx, "fuzz.ptx", at, part, &modules->items[modules->n]) != ITS_OK) return false;
        modules->region[modules->n++] = region;
        if (!is_stable(ctx, modules->items[modules->n - 1])) return false;
        modules->valid &= its_ptx_verify(modules->items[modules->n - 1]) == ITS_OK;
        if (!next) return true;
        at = next + strlen(SEPARATOR);
        region = at < end && *at == 'r';
        const char *line = memchr(at, '\n', (size_t)(end - at));
        at = line ? line : end;
    }
    return true;
}

static void check_output(its_context *ctx, its_linked *linked, bool valid) {
    its_module *again;
    char *first, *second;
    if (its_ptx_print(its_linked_module(linked), &first, NULL) != ITS_OK) abort();
    its_free(ctx, its_report_text(ctx, its_linked_report(linked)));
    its_free(ctx, its_report_json(ctx, its_linked_report(linked)));
    its_diag_clear(ctx);
    if (!valid) {
        its_free(ctx, first);
        return;
    }
    if (its_ptx_parse(ctx, "linked.ptx", first, strlen(first), &again) != ITS_OK || its_ptx_verify(again) != ITS_OK) {
        fprintf(stderr, "%s\n%s\n", first, its_diag_render(ctx, false));
        abort();
    }
    if (its_ptx_print(again, &second, NULL) != ITS_OK) abort();
    if (strcmp(first, second) != 0) {
        fprintf(stderr, "%s\n-- printed again:\n%s\n", first, second);
        abort();
    }
    its_free(ctx, first);
    its_free(ctx, second);
    its_module_free(again);
}

static void link_all(its_context *ctx, const modules *modules, its_link_options options) {
    its_link_region regions[MOST];
    its_module *libraries[MOST];
    its_linked *linked;
    its_link_input input = {.main = modules->items[0], .regions = regions, .libraries = libraries, .options = options};
    for (uint32_t i = 1; i < modules->n; i++)
        if (modules->region[i])
            regions[input.n_regions++] = (its_link_region){"5f0c2a9b71d3e846", modules->items[i], 0, NULL};
        else
            libraries[input.n_libraries++] = modules->items[i];
    its_status status = its_link(ctx, &input, &linked);
    if ((status == ITS_OK) != (linked != NULL)) abort();
    if (status != ITS_OK && its_diag_errors(ctx) == 0) abort();
    if (status == ITS_OK) check_output(ctx, linked, modules->valid);
    its_linked_free(linked);
    its_diag_clear(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    its_context *ctx = its_context_new(NULL);
    modules modules = {.valid = true};
    if (parse_all(ctx, (const char *)data, size, &modules)) {
        link_all(ctx, &modules, (its_link_options){.keep_externs = true});
        link_all(ctx, &modules, (its_link_options){.no_inline = true, .limit_waits = true});
        link_all(ctx, &modules, (its_link_options){.strip_prints = true, .trap_asserts = true, .budget = 60});
    }
    for (uint32_t i = 0; i < modules.n; i++) its_module_free(modules.items[i]);
    its_context_free(ctx);
    return 0;
}
