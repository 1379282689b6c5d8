/*
 * Variables of a module: .global and .const ones in one block of real memory, each an entry of the memory table with a
 * gap behind it; .shared ones at offsets of the CTA's shared memory; initialisers, with the addresses they hold.
 */
#include <inttypes.h>

#include "base/intern.h"
#include "ptx/module.h"
#include "sim/program.h"

#define GAP 64u /* bytes between variables, so that running over the end of one is noticed */
#define LARGEST ((uint64_t)1 << 40)

typedef struct layout {
    its_sim_program *program;
    uint64_t data, shared; /* ends so far */
    its_status status;
} layout;

static uint64_t align_up(uint64_t n, uint64_t align) {
    return (n + align - 1) & ~(align - 1);
}

static uint32_t align_of(const its_symbol *symbol) {
    uint32_t natural = its_type_size((its_type)symbol->type) * (symbol->vec ? symbol->vec : 1u);
    uint32_t align = symbol->align > natural ? symbol->align : natural;
    if (align == 0 || (align & (align - 1))) align = 16;
    return align;
}

static void place_data(layout *l, its_sim_variable *variable) {
    l->data = align_up(l->data, variable->align);
    variable->address = l->data; /* from the start of the block, for now */
    l->data += variable->size + GAP;
}

static void place_shared(layout *l, its_sim_variable *variable) {
    if (variable->dynamic) {
        if (variable->align > l->program->dynamic_align) l->program->dynamic_align = variable->align;
        return;
    }
    l->shared = align_up(l->shared, variable->align);
    variable->address = ITS_SIM_SHARED_BEGIN + l->shared;
    l->shared += variable->size;
}

static void place(layout *l, const its_var *var) {
    its_symbol *symbol = var->symbol;
    its_space space = (its_space)symbol->space;
    if (space != ITS_SPACE_GLOBAL && space != ITS_SPACE_CONST && space != ITS_SPACE_SHARED) return;
    bool dynamic = space == ITS_SPACE_SHARED && symbol->size == 0;
    symbol->pass = NULL;
    if (!(symbol->flags & ITS_SYM_DEFINED) && !dynamic) return;
    /* The module's context, and its names with it, may go before the program. */
    its_name name = its_intern_raise(l->program->ctx, symbol->name->text, symbol->name->size);
    its_sim_variable variable = {
        .name = name, .space = (uint8_t)space, .dynamic = dynamic, .size = symbol->size, .align = align_of(symbol)};
    if (symbol->size > LARGEST || l->data > LARGEST || l->shared > LARGEST) {
        its_diag_begin(l->program->ctx, ITS_ERROR, its_symbol_place(symbol), "'%s' is larger than memory can be",
                       symbol->name->text);
        l->status = ITS_ERR_INPUT;
        return;
    }
    if (space == ITS_SPACE_SHARED)
        place_shared(l, &variable);
    else
        place_data(l, &variable);
    ITS_PUSH(&l->program->arena, &l->program->variables, variable);
    symbol->pass = (void *)l->program->variables.count;
}

/* Calls place for every variable of the module and of the functions in it. */
static void place_all(layout *l, const its_module *module) {
    for (const its_node *node = module->first; node; node = node->next) {
        if (node->kind == ITS_NODE_VAR) place(l, (const its_var *)node);
        if (node->kind != ITS_NODE_FUNC) continue;
        for (const its_node *inner = ((const its_func *)node)->first; inner; inner = inner->next)
            if (inner->kind == ITS_NODE_VAR) place(l, (const its_var *)inner);
    }
}

/* Enters the variables of the data block into the memory table. */
static its_status enter(its_sim_program *program) {
    for (size_t i = 0; i < program->variables.count; i++) {
        its_sim_variable *variable = &program->variables.items[i];
        if (variable->space == ITS_SPACE_SHARED) continue;
        variable->address += (uint64_t)(uintptr_t)program->data;
        if (variable->size == 0) continue;
        bool is_const = variable->space == ITS_SPACE_CONST;
        its_status status = its_sim_memory_add(program->machine->memory, variable->address, variable->size,
                                               is_const ? ITS_SIM_CONST : ITS_SIM_GLOBAL, is_const, variable->name);
        if (status == ITS_OK) continue;
        variable->size = 0; /* not ours to remove */
        its_diag_begin(program->ctx, ITS_ERROR, ITS_NOWHERE, "no place for the variable '%s'", variable->name->text);
        return status;
    }
    return ITS_OK;
}

its_status its_sim_program_place_variables(its_sim_program *program, const its_module *module) {
    layout l = {.program = program, .status = ITS_OK};
    program->dynamic_align = 16;
    place_all(&l, module);
    if (l.status == ITS_OK && l.shared > INT32_MAX) {
        its_diag_begin(program->ctx, ITS_ERROR, ITS_NOWHERE,
                       "%" PRIu64 " bytes of .shared variables are more than a CTA has", l.shared);
        l.status = ITS_ERR_INPUT;
    }
    if (l.status != ITS_OK) return l.status;
    program->shared_size = (uint32_t)l.shared;
    if (l.data == 0) return ITS_OK;
    program->data = its_sim_program_take(program, l.data, 256);
    if (!program->data) {
        its_diag_begin(program->ctx, ITS_ERROR, ITS_NOWHERE, "no room for %" PRIu64 " bytes of variables", l.data);
        return ITS_ERR_NOMEM;
    }
    program->data_size = l.data;
    memset(program->data, 0, l.data);
    return enter(program);
}

/* -- initialisers -------------------------------------------------------------------------------------------------- */

static its_status bad_init(its_sim_program *program, const its_var *var, const its_init *init, const char *what) {
    its_diag_begin(program->ctx, ITS_ERROR, its_at(var->node.origin->source, init->pos), "'%s' is initialised with %s",
                   var->symbol->name->text, what);
    return ITS_ERR_INPUT;
}

/* The address that an initialiser names; false if nobody defines it. */
static bool address_of(const its_sim_program *program, const its_init *init, uint64_t *address) {
    its_symbol *symbol = its_symbol_final(init->symbol);
    uintptr_t number = (uintptr_t)symbol->pass;
    if (number == 0) return false;
    if (symbol->kind == ITS_SYM_FUNC) {
        *address = its_sim_func_address((uint32_t)(number - 1));
        return program->funcs[number - 1].has_body;
    }
    const its_sim_variable *variable = &program->variables.items[number - 1];
    *address = variable->address;
    if (init->generic && variable->space == ITS_SPACE_SHARED) *address |= ITS_SIM_WINDOW_SHARED;
    return true;
}

static its_status value_of(its_sim_program *program, const its_var *var, const its_init *init, uint32_t size,
                           uint64_t *bits) {
    its_type type = (its_type)var->symbol->type;
    float single;
    double real;
    switch (init->kind) {
    case ITS_OPND_SYM:
        if (!address_of(program, init, bits)) return bad_init(program, var, init, "the address of what nobody defines");
        *bits += (uint64_t)(int64_t)init->offset;
        if (init->byte) *bits = (*bits >> (8 * (init->byte - 1u))) & 0xff;
        return ITS_OK;
    case ITS_OPND_F64:
        *bits = init->bits;
        if (type == ITS_TYPE_F64 || size == 8) return ITS_OK;
        memcpy(&real, &init->bits, sizeof(real));
        single = (float)real;
        memcpy(bits, &single, sizeof(single));
        *bits &= 0xffffffff;
        return ITS_OK;
    case ITS_OPND_F32:
        *bits = init->bits;
        if (type != ITS_TYPE_F64) return ITS_OK;
        memcpy(&single, &init->bits, sizeof(single));
        real = (double)single;
        memcpy(bits, &real, sizeof(real));
        return ITS_OK;
    default:
        *bits = init->bits;
        return ITS_OK;
    }
}

static its_status initialise(its_sim_program *program, const its_var *var) {
    its_symbol *symbol = var->symbol;
    if (!var->has_init) return ITS_OK;
    if (symbol->space != ITS_SPACE_GLOBAL && symbol->space != ITS_SPACE_CONST) {
        its_diag_begin(program->ctx, ITS_ERROR, its_node_place(&var->node),
                       "'%s' is initialised, which only .global and .const variables can be", symbol->name->text);
        return ITS_ERR_INPUT;
    }
    if (!symbol->pass) return ITS_OK; /* an extern that another module defines */
    const its_sim_variable *variable = &program->variables.items[(uintptr_t)symbol->pass - 1];
    if (var->n_init && var->init[0].field) return ITS_OK; /* of a texture or sampler, which no instruction here uses */
    uint32_t size = its_type_size((its_type)symbol->type);
    char *base = (char *)(uintptr_t)variable->address;
    for (uint32_t i = 0; i < var->n_init; i++) {
        const its_init *init = &var->init[i];
        if (size == 0 || init->index >= variable->size / size)
            return bad_init(program, var, init, "more elements than it has");
        uint64_t bits[2] = {0, 0};
        its_status status = value_of(program, var, init, size, &bits[0]);
        if (status != ITS_OK) return status;
        if (size == 16 && init->kind == ITS_OPND_INT && (int64_t)bits[0] < 0) bits[1] = UINT64_MAX;
        memcpy(base + (size_t)init->index * size, bits, size);
    }
    return ITS_OK;
}

its_status its_sim_program_initialise(its_sim_program *program, const its_module *module) {
    for (const its_node *node = module->first; node; node = node->next) {
        its_status status = ITS_OK;
        if (node->kind == ITS_NODE_VAR) status = initialise(program, (const its_var *)node);
        if (status != ITS_OK) return status;
        if (node->kind != ITS_NODE_FUNC) continue;
        for (const its_node *inner = ((const its_func *)node)->first; inner; inner = inner->next) {
            if (inner->kind == ITS_NODE_VAR) status = initialise(program, (const its_var *)inner);
            if (status != ITS_OK) return status;
        }
    }
    return ITS_OK;
}

bool its_sim_program_variable(const its_sim_program *program, const char *name, uint64_t *address, size_t *size) {
    for (size_t i = 0; i < program->variables.count; i++) {
        const its_sim_variable *variable = &program->variables.items[i];
        if (variable->space == ITS_SPACE_SHARED || strcmp(variable->name->text, name) != 0) continue;
        *address = variable->address;
        if (size) *size = (size_t)variable->size;
        return true;
    }
    return false;
}
