/*
 * Forcing templates out, and putting NVRTC's PTX right.
 *
 * NVRTC gives the PTX name of an instance only for kernels. For device functions the source gets a function per
 * instance that returns its address: the template is instantiated for it, and its body names it:
 *
 *     extern "C" __device__ void *its_instance_0__() { return (void *)&scale<float>; }
 *
 *     .visible .func (.param .b64 func_retval0) its_instance_0__() { ... mov.u64 %rd1, _Z5scaleIfEvPT_i; ... }
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/diag.h"
#include "base/path.h"
#include "cc/cuda.h"
#include "cc/edit.h"
#include "cc/embed.h"
#include "ptx/module.h"

static const char function_prefix[] = "its_instance_";

/* What stands around an instance's name, which may be long: all of them are put together once. */
static size_t write_instance(char *to, size_t room, uint32_t index, const char *name) {
    int size = snprintf(to, room, "extern \"C\" __device__ void *%s%u__() { return (void *)&%s; }\n", function_prefix,
                        index, name);
    return size < 0 ? 0 : (size_t)size;
}

const char *its_cuda_instances_text(its_arena *arena, const its_cc_input *input) {
    static const char head[] = "\n#line 1 \"" ITS_INSTANCES_FILE "\"\n";
    size_t size = sizeof head;
    if (!input->n_instances) return "";
    for (uint32_t i = 0; i < input->n_instances; i++) size += write_instance(NULL, 0, i, input->instances[i]);
    char *text = its_arena_alloc(arena, size), *end = text + sizeof head - 1;
    memcpy(text, head, sizeof head);
    for (uint32_t i = 0; i < input->n_instances; i++)
        end += write_instance(end, size - (size_t)(end - text), i, input->instances[i]);
    return text;
}

/* -- instances ----------------------------------------------------------------------------------------------------- */

static void note_function(its_operand *operand, void *user) {
    its_name *found = user;
    if (operand->kind == ITS_OPND_SYM && operand->symbol->kind == ITS_SYM_FUNC) *found = operand->symbol->name;
}

/* The function whose address the body takes. */
static its_name named_in(const its_func *func) {
    its_name found = NULL;
    for (its_node *node = func->first; node; node = node->next)
        if (node->kind == ITS_NODE_INSN) its_node_visit(node, note_function, &found);
    return found;
}

static its_status resolve(its_context *ctx, its_arena *arena, const its_module *module, const its_cc_input *input,
                          char **names) {
    for (uint32_t i = 0; i < input->n_instances; i++) {
        its_symbol *symbol = its_module_find(module, its_arena_printf(arena, "%s%u__", function_prefix, i));
        its_name name = symbol && symbol->func && symbol->func->has_body ? named_in(symbol->func) : NULL;
        if (!name) return its_fail(ctx, ITS_ERR_INPUT, NULL, "the instance '%s' is no function", input->instances[i]);
        names[i] = its_arena_text(arena, name->text, name->size);
    }
    return ITS_OK;
}

static bool is_ours(const its_node *node) {
    if (node->kind == ITS_NODE_FUNC) {
        its_name name = ((const its_func *)node)->symbol->name;
        return strncmp(name->text, function_prefix, sizeof function_prefix - 1) == 0;
    }
    if (node->kind == ITS_NODE_COMMENT) { /* "// .globl its_instance_0__" */
        const its_comment *comment = (const its_comment *)node;
        return memmem(comment->text, comment->size, function_prefix, sizeof function_prefix - 1);
    }
    if (node->kind == ITS_NODE_FILE) {
        its_name path = ((const its_file *)node)->path;
        size_t size = sizeof ITS_INSTANCES_FILE - 1;
        return path->size >= size && strcmp(path->text + path->size - size, ITS_INSTANCES_FILE) == 0;
    }
    return false;
}

/* Takes the appended functions, and the file they are in, out of the module. */
static void remove_ours(its_module *module) {
    its_node **link = &module->first;
    module->last = NULL;
    for (its_node *node = module->first; node; node = node->next) {
        if (is_ours(node)) continue;
        *link = module->last = node;
        link = &node->next;
    }
    *link = NULL;
}

static its_status finish_instances(its_context *ctx, its_arena *arena, its_module *module, const its_cc_input *input,
                                   char **names, const char **ptx, size_t *size) {
    its_status status = resolve(ctx, arena, module, input, names);
    if (status != ITS_OK) return status;
    remove_ours(module);
    char *text;
    status = its_ptx_print(module, &text, size);
    if (status != ITS_OK) return status;
    *ptx = its_arena_text(arena, text, *size);
    its_free(ctx, text);
    return ITS_OK;
}

/* -- files --------------------------------------------------------------------------------------------------------- */

/* What NVRTC wrote with backslashes. */
static char *unescape(its_arena *arena, const char *text) {
    char *result = its_arena_text(arena, text, strlen(text)), *out = result;
    for (const char *p = text; *p; p++) {
        if (*p == '\\' && p[1])
            p++, *out++ = *p == 'n' ? '\n' : *p == 't' ? '\t' : *p;
        else
            *out++ = *p;
    }
    *out = 0;
    return result;
}

/* The number of a file among those that were read, from 1; 0 if it is none. */
static size_t read_number(const its_cc_reads *reads, const char *path) {
    char real[PATH_MAX], other[PATH_MAX];
    for (size_t i = 0; i < reads->files.count; i++)
        if (strcmp(reads->files.items[i]->path, path) == 0) return i + 1;
    if (!realpath(path, real)) return 0;
    for (size_t i = 0; i < reads->files.count; i++)
        if (realpath(reads->files.items[i]->path, other) && strcmp(real, other) == 0) return i + 1;
    return 0;
}

/* What a .file says instead of the path that NVRTC gave it; see its_dialect.compile. */
static const char *file_mark(its_arena *arena, const its_cc_input *input, const its_cc_reads *reads, const char *path) {
    const char *here = its_path_absolute(arena, "."), *rest = path + strlen(here);
    /* NVRTC puts the current directory in front of names that are no absolute path. */
    if (strncmp(path, here, strlen(here)) == 0 && *rest == '/') {
        if (strcmp(rest + 1, its_cuda_source_name(arena, input)) == 0) return ITS_FILE_MARK "0";
        if (its_embedded_file(rest + 1)) return rest + 1;
    }
    size_t number = read_number(reads, path);
    return number ? its_arena_printf(arena, ITS_FILE_MARK "%zu", number) : its_quotable(arena, path);
}

static void finish_files(its_arena *arena, const its_module *module, const its_cc_input *input,
                         const its_cc_reads *reads, const char **ptx, size_t *size) {
    its_edits edits = {0};
    for (const its_node *node = module->first; node; node = node->next) {
        const its_file *file = (const its_file *)node;
        its_edit edit = {0};
        if (node->kind != ITS_NODE_FILE || !its_file_path_in_text(file, *ptx, *size, &edit.offset)) continue;
        edit.size = file->path->size;
        edit.text = file_mark(arena, input, reads, unescape(arena, file->path->text));
        ITS_PUSH(arena, &edits, edit);
    }
    *ptx = its_edits_apply(arena, &edits, *ptx, *size, size);
}

/* -- both ---------------------------------------------------------------------------------------------------------- */

typedef struct finish_job {
    its_context *ctx;
    its_arena *arena;
    const its_cc_input *input;
    const its_cc_reads *reads;
    const char **ptx;
    size_t *size;
    char **names;
    its_module *module;
} finish_job;

static its_status parse_again(finish_job *job) {
    its_module_free(job->module);
    job->module = NULL;
    return its_ptx_parse(job->ctx, "NVRTC's output", *job->ptx, *job->size, &job->module);
}

static its_status finish_body(void *user) {
    finish_job *job = user;
    its_status status = parse_again(job);
    if (status == ITS_OK && job->input->n_instances) {
        status = finish_instances(job->ctx, job->arena, job->module, job->input, job->names, job->ptx, job->size);
        if (status == ITS_OK) status = parse_again(job);
    }
    if (status == ITS_OK) finish_files(job->arena, job->module, job->input, job->reads, job->ptx, job->size);
    return status;
}

its_status its_cuda_finish(its_context *ctx, its_arena *arena, const its_cc_input *input, const its_cc_reads *reads,
                           const char **ptx, size_t *size, char **instance_names) {
    finish_job job = {ctx, arena, input, reads, ptx, size, instance_names, NULL};
    its_status status = its_protect(ctx, finish_body, &job);
    its_module_free(job.module);
    return status;
}
