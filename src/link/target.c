/*
 * Which target the output has. A module for sm_80 runs on everything newer, one for sm_90a on that architecture only,
 * one for sm_100f on its family: so the main module's target counts, and other modules must be fit for it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "link/linker.h"

typedef struct architecture {
    unsigned long number; /* 90 */
    char suffix;          /* 'a', 'f' or 0 */
} architecture;

static const char *arch_text(const its_module *module) {
    for (uint32_t i = 0; i < module->n_targets; i++)
        if (strncmp(module->targets[i]->text, "sm_", 3) == 0) return module->targets[i]->text;
    return module->n_targets ? module->targets[0]->text : "";
}

static bool read_arch(const char *text, architecture *arch) {
    char *end;
    if (strncmp(text, "sm_", 3) != 0 || text[3] < '0' || text[3] > '9') return false;
    arch->number = strtoul(text + 3, &end, 10);
    arch->suffix = *end;
    return *end == 0 || end[1] == 0;
}

static bool is_fit(const architecture *region, const architecture *kernel) {
    if (region->suffix == 'a') return kernel->suffix == 'a' && region->number == kernel->number;
    if (region->suffix == 'f')
        return kernel->suffix && region->number / 10 == kernel->number / 10 && region->number <= kernel->number;
    return region->number <= kernel->number;
}

static void report(its_linker *linker, const its_module *module, const char *what) {
    const its_module *main = its_link_main(linker);
    its_diag_begin(linker->ctx, ITS_ERROR, its_at(module->source, module->target_pos), "%s", what);
    its_diag_also(linker->ctx, its_at(main->source, main->target_pos), "the main module's target");
    its_diag_hint(linker->ctx, "compile it for %s", arch_text(main));
}

/* With texmode_independent an instruction names a texture and a sampler, without it a texture that has one. */
static bool has_own_samplers(const its_module *module) {
    for (uint32_t i = 0; i < module->n_targets; i++)
        if (strcmp(module->targets[i]->text, "texmode_independent") == 0) return true;
    return false;
}

static bool reads_textures(its_linker *linker, const its_module *module) {
    for (its_func *func = NULL; (func = its_module_next_func(module, func));)
        for (const its_node *node = func->first; node; node = node->next) {
            if (node->kind != ITS_NODE_INSN) continue;
            uint16_t op = (uint16_t)its_mnemonic_of(linker->ctx, ((const its_insn *)node)->name)->op;
            if (op == ITS_OP_TEX || op == ITS_OP_TLD4) return true;
        }
    return false;
}

static bool check_textures(its_linker *linker, const its_module *module) {
    if (has_own_samplers(module) == has_own_samplers(its_link_main(linker)) || !reads_textures(linker, module))
        return true;
    report(linker, module, "its textures and samplers are bound in another way than the main module's");
    its_diag_hint(linker->ctx, "give both or neither texmode_independent in .target");
    return false;
}

static bool check_target(its_linker *linker, const its_module *module) {
    const its_module *main = its_link_main(linker);
    const char *text = arch_text(module), *wanted = arch_text(main);
    architecture region, kernel;
    if (module->address_size != main->address_size) {
        report(linker, module, "its addresses have another size than the main module's");
        return false;
    }
    if (strcmp(text, wanted) == 0 || !read_arch(text, &region) || !read_arch(wanted, &kernel)) return true;
    if (is_fit(&region, &kernel)) return true;
    report(linker, module,
           its_arena_printf(&linker->scratch, "a module for %s can't be linked into one for %s", text, wanted));
    return false;
}

static bool is_newer(uint32_t major, uint32_t minor, const its_module *than) {
    return major != than->version_major ? major > than->version_major : minor > than->version_minor;
}

/* The highest version, but not above what the options say. */
static void set_version(its_linker *linker) {
    its_module *out = linker->out;
    const its_link_options *options = &linker->input->options;
    for (uint32_t i = 0; i < linker->n_sources; i++) {
        const its_module *module = linker->sources[i].module;
        if (!is_newer(module->version_major, module->version_minor, out)) continue;
        out->version_major = module->version_major;
        out->version_minor = module->version_minor;
    }
    if (!options->version_major || is_newer(options->version_major, options->version_minor, out)) return;
    out->version_major = options->version_major;
    out->version_minor = options->version_minor;
}

/*
 * Requires: nothing.
 * Ensures: the output has a version, a target and an address size; every module is fit for them.
 */
bool its_link_target(its_linker *linker) {
    const its_module *main = its_link_main(linker);
    its_module *out = linker->out;
    bool ok = true;
    for (uint32_t i = 1; i < linker->n_sources; i++)
        if (!linker->sources[i].repeats)
            ok &= check_target(linker, linker->sources[i].module) && check_textures(linker, linker->sources[i].module);
    set_version(linker);
    out->n_targets = main->n_targets;
    out->targets = ITS_NEW_ARRAY(its_module_arena(out), its_name, main->n_targets);
    if (main->n_targets) memcpy(out->targets, main->targets, main->n_targets * sizeof *out->targets);
    out->address_size = main->address_size;
    out->priv->says_address_size = true;
    return ok;
}
