/*
 * Reading what ptxas says with -v. Its lines come in groups:
 *
 *     ptxas info    : Compiling entry function 'gemm' for 'sm_90a'
 *     ptxas info    : Function properties for gemm
 *         0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
 *     ptxas info    : Used 168 registers, used 2 barriers, 4096 bytes smem
 *
 * and advice anywhere: "(C7509) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ...
 * in the function 'gemm'". Lines of other shapes are passed over: they stay in the log.
 */
#include <stdlib.h>
#include <string.h>

#include "asm/asm.h"

/* Codes of advice: wgmma is serialised or waits early, setmaxnreg is ignored. */
enum { FIRST_IGNORED = 7504, LAST_IGNORED = 7508, FIRST_SERIALISED = 7509, LAST_SERIALISED = 7520 };

typedef struct reader {
    its_arena *arena;
    its_asm_funcs funcs;
    its_asm_advices advice;
} reader;

/* What stands between the first two quotes of `line`, or NULL. */
static const char *quoted(reader *r, const char *line) {
    const char *open = strchr(line, '\''), *close = open ? strchr(open + 1, '\'') : NULL;
    return close ? its_arena_text(r->arena, open + 1, (size_t)(close - open - 1)) : NULL;
}

/* The number in front of `unit`: 4096 of "..., 4096 bytes smem". */
static uint64_t number_before(const char *line, const char *unit) {
    const char *at = strstr(line, unit);
    if (!at) return 0;
    while (at > line && at[-1] == ' ') at--;
    while (at > line && at[-1] >= '0' && at[-1] <= '9') at--;
    return strtoull(at, NULL, 10);
}

static its_asm_func *func_called(reader *r, const char *name) {
    for (size_t i = 0; i < r->funcs.count; i++)
        if (strcmp(r->funcs.items[i].name, name) == 0) return &r->funcs.items[i];
    its_asm_func item = {.name = name};
    ITS_PUSH(r->arena, &r->funcs, item);
    return &r->funcs.items[r->funcs.count - 1];
}

/* Advice carries its code in parentheses: C and four or five digits. */
static void read_advice(reader *r, const char *line) {
    const char *code = strstr(line, "(C");
    if (!code) return;
    size_t digits = strspn(code + 2, "0123456789");
    if (digits < 3 || digits > 6 || code[2 + digits] != ')') return;
    const char *text = code + 3 + digits;
    text += strspn(text, " ");
    const char *named = strstr(text, "function '"), *function = named ? quoted(r, named) : NULL;
    unsigned long number = strtoul(code + 2, NULL, 10);
    its_asm_advice item = {
        .code = its_arena_text(r->arena, code + 1, digits + 1),
        .function = function ? function : "",
        .text = its_arena_text(r->arena, text, strlen(text)),
        .serialised = number >= FIRST_SERIALISED && number <= LAST_SERIALISED,
        .no_setmaxnreg = number >= FIRST_IGNORED && number <= LAST_IGNORED,
    };
    ITS_PUSH(r->arena, &r->advice, item);
}

static void read_line(reader *r, const char *line, const char **current) {
    static const char properties[] = "Function properties for ";
    const char *at;
    if ((at = strstr(line, "Compiling entry function"))) {
        *current = quoted(r, at);
        if (*current) func_called(r, *current)->entry = true;
    } else if ((at = strstr(line, properties))) {
        at += sizeof properties - 1;
        *current = its_arena_text(r->arena, at, strcspn(at, " \r\n"));
    } else if (*current && strstr(line, "bytes stack frame")) {
        its_asm_func *f = func_called(r, *current);
        f->stack = number_before(line, "bytes stack frame");
        f->spill_stores = number_before(line, "bytes spill stores");
        f->spill_loads = number_before(line, "bytes spill loads");
    } else if (*current && (at = strstr(line, ": Used ")) && strstr(at, "registers")) {
        its_asm_func *f = func_called(r, *current);
        f->registers = (uint32_t)number_before(line, "registers");
        f->barriers = (uint32_t)number_before(line, "barriers");
        f->shared = number_before(line, "bytes smem");
    }
    read_advice(r, line);
}

void its_asm_read_log(its_arena *arena, const char *log, its_asm_result *result) {
    reader r = {.arena = arena};
    const char *current = NULL;
    for (const char *line = log; *line;) {
        size_t size = strcspn(line, "\n");
        read_line(&r, its_arena_text(arena, line, size), &current);
        line += size + (line[size] == '\n');
    }
    result->log = log;
    result->funcs = r.funcs.items;
    result->n_funcs = (uint32_t)r.funcs.count;
    result->advice = r.advice.items;
    result->n_advice = (uint32_t)r.advice.count;
}
