/*
 * From a module to machine code: look at the externs that are left, print, run the one assembler that can do it.
 */
#include <string.h>

#include "asm/asm.h"
#include "link/linker.h"

typedef struct asm_block {
    its_asm_result result;
    its_arena arena;
} asm_block;

/* -- what is left to link ------------------------------------------------------------------------------------------ */

static bool is_left(const its_symbol *symbol) {
    if (!(symbol->flags & ITS_SYM_EXTERN) || (symbol->flags & ITS_SYM_DEFINED)) return false;
    if (symbol->kind == ITS_SYM_FUNC) return !its_link_is_builtin(symbol->name);
    return symbol->space != ITS_SPACE_SHARED; /* that is the dynamic shared memory of a launch */
}

static const its_symbol *symbol_of(const its_node *node) {
    if (node->kind == ITS_NODE_FUNC) return ((const its_func *)node)->symbol;
    if (node->kind == ITS_NODE_VAR) return ((const its_var *)node)->symbol;
    return NULL;
}

static bool is_nvshmem(const its_symbol *symbol) {
    const char *library = its_link_library_of(symbol->name);
    return library && strstr(library, "NVSHMEM");
}

bool its_asm_holds_nvshmem(const its_module *module) {
    const its_symbol *state = its_module_find(module, "nvshmemi_device_state_d");
    return state && state->kind == ITS_SYM_VAR;
}

typedef struct needs {
    bool nvshmem;
    const its_symbol *other; /* an extern that no library known here has */
    uint32_t n_others;
} needs;

static needs find_needs(const its_module *module) {
    needs found = {0};
    for (const its_node *node = module->first; node; node = node->next) {
        const its_symbol *symbol = symbol_of(node);
        if (!symbol || !is_left(symbol)) continue;
        if (is_nvshmem(symbol)) {
            found.nvshmem = true;
        } else {
            if (!found.other) found.other = symbol;
            found.n_others++;
        }
    }
    return found;
}

static its_status missing(its_asm_job *job, const needs *found) {
    const char *library = its_link_library_of(found->other->name);
    const char *more = found->n_others > 1 ? its_arena_printf(job->arena, ", and %u more", found->n_others - 1) : "";
    return its_fail(job->ctx, ITS_ERR_INPUT, "define it in a device file, or give its PTX as a library",
                    "the module needs '%s'%s, which nothing here provides%s%s", found->other->name->text, more,
                    library ? "; it is in " : "", library ? library : "");
}

/* -- the job ------------------------------------------------------------------------------------------------------- */

static const char *target_of(const its_module *module) {
    for (uint32_t i = 0; i < module->n_targets; i++)
        if (its_asm_arch_number(module->targets[i]->text)) return module->targets[i]->text;
    return "sm_80";
}

static its_status run(void *user) {
    its_asm_job *job = user;
    needs found = find_needs(job->module);
    if (found.other) return missing(job, &found);
    return found.nvshmem ? its_asm_run_nvjitlink(job) : its_asm_run_ptxas(job);
}

its_status its_assemble(its_context *ctx, const its_module *module, const its_asm_options *options,
                        its_asm_result **result) {
    static const its_asm_options defaults = {0};
    *result = NULL;
    asm_block *block = its_block_alloc(ctx, sizeof *block);
    if (!block) return its_fail(ctx, ITS_ERR_NOMEM, NULL, "no memory for machine code");
    its_arena_init(&block->arena, ctx);
    its_asm_job job = {.ctx = ctx, .module = module, .options = options ? options : &defaults, .arena = &block->arena};
    job.arch = job.options->arch ? job.options->arch : target_of(module);
    its_status status = its_ptx_print(module, &job.ptx, &job.ptx_size);
    if (status == ITS_OK) status = its_protect(ctx, run, &job);
    its_free(ctx, job.ptx);
    block->result = job.result;
    if (status == ITS_OK)
        *result = &block->result;
    else
        its_asm_free(&block->result);
    return status;
}

void its_asm_free(its_asm_result *result) {
    if (!result) return;
    asm_block *block = (asm_block *)(void *)result;
    its_context *ctx = block->arena.ctx;
    its_arena_free(&block->arena);
    its_free(ctx, block);
}

/* -- trying -------------------------------------------------------------------------------------------------------- */

typedef struct trial {
    its_context *ctx;
    const char *arch;
    its_module *module;
    its_asm_result *result;
} trial;

static its_status try_body(void *user) {
    trial *t = user;
    its_arena arena;
    its_arena_init(&arena, t->ctx);
    const char *text = its_arena_printf(&arena,
                                        ".version 7.8\n.target %s\n.address_size 64\n"
                                        ".extern .const .align 4 .b8 nvshmemi_device_lib_version_d[12];\n"
                                        ".visible .entry trial(.param .u64 p)\n{\n.reg .b32 %%r;\n.reg .b64 %%d;\n"
                                        "ld.param.u64 %%d, [p];\nld.const.u32 %%r, [nvshmemi_device_lib_version_d];\n"
                                        "st.global.u32 [%%d], %%r;\nret;\n}\n",
                                        t->arch);
    its_status status = its_ptx_parse(t->ctx, "trial.ptx", text, strlen(text), &t->module);
    its_arena_free(&arena);
    its_asm_options options = {.arch = t->arch};
    return status == ITS_OK ? its_assemble(t->ctx, t->module, &options, &t->result) : status;
}

its_status its_asm_try_nvshmem(its_context *ctx, const char *arch) {
    trial t = {.ctx = ctx, .arch = arch};
    its_status status = its_protect(ctx, try_body, &t);
    its_asm_free(t.result);
    its_module_free(t.module);
    return status;
}
