/* vprintf, __assertfail, malloc and free, one lane after the other. */
#include "sim/builtin.h"

#include <stdio.h>

#define TEXT_LIMIT ((size_t)1 << 20) /* of a string that device code passes */

/* What the CUDA run time declares: bytes of each argument and of the result. */
static const struct builtin {
    const char *name;
    uint8_t kind, n_args, args[5], result;
} builtins[] = {
    {"vprintf", ITS_SIM_CALL_PRINT, 2, {8, 8}, 4},
    {"__assertfail", ITS_SIM_CALL_ASSERT, 5, {8, 8, 4, 8, 8}, 0},
    {"malloc", ITS_SIM_CALL_MALLOC, 1, {8}, 8},
    {"free", ITS_SIM_CALL_FREE, 1, {8}, 0},
};
#define N_BUILTINS (sizeof(builtins) / sizeof(builtins[0]))

its_sim_builtin its_sim_builtin_named(const char *name) {
    for (size_t i = 0; i < N_BUILTINS; i++)
        if (strcmp(builtins[i].name, name) == 0) return (its_sim_builtin)builtins[i].kind;
    return ITS_SIM_CALL_FUNC;
}

bool its_sim_builtin_fits(const its_sim_call *call) {
    for (size_t i = 0; i < N_BUILTINS; i++) {
        const struct builtin *b = &builtins[i];
        if (b->kind != call->kind) continue;
        if (call->n_args != b->n_args || call->n_results > (b->result ? 1u : 0u)) return false;
        for (uint32_t k = 0; k < call->n_args; k++)
            if (call->args[k].size != b->args[k]) return false;
        return call->n_results == 0 || call->results[0].size == b->result;
    }
    return false;
}

/* -- one lane's view of memory ------------------------------------------------------------------------------------- */

typedef struct lane_call {
    its_sim_exec *x;
    const its_sim_op *op;
    const its_sim_call *call;
    uint32_t lane;
    char *text; /* under construction, a block of the context */
    size_t size, capacity;
    bool failed; /* a fault was recorded */
} lane_call;

static uint64_t argument(const lane_call *c, uint32_t index) {
    const its_sim_slot *slot = &c->call->args[index];
    uint64_t value = 0;
    its_sim_slot_get(c->x, slot, c->lane, &value, slot->size);
    return value;
}

static void set_result(lane_call *c, uint64_t value) {
    if (c->call->n_results) its_sim_slot_set(c->x, &c->call->results[0], c->lane, &value, c->call->results[0].size);
}

/* The memory behind a generic address that the lane may read; NULL after a fault. */
static const char *readable(lane_call *c, uint64_t address, uint32_t bytes) {
    its_sim_access access;
    access.address[c->lane] = address;
    if (its_sim_access_check(c->x, c->op, 1u << c->lane, bytes, false, &access)) return access.pointer[c->lane];
    c->failed = true;
    return NULL;
}

static void fail(lane_call *c, its_sim_fault_kind kind, const char *why) {
    its_sim_fault_at(c->x, c->op, 1u << c->lane, kind, "%s", why);
    c->failed = true;
}

/* -- text ---------------------------------------------------------------------------------------------------------- */

static void put(lane_call *c, const char *text, size_t size) {
    if (c->failed) return;
    if (!c->text || c->capacity - c->size < size + 1) {
        its_context *ctx = c->x->grid->ctx;
        size_t wanted = (c->size + size + 1) * 2;
        char *bigger = its_block_alloc(ctx, wanted);
        if (!bigger) {
            fail(c, ITS_SIM_FAULT_NOMEM, "");
            return;
        }
        if (c->text) memcpy(bigger, c->text, c->size);
        its_free(ctx, c->text);
        c->text = bigger;
        c->capacity = wanted;
    }
    memcpy(c->text + c->size, text, size);
    c->size += size;
    c->text[c->size] = 0;
}

static void put_string(lane_call *c, uint64_t address, size_t limit) {
    for (size_t i = 0; i < limit; i++) {
        const char *byte = readable(c, address + i, 1);
        if (!byte || *byte == 0) return;
        put(c, byte, 1);
        if (i == TEXT_LIMIT) {
            fail(c, ITS_SIM_FAULT_PRINT, "a string has no end");
            return;
        }
    }
}

static void free_text(lane_call *c) {
    its_free(c->x->grid->ctx, c->text);
    c->text = NULL;
    c->size = c->capacity = 0;
}

/* -- vprintf ------------------------------------------------------------------------------------------------------- */

/* Reads the next variable argument; they lie one after the other, each aligned to its size. */
static uint64_t next_argument(lane_call *c, uint64_t *at, uint32_t bytes) {
    *at = (*at + bytes - 1) & ~(uint64_t)(bytes - 1);
    uint64_t value = 0;
    const char *from = readable(c, *at, bytes);
    if (from) memcpy(&value, from, bytes);
    *at += bytes;
    return value;
}

/* A conversion taken from the format: "%-08.3lld" with its width and precision filled in. */
typedef struct conversion {
    char flags[8];
    int width, precision;   /* -1: none */
    unsigned shorts, longs; /* how many h, how many of the others */
    char letter;
} conversion;

static int number(const char **at) {
    int n = 0;
    while (**at >= '0' && **at <= '9') {
        if (n < 100000) n = n * 10 + (**at - '0');
        ++*at;
    }
    return n;
}

static int width_of(lane_call *c, const char **at, uint64_t *args) {
    if (**at != '*') return number(at);
    ++*at;
    return (int)(int32_t)next_argument(c, args, 4);
}

/* Reads a conversion behind its %. Returns where the format goes on. */
static const char *read_conversion(lane_call *c, const char *at, uint64_t *args, conversion *to) {
    size_t n = 0;
    *to = (conversion){.width = -1, .precision = -1};
    while (*at && strchr("-+ #0", *at)) {
        if (n < sizeof(to->flags) - 1) to->flags[n++] = *at;
        at++;
    }
    if (*at == '*' || (*at >= '0' && *at <= '9')) to->width = width_of(c, &at, args);
    if (to->width < -1) { /* a negative width argument means: to the left */
        to->width = to->width > -100000 ? -to->width : 100000;
        if (n < sizeof(to->flags) - 1) to->flags[n] = '-';
    }
    if (*at == '.') {
        at++;
        to->precision = width_of(c, &at, args);
    }
    for (; *at && strchr("hljztL", *at); at++) {
        to->shorts += *at == 'h';
        to->longs += *at != 'h';
    }
    to->letter = *at;
    return *at ? at + 1 : at;
}

static void put_conversion(lane_call *c, const conversion *v, const char *length, uint64_t bits) {
    char format[32], text[512];
    double real;
    memcpy(&real, &bits, sizeof(real));
    int width = v->width < 0 ? 0 : v->width > 200 ? 200 : v->width;
    int precision = v->precision > 200 ? 200 : v->precision;
    snprintf(format, sizeof(format), "%%%s*.*%s%c", v->flags, length, v->letter);
    int size;
    if (strchr("fFeEgGaA", v->letter))
        size = snprintf(text, sizeof(text), format, width, precision, real);
    else if (v->letter == 'c')
        size = snprintf(text, sizeof(text), "%*c", width, (int)bits);
    else
        size = snprintf(text, sizeof(text), format, width, precision, (long long)bits);
    if (size > 0) put(c, text, (size_t)size < sizeof(text) ? (size_t)size : sizeof(text) - 1);
}

static void pad(lane_call *c, size_t from, int width) {
    for (size_t i = from; width > 0 && i < (size_t)width; i++) put(c, " ", 1);
}

/* The next argument as a whole number of the size that the conversion says: of a short or char the lowest bits. */
static uint64_t next_number(lane_call *c, const conversion *v, uint64_t *args) {
    if (v->longs) return next_argument(c, args, 8);
    uint32_t word = (uint32_t)next_argument(c, args, 4);
    bool is_signed = v->letter == 'd' || v->letter == 'i';
    if (v->shorts == 0) return is_signed ? (uint64_t)(int64_t)(int32_t)word : word;
    if (v->shorts == 1) return is_signed ? (uint64_t)(int64_t)(int16_t)word : (uint16_t)word;
    return is_signed ? (uint64_t)(int64_t)(int8_t)word : (uint8_t)word;
}

static void put_text_conversion(lane_call *c, const conversion *v, uint64_t address) {
    lane_call text = *c;
    text.text = NULL;
    text.size = text.capacity = 0;
    put(&text, "", 0);
    put_string(&text, address, v->precision >= 0 ? (size_t)v->precision : SIZE_MAX);
    c->failed = text.failed;
    bool to_left = strchr(v->flags, '-') != NULL;
    if (!to_left) pad(c, text.size, v->width);
    if (text.size) put(c, text.text, text.size);
    if (to_left) pad(c, text.size, v->width);
    free_text(&text);
}

static void convert(lane_call *c, const conversion *v, uint64_t *args, const char *whole, size_t whole_size) {
    switch (v->letter) {
    case '%':
        put(c, "%", 1);
        return;
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        put_conversion(c, v, "ll", next_number(c, v, args));
        return;
    case 'c':
        put_conversion(c, v, "", next_argument(c, args, 4));
        return;
    case 'p': {
        conversion hex = {.flags = "#", .width = v->width, .precision = -1, .letter = 'x'};
        put_conversion(c, &hex, "ll", next_argument(c, args, 8));
        return;
    }
    case 's':
        put_text_conversion(c, v, next_argument(c, args, 8));
        return;
    default:
        if (v->letter && strchr("fFeEgGaA", v->letter))
            put_conversion(c, v, "", next_argument(c, args, 8));
        else
            put(c, whole, whole_size); /* as it stands, which is what the GPU's printf does */
    }
}

static void format_text(lane_call *c, const char *format, uint64_t args) {
    uint64_t count = 0;
    for (const char *at = format; *at && !c->failed;) {
        const char *percent = strchr(at, '%');
        size_t plain = percent ? (size_t)(percent - at) : strlen(at);
        put(c, at, plain);
        if (!percent) break;
        conversion v;
        at = read_conversion(c, percent + 1, &args, &v);
        convert(c, &v, &args, percent, (size_t)(at - percent));
        count += v.letter != '%';
    }
    set_result(c, count);
}

static void print(lane_call *c) {
    lane_call format = *c;
    put(&format, "", 0);
    put_string(&format, argument(c, 0), SIZE_MAX);
    c->failed = format.failed;
    if (!c->failed) format_text(c, format.text, argument(c, 1));
    free_text(&format);
    const its_sim_machine *machine = c->x->program->machine;
    if (!c->failed && c->size && machine->print) machine->print(machine->user, c->text, c->size);
    free_text(c);
}

/* -- __assertfail -------------------------------------------------------------------------------------------------- */

static void assertion(lane_call *c) {
    char line[16];
    snprintf(line, sizeof(line), "%u", (unsigned)argument(c, 2));
    put(c, "'", 1);
    put_string(c, argument(c, 0), SIZE_MAX);
    put(c, "' at ", 5);
    put_string(c, argument(c, 1), SIZE_MAX);
    put(c, ":", 1);
    put(c, line, strlen(line));
    put(c, " in ", 4);
    put_string(c, argument(c, 3), SIZE_MAX);
    if (!c->failed) fail(c, ITS_SIM_FAULT_ASSERT, c->text);
    free_text(c);
}

/* -- malloc, free -------------------------------------------------------------------------------------------------- */

static void allocate(lane_call *c) {
    its_sim_program *program = (its_sim_program *)c->x->program;
    uint64_t size = argument(c, 0), limit = program->machine->heap_limit;
    if (limit == 0) limit = (uint64_t)8 << 20;
    void *block = NULL;
    if (size && size <= limit - program->heap_used) block = its_sim_program_take(program, size, 16);
    uint64_t address = (uint64_t)(uintptr_t)block;
    if (block && its_sim_memory_add(c->x->memory, address, size, ITS_SIM_HEAP, false, NULL) != ITS_OK) {
        its_sim_program_give(program, block, size);
        block = NULL;
    }
    if (block) {
        its_sim_memory_fresh(block, size);
        its_sim_memory_set_owner(c->x->memory, address, program);
        program->heap_used += size;
    }
    set_result(c, block ? address : 0);
}

static void release(lane_call *c) {
    uint64_t address = argument(c, 0);
    if (address == 0) return;
    const its_sim_allocation *found = its_sim_memory_at(c->x->memory, address);
    if (!found || found->base != address || found->kind != ITS_SIM_HEAP) {
        char text[64];
        snprintf(text, sizeof(text), "address 0x%llx", (unsigned long long)address);
        fail(c, ITS_SIM_FAULT_FREE, text);
        return;
    }
    its_sim_program *owner = (its_sim_program *)found->owner;
    uint64_t size = found->size;
    owner->heap_used -= size;
    its_sim_memory_remove(c->x->memory, address);
    its_sim_program_give(owner, (void *)(uintptr_t)address, size);
}

its_sim_verdict its_sim_builtin_call(its_sim_exec *x, const its_sim_op *op, const its_sim_call *call, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        lane_call c = {.x = x, .op = op, .call = call, .lane = (uint32_t)__builtin_ctz(left)};
        switch (call->kind) {
        case ITS_SIM_CALL_PRINT:
            print(&c);
            break;
        case ITS_SIM_CALL_ASSERT:
            assertion(&c);
            break;
        case ITS_SIM_CALL_MALLOC:
            allocate(&c);
            break;
        default:
            release(&c);
            break;
        }
        if (c.failed) return ITS_SIM_STOP;
    }
    x->frag->wrote = true;
    return ITS_SIM_NEXT;
}
