#include "cli/assembling.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TRIALS = 16 }; /* calls that are tried alone: each costs a link and a run of the assembler */

static its_status assemble(cli_linking *l, its_linked *linked, its_asm_result **result) {
    its_asm_options wanted = {.line_info = true};
    return its_assemble(l->app->ctx, its_linked_module(linked), &wanted, result);
}

static its_status assemble_without(cli_linking *l, uint32_t leave_out, its_asm_result **result) {
    its_linked *linked;
    its_status status = cli_linking_without(l, leave_out, &linked);
    if (status != ITS_OK) return status;
    status = assemble(l, linked, result);
    its_linked_free(linked);
    return status;
}

its_status cli_assembled_open(cli_assembled *code, cli_linking *l) {
    *code = (cli_assembled){0};
    its_status status = assemble(l, l->linked, &code->after);
    if (status == ITS_OK && its_linked_report(l->linked)->n_sites)
        status = assemble_without(l, ITS_LEAVE_OUT_ALL, &code->before);
    if (status != ITS_OK) cli_assembled_close(code);
    return status;
}

void cli_assembled_close(cli_assembled *code) {
    its_asm_free(code->before);
    its_asm_free(code->after);
    *code = (cli_assembled){0};
}

/* The report is an object: what is assembled becomes its last member. */
size_t cli_assembled_join(cli_app *app, char **report, const cli_assembled *code) {
    char *told = its_asm_json(app->ctx, code->before, code->after), *end = strrchr(*report, '}');
    if (!told || !end) return 0;
    while (end > *report && (end[-1] == '\n' || end[-1] == ' ')) end--;
    its_buffer joined;
    its_buffer_init(&joined, app->ctx);
    its_buffer_put(&joined, *report, (size_t)(end - *report));
    its_buffer_printf(&joined, ",\n\t\"assembled\":\t%s\n}", told);
    its_free(app->ctx, told);
    its_free(app->ctx, *report);
    size_t size;
    *report = its_buffer_take(&joined, &size);
    return size;
}

/* -- who is to blame ----------------------------------------------------------------------------------------------- */

static const its_asm_advice *first_caused(const cli_assembled *code, uint32_t from) {
    for (uint32_t i = from; i < code->after->n_advice; i++) {
        const its_asm_advice *advice = &code->after->advice[i];
        if (!advice->serialised && !advice->no_setmaxnreg) continue;
        if (code->before && !its_asm_says(code->before, advice)) return advice;
    }
    return NULL;
}

static void show_site(cli_linking *l, const its_report_site *site, const char *what) {
    const char *label = its_arena_printf(&l->app->arena, "%s of '%s'", what, site->callee);
    its_diag_also_line(l->app->ctx, site->file, site->line, site->column, NULL, label);
    if (site->source)
        its_diag_also_line(l->app->ctx, site->source, site->source_line, site->source_column, NULL, "source line");
}

/* "in around line 495" is a line of the text that the assembler got. */
static void show_line(cli_linking *l, const its_asm_advice *advice) {
    const char *at = strstr(advice->text, " line ");
    unsigned long line = at ? strtoul(at + 6, NULL, 10) : 0;
    char *ptx;
    if (!line || line > UINT32_MAX || its_ptx_print(its_linked_module(l->linked), &ptx, NULL) != ITS_OK) return;
    const char *start = ptx;
    for (unsigned long i = 1; i < line && start; i++) start = strchr(start, '\n') ? strchr(start, '\n') + 1 : NULL;
    if (start) {
        const char *text = its_arena_text(&l->app->arena, start, strcspn(start, "\n"));
        its_diag_also_line(l->app->ctx, "linked PTX", (uint32_t)line, 0, text, "the line of the linked PTX");
    }
    its_free(l->app->ctx, ptx);
}

/* Calls that are left stand in the way of most things; an advice may be about the caller or the callee. */
static void show_kept(cli_linking *l, const its_asm_advice *advice) {
    const its_report *report = its_linked_report(l->linked);
    for (uint32_t i = 0; i < report->n_kept; i++) {
        const its_report_call *call = &report->kept[i];
        const char *function = advice->function;
        if (*function && strcmp(call->caller, function) != 0 && strcmp(call->callee, function) != 0) continue;
        const char *label =
            its_arena_printf(&l->app->arena, "a call of %s is left here: %s",
                             *call->callee ? call->callee : "an address", its_kept_reason_text(call->reason));
        its_diag_also_line(l->app->ctx, call->file, call->line, call->column, NULL, label);
    }
}

/* Which calls, taken out alone, take the advice with them? */
static its_status find_sites(cli_linking *l, const its_asm_advice *advice, bool *guilty, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        its_asm_result *without;
        its_status status = assemble_without(l, i + 1, &without);
        if (status != ITS_OK) return status;
        guilty[i] = !its_asm_says(without, advice);
        its_asm_free(without);
    }
    return ITS_OK;
}

static its_status tell_caused(cli_linking *l, const its_asm_advice *advice) {
    const its_report *report = its_linked_report(l->linked);
    bool guilty[MOST_TRIALS] = {0}, any = false;
    uint32_t n = report->n_sites < MOST_TRIALS ? report->n_sites : MOST_TRIALS;
    its_status status = n > 1 ? find_sites(l, advice, guilty, n) : ITS_OK;
    if (status != ITS_OK) return status;
    for (uint32_t i = 0; i < n; i++) any |= guilty[i];
    its_diag_begin(l->app->ctx, ITS_ERROR, ITS_NOWHERE, "%s: %s", advice->code, advice->text);
    for (uint32_t i = 0; i < n; i++)
        if (guilty[i] || !any) show_site(l, &report->sites[i], any || n == 1 ? "not so without this call" : "a call");
    show_line(l, advice);
    show_kept(l, advice);
    its_diag_hint(l->app->ctx, "%s",
                  any || n == 1 ? "the kernel without the call does not have this"
                                : "the kernel without all of the calls does not have this");
    return ITS_OK;
}

int cli_assembled_check(const cli_assembled *code, cli_linking *l) {
    const its_asm_advice *advice = NULL;
    int exit_code = CLI_OK;
    for (uint32_t from = 0; (advice = first_caused(code, from)); from = (uint32_t)(advice - code->after->advice) + 1) {
        its_status status = tell_caused(l, advice);
        exit_code = status == ITS_OK ? CLI_FAILED : cli_status(status);
        if (status != ITS_OK) break;
    }
    return exit_code;
}
