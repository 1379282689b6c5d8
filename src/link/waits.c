/*
 * Which loops wait for memory to change?
 *
 * Those that do nothing but look: an innermost natural loop that reads global or generic memory in a way that sees what
 * others write (volatile, relaxed, acquire, compare-and-swap, exchange), and neither stores, nor meets other threads at
 * a barrier, nor calls. What NVSHMEM's waits, hand-written polling and spin locks compile to has this form, so nobody
 * has to mark a wait.
 *
 *     $L:  ld.acquire.sys.global.u32 %r1, [%rd1];     the load, the address
 *          setp.ne.u32 %p1, %r1, %r2;                 seen, expected; the loop ends at "=="
 *          @%p1 bra $L;                               the latch; $L is the header
 *
 * A wait is small: loops of more blocks or instructions than the bounds below are left alone, which also bounds the
 * time that this takes.
 */
#include "link/waits.h"

#include <stdlib.h>

enum { MOST_BLOCKS = 64, MOST_INSNS = 512 };

typedef struct block {
    its_node **first, **end; /* pointers to its first node and to the first behind it */
    its_insn *branch;        /* its last instruction, if that may go elsewhere */
    const its_loc *loc;      /* in force at its start */
    uint32_t edges;          /* of those that lead here, 1 + number of the last in `edges`; 0: none */
    uint32_t stamp;          /* of the loop that was looked at last and holds it */
    uint32_t back;           /* 1 + the block that `branch` goes back to; 0: it goes on, or nowhere */
    bool falls;
} block;

typedef struct edge {
    uint32_t from, next;
} edge;

typedef struct finder {
    its_linker *linker;
    its_func *func;
    ITS_VEC(block) blocks;
    ITS_VEC(edge) edges;
    uint32_t body[MOST_BLOCKS], n_body; /* of the loop that is looked at */
    uint32_t stamp;
} finder;

/* -- blocks -------------------------------------------------------------------------------------------------------- */

static const its_mnemonic *mnemonic(const finder *f, const its_insn *insn) {
    return its_mnemonic_of(f->linker->ctx, insn->name);
}

static void new_block(finder *f, its_node **at, const its_loc *loc) {
    if (f->blocks.count) f->blocks.items[f->blocks.count - 1].end = at;
    block new = {.first = at, .end = at, .loc = loc, .falls = true};
    ITS_PUSH(&f->linker->scratch, &f->blocks, new);
}

static bool ends_block(const finder *f, const its_insn *insn, bool *falls) {
    uint32_t effects = its_mnemonic_effects(mnemonic(f, insn));
    if (!(effects & (ITS_FX_BRANCH | ITS_FX_RETURN | ITS_FX_EXIT | ITS_FX_TRAP)) ||
        mnemonic(f, insn)->op == ITS_OP_UNKNOWN)
        return false;
    *falls = insn->guard != NULL;
    return true;
}

static void split(finder *f) {
    const its_loc *loc = NULL;
    its_node **at = &f->func->first;
    new_block(f, at, NULL);
    for (; *at; at = &(*at)->next) {
        if ((*at)->kind == ITS_NODE_LOC) loc = (const its_loc *)*at;
        if ((*at)->kind == ITS_NODE_LABEL) {
            new_block(f, at, loc);
            ((its_decl *)*at)->symbol->pass = (void *)(uintptr_t)f->blocks.count; /* 1 + its number */
        }
        block *last = &f->blocks.items[f->blocks.count - 1];
        if ((*at)->kind != ITS_NODE_INSN || !ends_block(f, (its_insn *)*at, &last->falls)) continue;
        last->branch = (its_insn *)*at;
        new_block(f, &(*at)->next, loc);
    }
    f->blocks.items[f->blocks.count - 1].end = at;
}

static void add_edge(finder *f, uint32_t from, uint32_t to) {
    edge new = {from, f->blocks.items[to].edges};
    ITS_PUSH(&f->linker->scratch, &f->edges, new);
    f->blocks.items[to].edges = (uint32_t)f->edges.count;
}

/* 1 + the number of the block that a label begins, or 0. */
static uint32_t block_of(const its_operand *operand) {
    bool label = operand->kind == ITS_OPND_SYM && operand->symbol->kind == ITS_SYM_LABEL;
    return label ? (uint32_t)(uintptr_t)operand->symbol->pass : 0;
}

static void add_branch(finder *f, uint32_t from, const its_operand *operand, bool direct) {
    uint32_t to = block_of(operand);
    if (!to) return;
    add_edge(f, from, to - 1);
    if (direct && to - 1 <= from) f->blocks.items[from].back = to;
}

static void connect_branch(finder *f, uint32_t from, const its_insn *insn) {
    for (uint16_t i = 0; i < insn->node.count; i++) {
        const its_operand *operand = &insn->ops[i];
        bool list = operand->kind == ITS_OPND_SYM && operand->symbol->kind == ITS_SYM_TARGETS && operand->symbol->node;
        const its_targets *targets = list ? (const its_targets *)operand->symbol->node : NULL;
        for (uint16_t k = 0; targets && k < targets->node.count; k++) add_branch(f, from, &targets->ops[k], false);
        if (!list) add_branch(f, from, operand, true);
    }
}

static void connect(finder *f) {
    for (uint32_t i = 0; i < f->blocks.count; i++) {
        if (f->blocks.items[i].falls && i + 1 < f->blocks.count) add_edge(f, i, i + 1);
        if (f->blocks.items[i].branch) connect_branch(f, i, f->blocks.items[i].branch);
    }
}

/* -- one loop ------------------------------------------------------------------------------------------------------ */

static bool is_inside(const finder *f, uint32_t number) {
    return f->blocks.items[number].stamp == f->stamp;
}

static bool take(finder *f, uint32_t number) {
    if (is_inside(f, number)) return true;
    if (f->n_body == MOST_BLOCKS) return false;
    f->blocks.items[number].stamp = f->stamp;
    f->body[f->n_body++] = number;
    return true;
}

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* What reaches a block that goes back to the header without passing it. False if that is no loop, or a large one. */
static bool gather(finder *f, uint32_t header) {
    f->stamp++;
    f->n_body = 0;
    take(f, header);
    for (uint32_t e = f->blocks.items[header].edges; e; e = f->edges.items[e - 1].next) {
        uint32_t from = f->edges.items[e - 1].from;
        if (f->blocks.items[from].back == header + 1 && !take(f, from)) return false;
    }
    for (uint32_t i = 1; i < f->n_body; i++) {
        if (f->body[i] == 0) return false; /* the function begins inside: not entered by its header alone */
        for (uint32_t e = f->blocks.items[f->body[i]].edges; e; e = f->edges.items[e - 1].next)
            if (!take(f, f->edges.items[e - 1].from)) return false;
    }
    qsort(f->body, f->n_body, sizeof *f->body, by_number);
    return true;
}

/* Does another loop lie inside? */
static bool is_innermost(const finder *f, uint32_t header) {
    for (uint32_t i = 0; i < f->n_body; i++) {
        uint32_t back = f->blocks.items[f->body[i]].back;
        if (back && back - 1 != header && is_inside(f, back - 1)) return false;
    }
    return true;
}

typedef void insn_visitor(finder *f, its_wait *wait, its_insn *insn, const its_loc *loc);

static void visit_body(finder *f, its_wait *wait, insn_visitor *visit) {
    for (uint32_t i = 0; i < f->n_body; i++) {
        const block *b = &f->blocks.items[f->body[i]];
        const its_loc *loc = b->loc;
        for (its_node *node = *b->first; node != *b->end; node = node->next) {
            if (node->kind == ITS_NODE_LOC) loc = (const its_loc *)node;
            if (node->kind == ITS_NODE_INSN) visit(f, wait, (its_insn *)node, loc);
        }
    }
}

/* -- what it does -------------------------------------------------------------------------------------------------- */

/* Sees what others write: a load that says so, or an atomic operation that is used to look. */
static bool looks(const its_mnemonic *m) {
    if (m->space != ITS_SPACE_NONE && m->space != ITS_SPACE_GLOBAL) return false;
    if (m->op == ITS_OP_LD)
        return its_mnemonic_has(m, ITS_MOD_VOLATILE) || its_mnemonic_has(m, ITS_MOD_RELAXED) ||
               its_mnemonic_has(m, ITS_MOD_ACQUIRE) || its_mnemonic_has(m, ITS_MOD_MMIO) ||
               its_mnemonic_has(m, ITS_MOD_CV);
    return m->op == ITS_OP_ATOM && (its_mnemonic_has(m, ITS_MOD_CAS) || its_mnemonic_has(m, ITS_MOD_EXCH));
}

static bool only_looks(const finder *f) {
    const uint32_t acts =
        ITS_FX_WRITE | ITS_FX_ATOMIC | ITS_FX_ASYNC | ITS_FX_BARRIER | ITS_FX_CALL | ITS_FX_STACK | ITS_FX_MATRIX;
    uint32_t n_insns = 0;
    bool any = false;
    for (uint32_t i = 0; i < f->n_body; i++) {
        const block *b = &f->blocks.items[f->body[i]];
        for (const its_node *node = *b->first; node != *b->end; node = node->next) {
            if (node->kind != ITS_NODE_INSN) continue;
            const its_mnemonic *m = mnemonic(f, (const its_insn *)node);
            bool look = looks(m);
            if (++n_insns > MOST_INSNS || (!look && its_mnemonic_effects(m) & acts)) return false;
            any |= look;
        }
    }
    return any;
}

/* -- what it compares ---------------------------------------------------------------------------------------------- */

/* While a loop is looked at, `pass` of its registers: holds what was read, or something computed from that alone. */
static bool is_read(const its_operand *operand) {
    return operand->kind == ITS_OPND_REG && operand->symbol->pass != NULL;
}

static void mark_read(its_operand *operand, void *user) {
    if (operand->kind == ITS_OPND_REG) operand->symbol->pass = user;
}

static void note_load(finder *f, its_wait *wait, its_insn *insn, const its_loc *loc) {
    its_operand *ops = insn->ops;
    if (!looks(mnemonic(f, insn)) || insn->node.count < 2 || ops[1].kind != ITS_OPND_ADDR) return;
    wait->load = insn;
    wait->address = &ops[1].list[0];
    wait->loc = loc;
    wait->type = its_mnemonic_type(mnemonic(f, insn), 0);
    wait->seen = ops[0].kind == ITS_OPND_REG ? &ops[0] : NULL;
    uint16_t n = ops[0].kind == ITS_OPND_VEC ? ops[0].count : 1;
    for (uint16_t i = 0; i < n; i++) mark_read(ops[0].kind == ITS_OPND_VEC ? &ops[0].list[i] : &ops[0], f);
}

/* Copies and conversions of what was read, also masks and sums with it. */
static void follow_value(finder *f, its_wait *wait, its_insn *insn, const its_loc *loc) {
    (void)wait;
    (void)loc;
    if (its_mnemonic_effects(mnemonic(f, insn)) != ITS_FX_PURE || insn->node.count < 2) return;
    if (insn->ops[0].kind != ITS_OPND_REG || insn->ops[0].symbol->type == ITS_TYPE_PRED) return;
    for (uint16_t i = 1; i < insn->node.count; i++)
        if (is_read(&insn->ops[i])) insn->ops[0].symbol->pass = f;
}

static its_mod opposite(its_mod compare) {
    static const its_mod pairs[][2] = {{ITS_MOD_EQ, ITS_MOD_NE},
                                       {ITS_MOD_LT, ITS_MOD_GE},
                                       {ITS_MOD_LE, ITS_MOD_GT},
                                       {ITS_MOD_LO, ITS_MOD_HS},
                                       {ITS_MOD_LS, ITS_MOD_HI}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (compare == pairs[i][0]) return pairs[i][1];
        if (compare == pairs[i][1]) return pairs[i][0];
    }
    return ITS_MOD_UNKNOWN;
}

/* The same comparison with its sides exchanged. */
static its_mod mirrored(its_mod compare) {
    static const its_mod pairs[][2] = {
        {ITS_MOD_LT, ITS_MOD_GT}, {ITS_MOD_LE, ITS_MOD_GE}, {ITS_MOD_LO, ITS_MOD_HI}, {ITS_MOD_LS, ITS_MOD_HS}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (compare == pairs[i][0]) return pairs[i][1];
        if (compare == pairs[i][1]) return pairs[i][0];
    }
    return compare;
}

/* +1: the loop ends if the predicate is true, -1: if it is false, 0: neither can be told. */
static int ends_loop(const finder *f, const its_symbol *predicate) {
    for (uint32_t i = 0; i < f->n_body; i++) {
        const block *b = &f->blocks.items[f->body[i]];
        if (!b->branch || b->branch->guard != predicate || b->branch->node.count != 1) continue;
        uint32_t to = block_of(&b->branch->ops[0]), next = f->body[i] + 1;
        bool stays = to && is_inside(f, to - 1), falls_in = next < f->blocks.count && is_inside(f, next);
        if (stays == falls_in) continue;
        bool leaves_if_true = stays == ((b->branch->node.flags & ITS_INSN_GUARD_NOT) != 0);
        return leaves_if_true ? 1 : -1;
    }
    return 0;
}

static bool is_integer(its_type type) {
    its_type_kind kind = its_type_kind_of(type);
    return (kind == ITS_KIND_BITS || kind == ITS_KIND_INT) && its_type_size(type) > 1 && its_type_size(type) <= 8;
}

static void note_compare(finder *f, its_wait *wait, its_insn *insn, const its_loc *loc) {
    (void)loc;
    const its_mnemonic *m = mnemonic(f, insn);
    if (m->op != ITS_OP_SETP || insn->node.count < 3 || insn->ops[0].kind != ITS_OPND_REG) return;
    if (!is_integer(its_mnemonic_type(m, 0))) return;
    bool first = is_read(&insn->ops[1]), second = is_read(&insn->ops[2]);
    const its_operand *other = &insn->ops[first ? 2 : 1];
    if (first == second || (other->kind != ITS_OPND_REG && other->kind != ITS_OPND_INT)) return;
    int ends = its_mnemonic_operation(m) == ITS_MOD_UNKNOWN ? ends_loop(f, insn->ops[0].symbol) : 0;
    if (!ends && wait->expected) return;
    wait->seen = &insn->ops[first ? 1 : 2];
    wait->expected = other;
    wait->type = its_mnemonic_type(m, 0);
    its_mod compare = its_mnemonic_compare(m);
    if (second) compare = mirrored(compare);
    wait->until = ends > 0 ? compare : ends < 0 ? opposite(compare) : ITS_MOD_UNKNOWN;
}

static void forget(its_operand *operand, void *user) {
    (void)user;
    if (operand->kind == ITS_OPND_REG) operand->symbol->pass = NULL;
}

static void forget_insn(finder *f, its_wait *wait, its_insn *insn, const its_loc *loc) {
    (void)f;
    (void)wait;
    (void)loc;
    its_node_visit(&insn->node, forget, NULL);
}

static void look_at_values(finder *f, its_wait *wait) {
    visit_body(f, wait, note_load);
    visit_body(f, wait, follow_value);
    visit_body(f, wait, note_compare);
    visit_body(f, wait, forget_insn);
    if (wait->seen && !is_integer(wait->type)) wait->seen = NULL;
}

/* -- all loops ----------------------------------------------------------------------------------------------------- */

static void note_way_in(finder *f, its_wait *wait, uint32_t header, uint32_t from, bool *ok) {
    block *b = &f->blocks.items[from];
    bool branches = b->branch && b->branch->node.count == 1 && block_of(&b->branch->ops[0]) == header + 1;
    if (!branches) {
        *ok &= from + 1 == header && b->falls; /* otherwise a table of targets: left alone */
    } else if (is_inside(f, from)) {
        its_node **at = b->first;
        while (*at != &b->branch->node) at = &(*at)->next;
        its_wait_branch latch = {b->branch, at};
        ITS_PUSH(&f->linker->scratch, &wait->latches, latch);
    } else {
        ITS_PUSH(&f->linker->scratch, &wait->entries, b->branch);
    }
}

static void look_at(finder *f, uint32_t header, its_waits *waits) {
    if (!gather(f, header) || !is_innermost(f, header) || !only_looks(f)) return;
    block *h = &f->blocks.items[header];
    its_wait wait = {.header = ((its_decl *)*h->first)->symbol, .header_at = h->first};
    bool ok = true;
    for (uint32_t e = h->edges; e; e = f->edges.items[e - 1].next)
        note_way_in(f, &wait, header, f->edges.items[e - 1].from, &ok);
    if (header && is_inside(f, header - 1)) wait.entered_by_loop = f->blocks.items[header - 1].falls;
    look_at_values(f, &wait);
    if (ok && wait.load) ITS_PUSH(&f->linker->scratch, waits, wait);
}

/* Labels of the function, whose `pass` has the block that they begin. */
static void forget_labels(const its_func *func) {
    for (its_node *node = func->first; node; node = node->next)
        if (node->kind == ITS_NODE_LABEL) ((its_decl *)node)->symbol->pass = NULL;
}

static void forget_registers(its_func *func) {
    for (its_node *node = func->first; node; node = node->next)
        if (node->kind == ITS_NODE_INSN) its_node_visit(node, forget, NULL);
}

void its_waits_find(its_linker *linker, its_func *func, its_waits *waits) {
    finder f = {.linker = linker, .func = func};
    forget_registers(func);
    split(&f);
    connect(&f);
    for (uint32_t i = 0; i < f.blocks.count; i++) {
        bool header = false;
        for (uint32_t e = f.blocks.items[i].edges; e && !header; e = f.edges.items[e - 1].next)
            header = f.blocks.items[f.edges.items[e - 1].from].back == i + 1;
        if (header) look_at(&f, i, waits);
    }
    forget_labels(func);
}
