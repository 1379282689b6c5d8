/* The printer: one node a line, operands by shape. It serves output, dumps and tests alike. */
#include <string.h>

#include "ptx/module.h"

static void put_name(its_buffer *out, its_name name) {
    its_buffer_put(out, name->text, name->size);
}

#define PUT(out, literal) its_buffer_put((out), literal, sizeof(literal) - 1)

static void put_u64(its_buffer *out, uint64_t value) {
    char text[20];
    size_t at = sizeof text;
    do text[--at] = (char)('0' + value % 10);
    while (value /= 10);
    its_buffer_put(out, text + at, sizeof text - at);
}

static void put_s64(its_buffer *out, int64_t value) {
    if (value < 0) its_buffer_char(out, '-');
    put_u64(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void put_hex(its_buffer *out, const char *prefix, uint64_t bits, unsigned digits) {
    its_buffer_put(out, prefix, 2);
    for (unsigned i = digits; i-- > 0;) its_buffer_char(out, "0123456789ABCDEF"[bits >> (4 * i) & 15]);
}

/* -- operands ------------------------------------------------------------------------------------------------------ */

static void put_operand(its_buffer *out, const its_operand *operand);

static void put_list(its_buffer *out, const its_operand *operand, const char *separator) {
    for (uint16_t i = 0; i < operand->count; i++) {
        if (i) its_buffer_text(out, separator);
        put_operand(out, &operand->list[i]);
    }
}

static void put_offset(its_buffer *out, int64_t offset) {
    if (!offset) return;
    its_buffer_char(out, '+');
    put_s64(out, offset);
}

static void put_constant(its_buffer *out, unsigned kind, uint64_t bits, bool is_unsigned) {
    if (kind == ITS_OPND_F32)
        put_hex(out, "0f", bits, 8);
    else if (kind == ITS_OPND_F64)
        put_hex(out, "0d", bits, 16);
    else if (!is_unsigned)
        put_s64(out, (int64_t)bits);
    else
        put_u64(out, bits), bits <= INT64_MAX ? its_buffer_char(out, 'U') : (void)0;
}

static void put_operand(its_buffer *out, const its_operand *operand) {
    if (operand->flags & ITS_OPND_NOT) its_buffer_char(out, '!');
    if (operand->flags & ITS_OPND_NEG) its_buffer_char(out, '-');
    switch (operand->kind) {
    case ITS_OPND_REG:
    case ITS_OPND_SYM:
        put_name(out, operand->symbol->name);
        if (operand->suffix) put_name(out, operand->suffix);
        put_offset(out, operand->offset);
        if (!operand->offset && operand->flags & ITS_OPND_OFFSET) its_buffer_text(out, "+0");
        return;
    case ITS_OPND_INT:
    case ITS_OPND_F32:
    case ITS_OPND_F64:
        put_constant(out, operand->kind, operand->bits, operand->flags & ITS_OPND_UNSIGNED);
        return;
    case ITS_OPND_SREG:
    case ITS_OPND_TOKEN:
        put_name(out, operand->name);
        return;
    case ITS_OPND_SINK:
        its_buffer_char(out, '_');
        return;
    case ITS_OPND_STRING:
        its_buffer_char(out, '"');
        put_name(out, operand->name);
        its_buffer_char(out, '"');
        return;
    case ITS_OPND_PAIR:
        put_list(out, operand, "|");
        return;
    case ITS_OPND_VEC:
        its_buffer_char(out, '{');
        put_list(out, operand, ", ");
        its_buffer_char(out, '}');
        return;
    case ITS_OPND_GROUP:
        its_buffer_char(out, '(');
        put_list(out, operand, ", ");
        its_buffer_char(out, ')');
        return;
    case ITS_OPND_ADDR:
        its_buffer_char(out, '[');
        put_list(out, operand, ", ");
        its_buffer_char(out, ']');
        if (operand->suffix) put_name(out, operand->suffix);
        return;
    case ITS_OPND_REGION:
        if (operand->unit) put_name(out, operand->unit);
        if (operand->unit) PUT(out, "::");
        put_name(out, operand->name);
        return;
    default:
        return;
    }
}

static void put_operands(its_buffer *out, const its_operand *operands, uint16_t count, const char *separator) {
    for (uint16_t i = 0; i < count; i++) {
        its_buffer_text(out, i ? separator : " ");
        put_operand(out, &operands[i]);
    }
}

static void put_insn(its_buffer *out, const its_insn *insn) {
    if (insn->guard) {
        its_buffer_char(out, '@');
        if (insn->node.flags & ITS_INSN_GUARD_NOT) its_buffer_char(out, '!');
        put_name(out, insn->guard->name);
        if (insn->guard_suffix) put_name(out, insn->guard_suffix);
        its_buffer_char(out, ' ');
    }
    put_name(out, insn->name);
    put_operands(out, insn->ops, insn->node.count, ", ");
    its_buffer_char(out, ';');
}

/* -- declarations -------------------------------------------------------------------------------------------------- */

static void put_type(its_buffer *out, its_type type, its_name name, uint8_t vec) {
    if (vec > 1) its_buffer_printf(out, ".v%u ", vec);
    if (type)
        its_buffer_text(out, its_type_text(type));
    else if (name)
        put_name(out, name);
}

static void put_linkage(its_buffer *out, uint16_t flags) {
    if (flags & ITS_SYM_EXTERN)
        PUT(out, ".extern ");
    else if (flags & ITS_SYM_WEAK)
        PUT(out, ".weak ");
    else if (flags & ITS_SYM_COMMON)
        PUT(out, ".common ");
    else if (flags & ITS_SYM_VISIBLE)
        PUT(out, ".visible ");
}

static void put_align(its_buffer *out, uint32_t align) {
    if (align) its_buffer_printf(out, ".align %u ", align);
}

/* `.align 4 .v2 .f32 name[10]`, with what `.ptr` adds for parameters. */
static void put_declarator(its_buffer *out, const its_symbol *symbol) {
    put_align(out, symbol->align);
    put_type(out, (its_type)symbol->type, symbol->type_name, symbol->vec);
    its_buffer_char(out, ' ');
    if (symbol->flags & ITS_SYM_PTR) {
        PUT(out, ".ptr ");
        if (symbol->ptr_space) its_buffer_printf(out, "%s ", its_space_text((its_space)symbol->ptr_space));
        put_align(out, symbol->ptr_align);
    }
    put_name(out, symbol->name);
    for (uint8_t i = 0; i < symbol->n_dims; i++) {
        bool open = i == 0 && (symbol->flags & ITS_SYM_UNSIZED);
        its_buffer_char(out, '[');
        if (!open) put_u64(out, symbol->dims[i]);
        its_buffer_char(out, ']');
    }
}

static void put_init(its_buffer *out, const its_init *init) {
    if (init->kind != ITS_OPND_SYM) {
        put_constant(out, init->kind, init->bits, false);
        return;
    }
    if (init->byte) its_buffer_printf(out, "0x%llx(", 0xffULL << 8 * (init->byte - 1));
    if (init->generic) PUT(out, "generic(");
    put_name(out, init->symbol->name);
    if (init->generic) its_buffer_char(out, ')');
    put_offset(out, init->offset);
    if (init->byte) its_buffer_char(out, ')');
}

/* The elements from `next` on, in the braces of this dimension and those inside it; returns the first one left. */
static uint32_t put_init_list(its_buffer *out, const its_var *var, uint32_t next, unsigned depth) {
    const its_symbol *symbol = var->symbol;
    if (depth == symbol->n_dims + (symbol->vec > 1 ? 1U : 0U)) {
        put_init(out, &var->init[next]);
        return next + 1;
    }
    uint64_t count = depth < symbol->n_dims ? symbol->dims[depth] : symbol->vec;
    its_buffer_char(out, '{');
    for (uint64_t i = 0; i < count && next < var->n_init; i++) {
        if (i) PUT(out, ", ");
        next = put_init_list(out, var, next, depth + 1);
    }
    its_buffer_char(out, '}');
    return next;
}

static void put_field(its_buffer *out, const its_init *init) {
    its_buffer_printf(out, "%s = ", init->field->text);
    if (init->kind == ITS_OPND_TOKEN)
        its_buffer_text(out, init->word->text);
    else
        put_init(out, init);
}

/* The same for an opaque reference: the fields of elements from number `at` on; `{}` for one that has none. */
static uint32_t put_fields(its_buffer *out, const its_var *var, uint32_t next, uint64_t at, unsigned depth) {
    const its_symbol *symbol = var->symbol;
    uint64_t row = 1, end;
    for (unsigned i = depth + 1; i < symbol->n_dims; i++) row *= symbol->dims[i];
    end = depth < symbol->n_dims ? at + row * symbol->dims[depth] : at + 1;
    its_buffer_char(out, '{');
    for (bool first = true; next < var->n_init && var->init[next].index < end; first = false) {
        if (!first) PUT(out, ", ");
        if (depth == symbol->n_dims) {
            put_field(out, &var->init[next++]);
            continue;
        }
        next = put_fields(out, var, next, at, depth + 1);
        at += row;
    }
    its_buffer_char(out, '}');
    return next;
}

static void put_initialiser(its_buffer *out, const its_var *var) {
    const its_symbol *symbol = var->symbol;
    if (symbol->type == ITS_TYPE_TEXREF || symbol->type == ITS_TYPE_SAMPLERREF || symbol->type == ITS_TYPE_SURFREF)
        put_fields(out, var, 0, 0, 0);
    else if (symbol->n_dims || symbol->vec > 1)
        put_init_list(out, var, 0, 0);
    else if (var->n_init)
        put_init(out, var->init);
    else
        PUT(out, "0");
}

static void put_var(its_buffer *out, const its_var *var) {
    const its_symbol *symbol = var->symbol;
    bool declares = var->node.flags & ITS_VAR_DECLARES;
    put_linkage(out, declares ? ITS_SYM_EXTERN : symbol->flags);
    its_buffer_text(out, its_space_text((its_space)symbol->space));
    its_buffer_char(out, ' ');
    for (uint32_t i = 0; i < var->n_attributes; i++)
        its_buffer_printf(out, ".attribute(%s) ", var->attributes[i]->text);
    put_declarator(out, symbol);
    if (var->has_init && !declares) {
        PUT(out, " = ");
        put_initialiser(out, var);
    }
    its_buffer_char(out, ';');
}

static void put_regs(its_buffer *out, const its_regs *regs) {
    PUT(out, ".reg ");
    put_type(out, (its_type)regs->type, regs->type_name, regs->vec);
    its_buffer_char(out, ' ');
    put_name(out, regs->name);
    if (regs->n) its_buffer_printf(out, "<%u>", regs->n);
    its_buffer_char(out, ';');
}

static void put_params(its_buffer *out, const its_params *params, const char *separator) {
    its_buffer_char(out, '(');
    for (uint32_t i = 0; i < params->n; i++) {
        const its_symbol *symbol = params->items[i];
        its_buffer_text(out, i ? separator : "");
        its_buffer_text(out, symbol->kind == ITS_SYM_REG ? ".reg " : ".param ");
        put_declarator(out, symbol);
    }
    its_buffer_char(out, ')');
}

/* -- directives ---------------------------------------------------------------------------------------------------- */

static void put_directive(its_buffer *out, const its_directive *directive) {
    put_name(out, directive->name);
    put_operands(out, directive->ops, directive->node.count, " ");
    if (directive->semicolon) its_buffer_char(out, ';');
}

static void put_position(its_buffer *out, uint32_t file, uint32_t line, uint32_t column) {
    put_u64(out, file);
    its_buffer_char(out, ' ');
    put_u64(out, line);
    its_buffer_char(out, ' ');
    put_u64(out, column);
}

static void put_loc(its_buffer *out, const its_loc *loc) {
    PUT(out, ".loc ");
    put_position(out, loc->file, loc->line, loc->column);
    if (!loc->inlined) return;
    if (loc->function) {
        PUT(out, ", function_name ");
        put_name(out, loc->function);
        if (loc->function_offset) its_buffer_char(out, '+'), put_u64(out, loc->function_offset);
    }
    PUT(out, ", inlined_at ");
    put_position(out, loc->at_file, loc->at_line, loc->at_column);
}

/* ptxas takes ASCII only; compilers write other bytes of a path as \303\251, which stays in the line table as it is. */
static void put_path(its_buffer *out, its_name path) {
    for (const char *p = path->text; *p; p++)
        if ((unsigned char)*p < 0x80)
            its_buffer_char(out, *p);
        else
            its_buffer_printf(out, "\\%03o", (unsigned)(unsigned char)*p);
}

static void put_file(its_buffer *out, const its_file *file) {
    its_buffer_printf(out, ".file %u \"", file->index);
    put_path(out, file->path);
    its_buffer_char(out, '"');
    if (file->has_stat)
        its_buffer_printf(out, ", %llu, %llu", (unsigned long long)file->mtime, (unsigned long long)file->size);
}

static void put_section(its_buffer *out, const its_section *section) {
    PUT(out, ".section ");
    put_name(out, section->name);
    PUT(out, " {");
    its_buffer_put(out, section->body, section->body_size);
    its_buffer_char(out, '}');
}

static void put_alias(its_buffer *out, const its_alias *alias) {
    PUT(out, ".alias ");
    put_name(out, alias->symbol->name);
    PUT(out, ", ");
    put_name(out, alias->symbol->link->name);
    its_buffer_char(out, ';');
}

static void put_targets(its_buffer *out, const its_targets *targets) {
    put_name(out, targets->symbol->name);
    its_buffer_text(out, targets->calls ? ": .calltargets" : ": .branchtargets");
    put_operands(out, targets->ops, targets->node.count, ", ");
    its_buffer_char(out, ';');
}

static void put_proto(its_buffer *out, const its_proto *proto) {
    put_name(out, proto->symbol->name);
    PUT(out, ": .callprototype ");
    if (proto->results.n) put_params(out, &proto->results, ", "), its_buffer_char(out, ' ');
    PUT(out, "_ ");
    put_params(out, &proto->params, ", ");
    bool ended = false;
    for (const its_node *node = proto->directives; node; node = node->next) {
        its_buffer_char(out, ' ');
        put_directive(out, (const its_directive *)node);
        ended = ((const its_directive *)node)->semicolon;
    }
    if (!ended) its_buffer_char(out, ';');
}

/* -- functions ----------------------------------------------------------------------------------------------------- */

static bool has_label(const its_node *node) {
    return node->kind == ITS_NODE_LABEL || node->kind == ITS_NODE_TARGETS || node->kind == ITS_NODE_PROTO;
}

/* `//` up to the end of its line, or a comment of several lines: nothing else goes onto its last one. */
static bool ends_its_line(const its_comment *comment) {
    return comment->text[1] == '/' || memchr(comment->text, '\n', comment->size);
}

/*
 * Does this comment go behind what it stood behind? Not behind another one that has a line of its own or ends it, which
 * is what `alone` remembers of the node before.
 */
static bool joins(const its_node *node, bool *alone) {
    bool comment = node->kind == ITS_NODE_COMMENT, same = comment && (node->flags & ITS_COMMENT_SAME_LINE) && !*alone;
    *alone = comment && (!same || ends_its_line((const its_comment *)node));
    return same;
}

static void print_node(its_buffer *out, const its_node *node);

static void put_body(its_buffer *out, const its_func *func) {
    unsigned depth = 1;
    PUT(out, "{\n");
    bool alone = true;
    for (const its_node *node = func->first; node; node = node->next) {
        if (joins(node, &alone))
            out->data[out->size - 1] = ' ';
        else if (!has_label(node))
            for (unsigned i = node->kind == ITS_NODE_CLOSE; i < depth && i < 16; i++) its_buffer_char(out, '\t');
        if (node->kind == ITS_NODE_OPEN) depth++;
        if (node->kind == ITS_NODE_CLOSE && depth > 1) depth--;
        print_node(out, node);
        its_buffer_char(out, '\n');
    }
    PUT(out, "}");
}

static bool is_attribute(const its_node *node) {
    return strcmp(((const its_directive *)node)->name->text, ".attribute") == 0;
}

static void put_func(its_buffer *out, const its_func *func) {
    const its_symbol *symbol = func->symbol;
    /* A declaration beside a definition in the same module is no extern; ptxas wants both to say the same. */
    put_linkage(out, symbol->flags);
    its_buffer_text(out, symbol->flags & ITS_SYM_ENTRY ? ".entry " : ".func ");
    for (const its_node *node = func->directives; node; node = node->next)
        if (is_attribute(node)) put_directive(out, (const its_directive *)node), its_buffer_char(out, ' ');
    if (func->results.n) put_params(out, &func->results, ", "), its_buffer_char(out, ' ');
    put_name(out, symbol->name);
    if (func->has_params) put_params(out, &func->params, ",\n\t");
    bool ended = false;
    for (const its_node *node = func->directives; node; node = node->next) {
        if (is_attribute(node)) continue;
        its_buffer_char(out, '\n');
        print_node(out, node);
        ended = node->kind == ITS_NODE_DIRECTIVE && ((const its_directive *)node)->semicolon;
    }
    if (func->has_body) {
        its_buffer_char(out, '\n');
        put_body(out, func);
    } else if (!ended) {
        its_buffer_char(out, ';');
    }
}

/* Prints one node into `out`, as its_ptx_print does, without indentation or the end of the line. */
static void print_node(its_buffer *out, const its_node *node) {
    switch ((its_node_kind)node->kind) {
    case ITS_NODE_INSN:
        put_insn(out, (const its_insn *)node);
        return;
    case ITS_NODE_LABEL:
        put_name(out, ((const its_decl *)node)->symbol->name);
        its_buffer_char(out, ':');
        return;
    case ITS_NODE_OPEN:
        its_buffer_char(out, '{');
        return;
    case ITS_NODE_CLOSE:
        its_buffer_char(out, '}');
        return;
    case ITS_NODE_REGS:
        put_regs(out, (const its_regs *)node);
        return;
    case ITS_NODE_PROTO:
        put_proto(out, (const its_proto *)node);
        return;
    case ITS_NODE_TARGETS:
        put_targets(out, (const its_targets *)node);
        return;
    case ITS_NODE_LOC:
        put_loc(out, (const its_loc *)node);
        return;
    case ITS_NODE_VAR:
        put_var(out, (const its_var *)node);
        return;
    case ITS_NODE_PRAGMA:
    case ITS_NODE_DIRECTIVE:
        put_directive(out, (const its_directive *)node);
        return;
    case ITS_NODE_COMMENT:
        its_buffer_put(out, ((const its_comment *)node)->text, ((const its_comment *)node)->size);
        return;
    case ITS_NODE_FUNC:
        put_func(out, (const its_func *)node);
        return;
    case ITS_NODE_ALIAS:
        put_alias(out, (const its_alias *)node);
        return;
    case ITS_NODE_FILE:
        put_file(out, (const its_file *)node);
        return;
    case ITS_NODE_SECTION:
        put_section(out, (const its_section *)node);
        return;
    }
}

/* -- modules ------------------------------------------------------------------------------------------------------- */

typedef struct print_job {
    its_buffer out;
    const its_module *module;
    char *text;
    size_t size;
} print_job;

static void put_header(its_buffer *out, const its_module *module) {
    its_buffer_printf(out, ".version %u.%u\n.target ", module->version_major, module->version_minor);
    for (uint32_t i = 0; i < module->n_targets; i++) {
        if (i) PUT(out, ", ");
        put_name(out, module->targets[i]);
    }
    its_buffer_char(out, '\n');
    if (module->priv->says_address_size) its_buffer_printf(out, ".address_size %u\n", module->address_size);
}

static its_status print_body(void *user) {
    print_job *job = user;
    its_buffer *out = &job->out;
    its_buffer_reserve(out, job->module->source->size + 256);
    put_header(out, job->module);
    bool alone = false;
    for (const its_node *node = job->module->first; node; node = node->next) {
        if (joins(node, &alone)) out->data[out->size - 1] = ' ';
        print_node(out, node);
        its_buffer_char(out, '\n');
    }
    job->text = its_buffer_take(out, &job->size);
    return ITS_OK;
}

its_status its_ptx_print(const its_module *module, char **text, size_t *size) {
    print_job job = {.module = module};
    its_buffer_init(&job.out, module->ctx);
    its_status status = its_protect(module->ctx, print_body, &job);
    its_buffer_free(&job.out);
    *text = job.text;
    if (size) *size = job.size;
    return status;
}
