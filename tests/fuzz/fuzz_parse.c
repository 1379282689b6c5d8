/*
 * Fuzzes the parser and printer. Oracle: what is accepted prints as text that is accepted again and prints the same;
 * what is refused leaves an error with a place; nothing is leaked.
 */
#include <stdlib.h>
#include <string.h>

#include "intarsia/ptx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *print(const its_module *module) {
    char *text;
    if (its_ptx_print(module, &text, NULL) != ITS_OK) abort();
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    its_context *ctx = its_context_new(NULL);
    its_module *module, *again;
    if (its_ptx_parse(ctx, "fuzz.ptx", (const char *)data, size, &module) == ITS_OK) {
        its_ptx_verify(module);
        char *first = print(module);
        its_diag_clear(ctx);
        if (its_ptx_parse(ctx, "printed.ptx", first, strlen(first), &again) != ITS_OK) abort();
        char *second = print(again);
        if (strcmp(first, second) != 0) abort();
        its_free(ctx, first);
        its_free(ctx, second);
        its_module_free(again);
        its_module_free(module);
    } else if (its_diag_errors(ctx) == 0 || its_diag_get(ctx, 0)->n_places == 0) {
        abort();
    }
    its_free(ctx, its_diag_render(ctx, false));
    its_context_free(ctx);
    return 0;
}
