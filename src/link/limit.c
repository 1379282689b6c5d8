/*
 * A time limit for waits, put into a module that was linked with `limit_waits`.
 *
 * Each loop that waits (waits.c) notes the time when it begins, and looks at it whenever it goes round. Past the limit,
 * the first thread of all to notice writes down what it has waited for, into memory of the host, and traps. Nothing is
 * put into a module whose waits are not limited.
 *
 *         mov.u64 %start, %globaltimer;          in front of the loop
 *     $L: ...
 *         mov.u64 %now, %globaltimer;            in front of each branch back
 *         sub.u64 %now, %now, %start;
 *         ld.global.u64 %limit, [intarsia_wait];
 *         setp.le.u64 %over, %now, %limit;
 *         @%over bra $go;
 *         @!%p1 bra $go;                         the loop ends after all
 *         ...                                    note it, trap
 *     $go:
 *         @%p1 bra $L;
 *
 * Two variables tell host and kernel of each other. `intarsia_wait` is set when the module has been loaded: the limit
 * in nanoseconds, the address of the host's record, the number of the module there; its fourth word is taken by the
 * thread that reports. `intarsia_waits` has a line for each wait: kernel, place, comparison, type, with tabs between.
 * What the record holds is said in intarsia/rt.h.
 */
#include <stdarg.h>
#include <string.h>

#include "base/intern.h"
#include "link/lines.h"
#include "link/make.h"
#include "link/waits.h"

static const char state_name[] = ITS_WAIT_STATE, table_name[] = ITS_WAIT_TABLE;

typedef struct limiter {
    its_linker *linker;
    its_module *out;
    its_func *func;
    const its_wait *wait;
    const its_node *like;                                   /* whose position what is put in has */
    its_node **at;                                          /* where the next node goes */
    its_symbol *start, *now, *limit, *value, *taken, *over; /* registers of `func`, NULL until there is a wait */
    its_symbol *state;
    its_map files; /* number -> its_file of the module */
    its_locs locs; /* of `func`, if it has a wait */
    its_position position;
    its_buffer table;
    uint32_t n_waits, n_labels;
} limiter;

/* -- nodes --------------------------------------------------------------------------------------------------------- */

static void insert(limiter *l, its_node *node) {
    node->next = *l->at;
    *l->at = node;
    l->at = &node->next;
}

static its_operand reg(its_symbol *symbol) {
    return (its_operand){.kind = ITS_OPND_REG, .symbol = symbol};
}

static its_operand number(uint64_t bits) {
    return (its_operand){.kind = ITS_OPND_INT, .bits = bits};
}

static its_operand special(limiter *l, const char *name) {
    return (its_operand){.kind = ITS_OPND_SREG, .name = its_intern_text(l->linker->ctx, name)};
}

static its_operand label(its_symbol *symbol) {
    return (its_operand){.kind = ITS_OPND_SYM, .symbol = symbol};
}

static its_operand state_word(limiter *l, uint32_t word) {
    return its_address_operand(l->out, label(l->state), 8 * (int64_t)word);
}

static its_insn *put(limiter *l, const char *name, int count, ...) {
    its_insn *insn =
        its_insn_new(l->out, its_intern_text(l->linker->ctx, name), (uint16_t)count, l->like->origin, l->like->pos);
    va_list operands;
    va_start(operands, count);
    for (int i = 0; i < count; i++) insn->ops[i] = va_arg(operands, its_operand);
    va_end(operands);
    insert(l, &insn->node);
    return insn;
}

static its_symbol *new_label(limiter *l) {
    its_name name = its_names_new(l->linker, "", "wait", l->n_labels++);
    its_symbol *label = its_label_new(l->out, name, l->func->node.origin, l->func->node.pos);
    label->id = l->func->n_labels++;
    return label;
}

static void put_label(limiter *l, its_symbol *label) {
    insert(l, its_label_place(l->out, label, l->like->origin, l->like->pos));
}

static its_symbol *new_reg(limiter *l, const char *what, its_type type) {
    its_name name = its_names_new(l->linker, "%", what, 0);
    its_symbol *symbol = its_reg_new(l->out, name, type, l->func->node.origin, l->func->node.pos);
    symbol->id = l->func->n_regs++;
    return symbol;
}

/* -- the module's variables ---------------------------------------------------------------------------------------- */

static its_var *new_var(limiter *l, const char *name, its_type type, uint32_t align, uint64_t count) {
    its_module *out = l->out;
    its_var *var = its_node_new(out, ITS_NODE_VAR, sizeof *var, out->origin, 0);
    its_symbol *symbol = ITS_NEW(its_module_arena(out), its_symbol);
    uint64_t *dims = its_arena_alloc(its_module_arena(out), sizeof *dims);
    *dims = count;
    *symbol = (its_symbol){.name = its_intern_text(l->linker->ctx, name),
                           .kind = ITS_SYM_VAR,
                           .space = ITS_SPACE_GLOBAL,
                           .type = (uint8_t)type,
                           .vec = 1,
                           .flags = ITS_SYM_VISIBLE | ITS_SYM_DEFINED | ITS_SYM_ARRAY,
                           .n_dims = 1,
                           .dims = dims,
                           .align = align,
                           .size = count * its_type_size(type),
                           .origin = out->origin,
                           .node = &var->node};
    var->symbol = symbol;
    its_module_add_symbol(out, symbol);
    return var;
}

static void set_init(limiter *l, its_var *var, uint32_t count, const char *bytes, uint64_t first) {
    var->has_init = true;
    var->n_init = count;
    var->init = ITS_NEW_ARRAY(its_module_arena(l->out), its_init, count);
    for (uint32_t i = 0; i < count; i++)
        var->init[i] = (its_init){.kind = ITS_OPND_INT,
                                  .index = i,
                                  .bits = bytes    ? (unsigned char)bytes[i]
                                          : i == 0 ? first
                                                   : 0};
}

/* In front of the first function. */
static void insert_variable(limiter *l, its_var *var) {
    its_node **at = &l->out->first;
    while (*at && (*at)->kind != ITS_NODE_FUNC) at = &(*at)->next;
    var->node.next = *at;
    *at = &var->node;
}

/* The host's names for them must be free. */
static bool are_free(limiter *l) {
    static const char *const names[] = {state_name, table_name};
    for (size_t i = 0; i < 2; i++) {
        its_symbol *symbol = its_module_find(l->out, names[i]);
        if (!symbol) continue;
        its_diag_begin(l->linker->ctx, ITS_ERROR, its_symbol_place(symbol),
                       "'%s' is the name of what limits waits, and the module has it already", names[i]);
        its_diag_hint(l->linker->ctx, "rename it; if the module was linked with a limit before, don't limit it twice");
        return false;
    }
    return true;
}

/* -- the table ----------------------------------------------------------------------------------------------------- */

static const char *path_of(const limiter *l, uint32_t number) {
    const its_file *file = its_file_numbered(&l->files, number);
    return file ? file->path->text : NULL;
}

/* Of the source lines that a line was inlined through, the innermost in a file of the user. */
static bool is_ours(const char *path) {
    return strncmp(path, "gpu/", 4) == 0 || strncmp(path, "intarsia/", 9) == 0 || strstr(path, "nvshmem/") != NULL ||
           strstr(path, "/nvshmem_") != NULL;
}

static const char *source_line(limiter *l, uint32_t *line) {
    const its_loc *loc = l->wait->loc;
    const char *path = NULL;
    for (unsigned depth = 0; loc && depth < 32; depth++) {
        path = path_of(l, loc->file);
        *line = loc->line;
        if (!loc->inlined || (path && !is_ours(path))) break;
        const its_loc *outer = its_locs_outer(&l->locs, loc);
        if (!outer) {
            path = path_of(l, loc->at_file);
            *line = loc->at_line;
        }
        loc = outer;
    }
    return path;
}

static void put_text(limiter *l, const char *text) {
    for (; *text; text++) its_buffer_char(&l->table, (unsigned char)*text < ' ' ? '?' : *text);
}

/* "kernel TAB file:line TAB comparison TAB type", ended by a new line. */
static void describe(limiter *l) {
    const its_wait *wait = l->wait;
    uint32_t line = 0;
    const char *path = source_line(l, &line);
    if (!path) {
        its_place place = its_node_place(&wait->load->node);
        path = place.source->name;
        its_position_move(&l->position, place);
        line = l->position.line;
    }
    put_text(l, l->func->symbol->name->text);
    its_buffer_char(&l->table, '\t');
    put_text(l, path);
    bool known = wait->expected && wait->until != ITS_MOD_UNKNOWN;
    its_buffer_printf(&l->table, ":%u\t%s\t%s\n", line,
                      known            ? its_mod_text(wait->until) + 1
                      : wait->expected ? "?"
                                       : "",
                      wait->seen ? its_type_text(wait->type) + 1 : "");
}

/* -- a wait -------------------------------------------------------------------------------------------------------- */

static void need_registers(limiter *l) {
    if (l->start) return;
    l->start = new_reg(l, "start", ITS_TYPE_B64);
    l->now = new_reg(l, "now", ITS_TYPE_B64);
    l->limit = new_reg(l, "limit", ITS_TYPE_B64);
    l->value = new_reg(l, "value", ITS_TYPE_B64);
    l->taken = new_reg(l, "taken", ITS_TYPE_B32);
    l->over = new_reg(l, "over", ITS_TYPE_PRED);
}

static void declare_registers(limiter *l) {
    its_symbol *const all[] = {l->start, l->now, l->limit, l->value, l->taken, l->over};
    l->at = &l->func->first;
    for (size_t i = 0; l->start && i < sizeof all / sizeof *all; i++) insert(l, &all[i]->range->node);
}

static void note_start(limiter *l) {
    const its_wait *wait = l->wait;
    its_symbol *enter = new_label(l);
    l->at = wait->header_at;
    l->like = *wait->header_at;
    if (wait->entered_by_loop) put(l, "bra", 1, label(wait->header));
    put_label(l, enter);
    put(l, "mov.u64", 2, reg(l->start), special(l, "%globaltimer"));
    for (size_t i = 0; i < wait->entries.count; i++) wait->entries.items[i]->ops[0].symbol = enter;
}

/* The operand as 64 bits in `value`. */
static void put_value(limiter *l, const its_operand *operand) {
    bool is_signed = l->wait->type >= ITS_TYPE_S16 && l->wait->type <= ITS_TYPE_S64;
    uint32_t size = operand->kind == ITS_OPND_REG ? its_type_size((its_type)operand->symbol->type) : 8;
    const char *name = "mov.u64";
    if (size == 4) name = is_signed ? "cvt.s64.s32" : "cvt.u64.u32";
    if (size == 2) name = is_signed ? "cvt.s64.s16" : "cvt.u64.u16";
    put(l, name, 2, reg(l->value), *operand);
}

static void store_value(limiter *l, uint32_t word) {
    put(l, "st.volatile.global.u64", 2, its_address_operand(l->out, reg(l->limit), 8 * (int64_t)word), reg(l->value));
}

static void store_address(limiter *l) {
    its_operand base = *l->wait->address;
    int64_t offset = base.offset;
    if (base.kind != ITS_OPND_REG || its_type_size((its_type)base.symbol->type) != 8) return;
    base.offset = 0;
    base.flags = 0;
    put(l, "add.s64", 3, reg(l->value), base, number((uint64_t)offset));
    store_value(l, ITS_WAIT_ADDRESS);
}

static void store_place(limiter *l) {
    static const char *const names[] = {"%ctaid.x", "%ctaid.y", "%ctaid.z", "%tid.x", "%tid.y", "%tid.z"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        put(l, "mov.u32", 2, reg(l->taken), special(l, names[i]));
        put(l, "cvt.u64.u32", 2, reg(l->value), reg(l->taken));
        store_value(l, ITS_WAIT_CTA + i);
    }
}

/* `limit` holds the record's address from here on. */
static void put_report(limiter *l) {
    const its_wait *wait = l->wait;
    put(l, "ld.global.u64", 2, reg(l->limit), state_word(l, 1));
    put(l, "ld.global.u64", 2, reg(l->value), state_word(l, 2));
    store_value(l, ITS_WAIT_MODULE);
    put(l, "mov.u64", 2, reg(l->value), number(l->n_waits));
    store_value(l, ITS_WAIT_NUMBER);
    if (wait->seen) {
        put_value(l, wait->seen);
        store_value(l, ITS_WAIT_SEEN);
    }
    if (wait->expected) {
        put_value(l, wait->expected);
        store_value(l, ITS_WAIT_EXPECTED);
    }
    store_address(l);
    store_place(l);
    put(l, "membar.sys", 0);
    put(l, "mov.u64", 2, reg(l->value), number(1));
    store_value(l, ITS_WAIT_WRITTEN);
    put(l, "membar.sys", 0);
    put(l, "trap", 0);
}

static void put_branch(limiter *l, its_symbol *target, its_symbol *guard, its_name suffix, bool negated) {
    its_insn *branch = put(l, "bra", 1, label(target));
    branch->guard = guard;
    branch->guard_suffix = suffix;
    if (negated) branch->node.flags |= ITS_INSN_GUARD_NOT;
}

static void check_time(limiter *l, const its_wait_branch *latch) {
    its_symbol *go = new_label(l);
    const its_insn *branch = latch->insn;
    l->at = latch->at;
    l->like = &branch->node;
    put(l, "mov.u64", 2, reg(l->now), special(l, "%globaltimer"));
    put(l, "sub.s64", 3, reg(l->now), reg(l->now), reg(l->start));
    put(l, "ld.global.u64", 2, reg(l->limit), state_word(l, 0));
    put(l, "setp.le.s64", 3, reg(l->over), reg(l->now), reg(l->limit));
    put_branch(l, go, l->over, NULL, false);
    if (branch->guard)
        put_branch(l, go, branch->guard, branch->guard_suffix, !(branch->node.flags & ITS_INSN_GUARD_NOT));
    put(l, "atom.global.cas.b32", 4, reg(l->taken), state_word(l, 3), number(0), number(1));
    put(l, "setp.ne.u32", 3, reg(l->over), reg(l->taken), number(0));
    put_branch(l, go, l->over, NULL, false); /* somebody else reports, and ends us all */
    put_report(l);
    put_label(l, go);
}

static void limit_wait(limiter *l) {
    need_registers(l);
    note_start(l);
    for (size_t i = 0; i < l->wait->latches.count; i++) check_time(l, &l->wait->latches.items[i]);
    describe(l);
    l->n_waits++;
}

static its_status limit_body(void *user) {
    limiter *l = user;
    its_var *state = NULL;
    for (its_func *func = NULL; (func = its_module_next_func(l->out, func));) {
        its_waits waits = {0};
        l->func = func;
        l->start = NULL;
        its_waits_find(l->linker, func, &waits);
        if (waits.count && !state) {
            if (!are_free(l)) return ITS_ERR_INPUT;
            state = new_var(l, state_name, ITS_TYPE_B64, 8, 4);
            set_init(l, state, 4, NULL, INT64_MAX);
            l->state = state->symbol;
            its_files_note(l->linker, l->out, &l->files);
        }
        if (waits.count) its_locs_read(l->linker, func, &l->locs);
        for (size_t i = 0; i < waits.count; i++) {
            l->wait = &waits.items[i];
            limit_wait(l);
        }
        declare_registers(l);
    }
    if (!state) return ITS_OK;
    its_var *table = new_var(l, table_name, ITS_TYPE_B8, 1, l->table.size);
    set_init(l, table, (uint32_t)l->table.size, l->table.data, 0);
    insert_variable(l, state);
    insert_variable(l, table);
    return ITS_OK;
}

/*
 * Requires: its_link_strip.
 * Ensures: if the options say so, each loop that waits traps past the limit that the host has set; else nothing.
 */
bool its_link_limit(its_linker *linker) {
    if (!linker->input->options.limit_waits) return true;
    limiter l = {.linker = linker, .out = linker->out};
    its_buffer_init(&l.table, linker->ctx);
    its_status status = its_protect(linker->ctx, limit_body, &l);
    its_buffer_free(&l.table);
    if (status == ITS_ERR_NOMEM) its_guard_raise(linker->ctx);
    return status == ITS_OK;
}
