/*
 * Programs: a module decoded once. The steps are those of its_sim_program_new; what the simulator doesn't have is noted
 * on the way and told when an entry that can reach it is looked up.
 */
#include "sim/program.h"

#include "ptx/module.h"
#include "sim/exec.h"
#include "sim/loops.h"

/* -- memory -------------------------------------------------------------------------------------------------------- */

/* Blocks of the context carry what was allocated in front of them. */
typedef struct block_head {
    void *block;
} block_head;

void *its_sim_program_take(const its_sim_program *program, size_t size, size_t align) {
    const its_sim_machine *machine = program->machine;
    if (machine->take) return machine->take(machine->user, size, align);
    if (align < sizeof(block_head)) align = sizeof(block_head);
    if (size > SIZE_MAX - 2 * align) return NULL;
    void *block = its_block_alloc(program->ctx, size + 2 * align);
    if (!block) return NULL;
    uintptr_t at = ((uintptr_t)block + sizeof(block_head) + align - 1) & ~(uintptr_t)(align - 1);
    ((block_head *)at)[-1].block = block;
    return (void *)at;
}

void its_sim_program_give(const its_sim_program *program, void *block, size_t size) {
    const its_sim_machine *machine = program->machine;
    if (!block) return;
    if (machine->take)
        machine->give(machine->user, block, size);
    else
        its_free(program->ctx, ((block_head *)block)[-1].block);
}

/* -- functions ----------------------------------------------------------------------------------------------------- */

static uint32_t align_of(const its_symbol *symbol) {
    uint32_t natural = its_type_size((its_type)symbol->type) * (symbol->vec ? symbol->vec : 1u);
    if (natural > 16) natural = 16;
    return symbol->align > natural ? symbol->align : natural ? natural : 1;
}

/* Lays the parameters of an entry out in its parameter block. */
static void lay_out_params(its_sim_program *program, const its_func *node, its_sim_entry *entry) {
    its_sim_param *params = ITS_NEW_ARRAY(&program->arena, its_sim_param, node->params.n ? node->params.n : 1);
    uint64_t end = 0;
    for (uint32_t i = 0; i < node->params.n; i++) {
        const its_symbol *symbol = node->params.items[i];
        uint64_t align = align_of(symbol);
        end = (end + align - 1) & ~(align - 1);
        params[i] = (its_sim_param){(uint32_t)end, (uint32_t)symbol->size};
        end += symbol->size;
        if (end > UINT32_MAX / 2) end = UINT32_MAX / 2; /* refused when the launch is checked: no such block fits */
    }
    entry->n_params = node->params.n;
    entry->params = params;
    entry->param_size = (uint32_t)end;
}

/* The index-th number of a directive, whose operands are all of its words, commas too; 1 if there are fewer. */
static uint32_t directive_value(const its_directive *directive, uint32_t index) {
    if (2 * index >= directive->node.count) return 1;
    const its_operand *operand = &directive->ops[2 * index];
    return operand->kind == ITS_OPND_INT && operand->bits <= UINT32_MAX ? (uint32_t)operand->bits : 1;
}

static void read_directives(const its_func *node, its_sim_entry *entry) {
    entry->max_threads = 1024;
    entry->cluster[0] = entry->cluster[1] = entry->cluster[2] = 1;
    for (const its_node *at = node->directives; at; at = at->next) {
        if (at->kind != ITS_NODE_DIRECTIVE) continue;
        const its_directive *directive = (const its_directive *)at;
        if (strcmp(directive->name->text, ".reqnctapercluster") == 0)
            for (uint32_t k = 0; k < 3; k++) entry->cluster[k] = directive_value(directive, k);
        bool required = strcmp(directive->name->text, ".reqntid") == 0;
        if (!required && strcmp(directive->name->text, ".maxntid") != 0) continue;
        uint64_t threads = 1;
        for (uint32_t k = 0; k < 3; k++) {
            uint32_t n = directive_value(directive, k);
            threads *= n <= 4096 ? n : 4096;
            if (required) entry->reqntid[k] = n;
        }
        if (threads < entry->max_threads) entry->max_threads = (uint32_t)threads;
    }
}

static void add_func(its_sim_program *program, const its_func *node, uint32_t index) {
    its_sim_func *func = &program->funcs[index];
    its_symbol *symbol = node->symbol;
    symbol->pass = (void *)(uintptr_t)(index + 1);
    func->name = its_arena_text(&program->arena, symbol->name->text, symbol->name->size);
    func->has_body = node->has_body;
    func->is_entry = symbol->flags & ITS_SYM_ENTRY;
    func->address_taken = symbol->flags & ITS_SYM_ADDRESS_TAKEN;
    func->where = its_sim_where_of(program, &node->node).node;
    if (!func->is_entry) return;
    func->entry = (its_sim_entry){.name = func->name, .program = program, .func = index};
    lay_out_params(program, node, &func->entry);
    read_directives(node, &func->entry);
}

/* Fills funcs from the module's functions; symbol->pass of each becomes its number + 1. */
static void list_funcs(its_sim_program *program, const its_module *module) {
    uint32_t count = 0;
    for (its_func *f = its_module_next_func(module, NULL); f; f = its_module_next_func(module, f)) count++;
    program->funcs = ITS_NEW_ARRAY(&program->arena, its_sim_func, count ? count : 1);
    /* A symbol's definition is listed last, so that it is the one that the symbol stands for. */
    for (int defined = 0; defined < 2; defined++)
        for (its_func *f = its_module_next_func(module, NULL); f; f = its_module_next_func(module, f))
            if (f->has_body == (defined == 1)) add_func(program, f, program->n_funcs++);
}

static void list_files(its_sim_program *program, const its_module *module) {
    for (const its_node *node = module->first; node; node = node->next) {
        if (node->kind != ITS_NODE_FILE) continue;
        const its_file *file = (const its_file *)node;
        its_sim_file copy = {file->index, its_arena_text(&program->arena, file->path->text, file->path->size)};
        ITS_PUSH(&program->arena, &program->files, copy);
    }
}

/* -- making and freeing -------------------------------------------------------------------------------------------- */

typedef struct job {
    its_sim_program *program;
    const its_module *module;
} job;

static its_status body(void *user) {
    job *j = user;
    its_sim_program *program = j->program;
    if (j->module->address_size != 64) {
        its_diag_begin(program->ctx, ITS_ERROR, its_at(j->module->source, j->module->target_pos),
                       "the simulator runs 64-bit modules only");
        its_diag_hint(program->ctx, "say .address_size 64");
        return ITS_ERR_INPUT;
    }
    list_files(program, j->module);
    list_funcs(program, j->module);
    its_status status = its_sim_program_place_variables(program, j->module);
    if (status == ITS_OK) status = its_sim_program_initialise(program, j->module);
    if (status != ITS_OK) return status;
    its_sim_program_decode(program, j->module);
    its_sim_program_bind(program);
    its_sim_program_find_loops(program);
    its_sim_program_measure(program);
    return ITS_OK;
}

its_status its_sim_program_new(its_context *ctx, const its_sim_machine *machine, const its_module *module,
                               its_sim_program **result) {
    *result = NULL;
    its_sim_program *program = its_block_alloc(ctx, sizeof(*program));
    if (!program) return its_no_memory(ctx);
    memset(program, 0, sizeof(*program));
    program->ctx = ctx;
    program->machine = machine;
    program->isa = machine->isa ? its_sim_isa_get(machine->isa - 1) : NULL;
    if (!program->isa) program->isa = its_sim_isa_best();
    its_arena_init(&program->arena, ctx);
    job j = {program, module};
    its_status status = its_protect(ctx, body, &j);
    if (status != ITS_OK)
        its_sim_program_free(program);
    else
        *result = program;
    return status;
}

/* Blocks of device malloc that kernels of this program have not freed. */
static void free_heap(its_sim_program *program) {
    its_sim_memory *memory = program->machine->memory;
    for (size_t i = its_sim_memory_count(memory); i-- > 0;) {
        const its_sim_allocation *found = its_sim_memory_get(memory, i);
        if (found->kind != ITS_SIM_HEAP || found->owner != program) continue;
        uint64_t base = found->base, size = found->size;
        its_sim_memory_remove(memory, base);
        its_sim_program_give(program, (void *)(uintptr_t)base, size);
    }
}

void its_sim_program_free(its_sim_program *program) {
    if (!program) return;
    its_context *ctx = program->ctx;
    if (program->machine->race) its_race_forget_sites(program->machine->race);
    free_heap(program);
    for (size_t i = 0; i < program->variables.count; i++) {
        const its_sim_variable *variable = &program->variables.items[i];
        if (variable->space != ITS_SPACE_SHARED && variable->size)
            its_sim_memory_remove(program->machine->memory, variable->address);
    }
    its_sim_program_give(program, program->data, program->data_size);
    its_arena_free(&program->arena);
    its_free(ctx, program);
}

/* -- places -------------------------------------------------------------------------------------------------------- */

/* The slot of a source or origin: its own, or the empty one where it goes. */
static its_sim_copied *slot_of(const its_sim_copies_made *copies, const void *from) {
    size_t at = (size_t)(((uint64_t)(uintptr_t)from * 0x9e3779b97f4a7c15ull) >> 32) & (copies->capacity - 1);
    while (copies->slots[at].from && copies->slots[at].from != from) at = (at + 1) & (copies->capacity - 1);
    return &copies->slots[at];
}

static const void *copy_of(const its_sim_program *program, const void *from) {
    return program->copied.capacity ? slot_of(&program->copied, from)->to : NULL;
}

static void remember(its_sim_program *program, const void *from, const void *to) {
    its_sim_copies_made *copies = &program->copied;
    if ((copies->count + 1) * 2 > copies->capacity) {
        its_sim_copies_made bigger = {.count = copies->count, .capacity = copies->capacity ? copies->capacity * 2 : 16};
        bigger.slots = ITS_NEW_ARRAY(&program->arena, its_sim_copied, bigger.capacity);
        for (size_t i = 0; i < copies->capacity; i++)
            if (copies->slots[i].from) *slot_of(&bigger, copies->slots[i].from) = copies->slots[i];
        *copies = bigger;
    }
    *slot_of(copies, from) = (its_sim_copied){from, to};
    copies->count++;
}

static const its_source *copy_source(its_sim_program *program, const its_source *source) {
    const its_source *known = copy_of(program, source);
    if (known) return known;
    its_source *copy = ITS_NEW(&program->arena, its_source);
    copy->name = its_arena_text(&program->arena, source->name, strlen(source->name));
    copy->text = its_arena_text(&program->arena, source->text, source->size);
    copy->size = source->size;
    remember(program, source, copy);
    return copy;
}

/* Only to be shown: the context that it is interned in may be gone before the program. */
static its_name copy_name(its_sim_program *program, its_name name) {
    if (!name) return NULL;
    its_str *copy = its_arena_zalloc(&program->arena, sizeof *copy + name->size + 1);
    copy->size = name->size;
    memcpy(copy->text, name->text, name->size);
    return copy;
}

/* Each origin is copied once; calls nest as deep as inlining did, which the linker limits. */
static const its_origin *copy_origin(its_sim_program *program, const its_origin *origin) {
    const its_origin *known = origin ? copy_of(program, origin) : NULL;
    if (!origin || known) return known;
    its_origin *copy = ITS_NEW(&program->arena, its_origin);
    copy->source = copy_source(program, origin->source);
    copy->callee = copy_name(program, origin->callee);
    copy->outer = copy_origin(program, origin->outer);
    if (origin->call) {
        its_insn *call = its_arena_zalloc(&program->arena, sizeof(*call));
        call->node.kind = origin->call->node.kind;
        call->node.pos = origin->call->node.pos;
        call->node.origin = copy_origin(program, origin->call->node.origin);
        copy->call = call;
    }
    remember(program, origin, copy);
    return copy;
}

its_sim_where its_sim_where_of(its_sim_program *program, const its_node *node) {
    its_sim_where where = {.node = {.kind = node->kind, .pos = node->pos}};
    where.node.origin = copy_origin(program, node->origin);
    return where;
}
