/* intarsia inspect: what is in a PTX file, as text or as JSON. Both are printed from one summary per function. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/cli.h"
#include "intarsia/ptx.h"
#include "ptx/mnemonic.h"
#include "ptx/module.h"

typedef struct inspect_args {
    bool json;
} inspect_args;

static const cli_option options[] = {
    {0, "json", NULL, CLI_FLAG, offsetof(inspect_args, json), "as JSON, for programs"},
};

static const char text[] =
    "Prints the functions of a PTX file with their parameters, registers, memory and calls, its variables, and what\n"
    "it needs from elsewhere. FILE may be - for standard input.\n"
    "\n"
    "examples:\n"
    "  intarsia inspect kernel.ptx\n"
    "  intarsia inspect --json kernel.ptx | python3 -m json.tool\n";

/* -- summaries ----------------------------------------------------------------------------------------------------- */

typedef struct call {
    const char *callee; /* NULL: through a register */
    const char *unit;   /* of a region call, else NULL */
    uint32_t line;
} call;

typedef struct summary {
    const its_func *func;
    cli_app *app;
    uint32_t instructions;
    uint32_t registers[ITS_TYPE_COUNT];
    uint64_t local, shared;
    its_position *position; /* of the last call; goes on from function to function */
    ITS_VEC(call) calls;
    bool *seen; /* by register id */
} summary;

static void count_register(summary *s, const its_symbol *symbol) {
    if (symbol->kind != ITS_SYM_REG || s->seen[symbol->id]) return;
    s->seen[symbol->id] = true;
    s->registers[symbol->type] += symbol->vec ? symbol->vec : 1;
}

static void visit_operand(its_operand *operand, void *user) {
    if (operand->kind == ITS_OPND_REG) count_register(user, operand->symbol);
}

/* The target of `call (results), target, (arguments), prototype`: the first operand that is no list. */
static void add_call(summary *s, const its_insn *insn) {
    its_position_move(s->position, its_node_place(&insn->node));
    call found = {.line = s->position->line};
    for (uint32_t i = 0; i < insn->node.count; i++) {
        const its_operand *op = &insn->ops[i];
        if (op->kind == ITS_OPND_GROUP) continue;
        if (op->kind == ITS_OPND_SYM) found.callee = op->symbol->name->text;
        if (op->kind == ITS_OPND_REGION) {
            found.callee = op->name->text;
            found.unit = op->unit ? op->unit->text : "";
        }
        break;
    }
    ITS_PUSH(&s->app->arena, &s->calls, found);
}

static void summarise_node(summary *s, its_node *node) {
    if (node->kind == ITS_NODE_VAR) {
        const its_symbol *symbol = ((its_var *)node)->symbol;
        if (symbol->space == ITS_SPACE_LOCAL) s->local += symbol->size;
        if (symbol->space == ITS_SPACE_SHARED) s->shared += symbol->size;
    }
    its_node_visit(node, visit_operand, s);
    if (node->kind != ITS_NODE_INSN) return;
    its_insn *insn = (its_insn *)node;
    if (insn->guard) count_register(s, insn->guard);
    s->instructions++;
    uint16_t op = its_mnemonic_of(s->app->ctx, insn->name)->op;
    if (op == ITS_OP_CALL || op == ITS_OP_INTARSIA) add_call(s, insn);
}

static summary summarise(cli_app *app, const its_func *func, its_position *position) {
    summary s = {.func = func, .app = app, .position = position};
    s.seen = its_arena_zalloc(&app->arena, (size_t)func->n_regs + 1);
    for (its_node *node = func->first; node; node = node->next) summarise_node(&s, node);
    return s;
}

/* -- names for people ---------------------------------------------------------------------------------------------- */

static const char *type_of(const its_symbol *symbol) {
    return symbol->type == ITS_TYPE_NONE && symbol->type_name ? symbol->type_name->text
                                                              : its_type_text((its_type)symbol->type);
}

/* ".u64 .ptr.global", ".align 8 .b8[16]" */
static const char *describe_type(cli_app *app, const its_symbol *symbol) {
    const char *align = symbol->align ? its_arena_printf(&app->arena, ".align %u ", symbol->align) : "";
    const char *vec = symbol->vec > 1 ? its_arena_printf(&app->arena, ".v%u ", (unsigned)symbol->vec) : "";
    char *described = its_arena_printf(&app->arena, "%s%s%s", align, vec, type_of(symbol));
    for (uint32_t i = 0; i < symbol->n_dims; i++)
        described = its_arena_printf(&app->arena, "%s[%" PRIu64 "]", described, symbol->dims[i]);
    if (symbol->flags & ITS_SYM_PTR)
        described = its_arena_printf(&app->arena, "%s .ptr%s", described, its_space_text((its_space)symbol->ptr_space));
    return described;
}

static const char *linkage(const its_symbol *symbol) {
    if (symbol->flags & ITS_SYM_EXTERN) return "extern";
    if (symbol->flags & ITS_SYM_WEAK) return "weak";
    if (symbol->flags & ITS_SYM_COMMON) return "common";
    return symbol->flags & ITS_SYM_VISIBLE ? "visible" : "local";
}

/* Whether the symbol stands at module level and is something that another module must bring. */
static bool is_open(const its_symbol *symbol) {
    return !(symbol->flags & ITS_SYM_DEFINED) && (symbol->kind == ITS_SYM_FUNC || (symbol->flags & ITS_SYM_EXTERN));
}

/* -- text ---------------------------------------------------------------------------------------------------------- */

static void print_params(cli_app *app, const char *title, const its_params *params) {
    for (uint32_t i = 0; i < params->n; i++) {
        const its_symbol *p = params->items[i];
        printf("  %-13s%-3u %-28s %5" PRIu64 " bytes  %s\n", i ? "" : title, i, describe_type(app, p), p->size,
               p->name->text);
    }
}

static void print_registers(const summary *s) {
    printf("  %-13s", "registers");
    const char *between = "";
    for (unsigned type = 0; type < ITS_TYPE_COUNT; type++) {
        if (!s->registers[type]) continue;
        printf("%s%u %s", between, s->registers[type], type ? its_type_text((its_type)type) : "of other types");
        between = ", ";
    }
    puts(*between ? "" : "none");
}

static void print_calls(const summary *s) {
    for (size_t i = 0; i < s->calls.count; i++) {
        const call *c = &s->calls.items[i];
        printf("  %-13s", i ? "" : "calls");
        if (c->unit)
            printf("%s::%s (region)", c->unit, c->callee);
        else
            printf("%s", c->callee ? c->callee : "through a register");
        printf(", line %u\n", c->line);
    }
}

static void print_function(cli_app *app, const its_func *func, its_position *position) {
    summary s = summarise(app, func, position);
    bool entry = func->symbol->flags & ITS_SYM_ENTRY;
    printf("\n%s %s%s %s\n", entry ? "entry" : "function", func->symbol->name->text,
           func->has_body ? "" : ", declared only,", linkage(func->symbol));
    print_params(app, "results", &func->results);
    print_params(app, "parameters", &func->params);
    if (!func->has_body) return;
    print_registers(&s);
    printf("  %-13slocal %" PRIu64 ", shared %" PRIu64 " bytes\n", "memory", s.local, s.shared);
    printf("  %-13s%u\n", "instructions", s.instructions);
    print_calls(&s);
}

static void print_variables(cli_app *app, const its_module *module) {
    bool first = true;
    for (its_node *node = module->first; node; node = node->next) {
        if (node->kind != ITS_NODE_VAR) continue;
        const its_symbol *v = ((its_var *)node)->symbol;
        if (first) printf("\nvariables\n");
        first = false;
        printf("  %-10s %-28s %7" PRIu64 " bytes  %s, %s\n", its_space_text((its_space)v->space), describe_type(app, v),
               v->size, v->name->text, linkage(v));
    }
}

static void print_externs(const its_module *module) {
    bool first = true;
    for (size_t i = 0; i < module->priv->symbols.count; i++) {
        const its_symbol *symbol = module->priv->symbols.items[i];
        if (!is_open(symbol)) continue;
        if (first) printf("\nneeded from elsewhere\n");
        first = false;
        printf("  %-10s %s\n", symbol->kind == ITS_SYM_FUNC ? "function" : its_space_text((its_space)symbol->space),
               symbol->name->text);
    }
}

static void print_text(cli_app *app, const char *path, const its_module *module) {
    printf("%s: PTX %u.%u for", path, module->version_major, module->version_minor);
    for (uint32_t i = 0; i < module->n_targets; i++) printf("%s %s", i ? "," : "", module->targets[i]->text);
    printf(", %u-bit addresses\n", module->address_size);
    print_variables(app, module);
    its_position position = {0};
    for (its_func *f = its_module_next_func(module, NULL); f; f = its_module_next_func(module, f))
        print_function(app, f, &position);
    print_externs(module);
}

/* -- JSON ---------------------------------------------------------------------------------------------------------- */

static void json_params(cli_app *app, its_json *json, cJSON *object, const char *key, const its_params *params) {
    cJSON *array = its_json_array(json, object, key);
    for (uint32_t i = 0; i < params->n; i++) {
        const its_symbol *p = params->items[i];
        cJSON *item = its_json_item(json, array);
        its_json_text(json, item, "name", p->name->text);
        its_json_text(json, item, "type", type_of(p));
        its_json_text(json, item, "declared", describe_type(app, p));
        its_json_number(json, item, "size", p->size);
        its_json_number(json, item, "align", p->align);
    }
}

static void json_calls(its_json *json, cJSON *object, const summary *s) {
    cJSON *array = its_json_array(json, object, "calls");
    for (size_t i = 0; i < s->calls.count; i++) {
        const call *c = &s->calls.items[i];
        cJSON *item = its_json_item(json, array);
        its_json_text(json, item, "callee", c->callee);
        if (c->unit) its_json_text(json, item, "unit", c->unit);
        its_json_number(json, item, "line", c->line);
    }
}

static void json_body(its_json *json, cJSON *object, const summary *s) {
    cJSON *registers = its_json_object(json, object, "registers");
    for (unsigned type = 0; type < ITS_TYPE_COUNT; type++)
        if (s->registers[type])
            its_json_number(json, registers, type ? its_type_text((its_type)type) + 1 : "other", s->registers[type]);
    its_json_number(json, object, "local_bytes", s->local);
    its_json_number(json, object, "shared_bytes", s->shared);
    its_json_number(json, object, "instructions", s->instructions);
    json_calls(json, object, s);
}

static void json_function(cli_app *app, its_json *json, cJSON *object, const its_func *func, its_position *position) {
    its_json_text(json, object, "name", func->symbol->name->text);
    its_json_bool(json, object, "entry", func->symbol->flags & ITS_SYM_ENTRY);
    its_json_bool(json, object, "defined", func->has_body);
    its_json_text(json, object, "linkage", linkage(func->symbol));
    json_params(app, json, object, "results", &func->results);
    json_params(app, json, object, "parameters", &func->params);
    if (!func->has_body) return;
    summary s = summarise(app, func, position);
    json_body(json, object, &s);
}

static void json_variables(cli_app *app, its_json *json, cJSON *root, const its_module *module) {
    cJSON *array = its_json_array(json, root, "variables");
    for (its_node *node = module->first; node; node = node->next) {
        if (node->kind != ITS_NODE_VAR) continue;
        const its_symbol *v = ((its_var *)node)->symbol;
        cJSON *item = its_json_item(json, array);
        its_json_text(json, item, "name", v->name->text);
        its_json_text(json, item, "space", its_space_text((its_space)v->space) + 1);
        its_json_text(json, item, "declared", describe_type(app, v));
        its_json_number(json, item, "size", v->size);
        its_json_text(json, item, "linkage", linkage(v));
    }
}

static void json_externs(its_json *json, cJSON *root, const its_module *module) {
    cJSON *array = its_json_array(json, root, "externs");
    for (size_t i = 0; i < module->priv->symbols.count; i++) {
        const its_symbol *symbol = module->priv->symbols.items[i];
        if (!is_open(symbol)) continue;
        cJSON *item = its_json_item(json, array);
        its_json_text(json, item, "name", symbol->name->text);
        its_json_text(json, item, "kind", symbol->kind == ITS_SYM_FUNC ? "function" : "variable");
    }
}

static void json_module(cli_app *app, its_json *json, cJSON *root, const char *path, const its_module *module) {
    its_json_text(json, root, "file", path);
    its_json_text(json, root, "version",
                  its_arena_printf(&app->arena, "%u.%u", module->version_major, module->version_minor));
    cJSON *targets = its_json_array(json, root, "targets");
    for (uint32_t i = 0; i < module->n_targets; i++) its_json_item_text(json, targets, module->targets[i]->text);
    its_json_number(json, root, "address_size", module->address_size);
    json_variables(app, json, root, module);
    its_position position = {0};
    cJSON *functions = its_json_array(json, root, "functions");
    for (its_func *f = its_module_next_func(module, NULL); f; f = its_module_next_func(module, f))
        json_function(app, json, its_json_item(json, functions), f, &position);
    json_externs(json, root, module);
}

static int print_json(cli_app *app, const char *path, const its_module *module) {
    its_json json;
    json_module(app, &json, its_json_begin(&json, app->ctx), path, module);
    char *printed = its_json_end(&json);
    if (!printed) return cli_status(ITS_ERR_NOMEM);
    puts(printed);
    its_free(app->ctx, printed);
    return CLI_OK;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static int run(cli_app *app, const void *user, const cli_list *operands) {
    const inspect_args *args = user;
    const char *path = cli_only_operand(app, &cli_inspect, operands, "PTX file");
    if (!path) return CLI_USAGE;
    its_module *module;
    its_status status = its_ptx_parse_file(app->ctx, path, &module);
    if (status != ITS_OK) return cli_status(status);
    int code = CLI_OK;
    if (args->json)
        code = print_json(app, path, module);
    else
        print_text(app, path, module);
    its_module_free(module);
    return code;
}

const cli_command cli_inspect = {
    .name = "inspect",
    .usage = "[OPTIONS] FILE.ptx",
    .summary = "what is in a PTX file",
    .text = text,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_size = sizeof(inspect_args),
    .run = run,
};
