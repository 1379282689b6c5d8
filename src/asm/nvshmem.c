/*
 * NVSHMEM's device functions as modules that the linker can inline.
 *
 * A device file may declare what it calls and nothing else, which compiles in no time. The bodies come from here: from
 * NVSHMEM's own headers, compiled by NVRTC once for each version and architecture (seconds, then cached). In them the
 * way to a peer that is reached by loads and stores is inline; the way through a network stays a call of a function
 * `nvshmemi_transfer_...`, which only NVSHMEM's device library has.
 *
 * Three things are mended in the text that comes out.
 *
 * - The types in names. NVRTC's uint64_t is unsigned long long (`y`), the library's is unsigned long (`m`), and mangled
 *   names differ with it. The types of parameters are the library's in what we call; template arguments are real types,
 *   of which the library has both.
 * - Names that are internal. Barriers and collectives are static in the headers, and not C: they come out under a name
 *   of this source, and get their own.
 * - Transports, if there are to be none. Each `nvshmemi_transfer_...` becomes a trap, but for the one behind waits and
 *   tests, which is a fence where there is no network; and the device state is defined here. No extern is left, and
 *   ptxas assembles the whole kernel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asm/asm.h"
#include "base/file.h"
#include "base/path.h"
#include "cc/embed.h"
#include "intarsia/cc.h"

static const char *const core[] = {
#define ITS_CORE(name) #name,
#include "asm/nvshmem_core.def"
#undef ITS_CORE
};
enum { N_CORE = sizeof core / sizeof *core };

/* -- where it is --------------------------------------------------------------------------------------------------- */

static const char hint[] = "run `pip install nvidia-nvshmem-cu13`, or set INTARSIA_NVSHMEM to the directory of "
                           "libnvshmem_host.so.3";

static uint32_t defined_number(const char *text, const char *name) {
    uint32_t value = 0;
    const char *at = strstr(text, name);
    if (at) sscanf(at + strlen(name), " %u", &value);
    return value;
}

static void read_header_version(its_asm_nvshmem_files *files, its_arena *arena) {
    char *text;
    size_t size;
    const char *path = its_path_join(arena, files->include, "non_abi/nvshmem_version.h");
    if (its_file_read(arena, path, 1 << 20, &text, &size) != 0) return;
    files->major = defined_number(text, "NVSHMEM_VENDOR_MAJOR_VERSION");
    files->minor = defined_number(text, "NVSHMEM_VENDOR_MINOR_VERSION");
    files->patch = defined_number(text, "NVSHMEM_VENDOR_PATCH_VERSION");
}

its_status its_asm_find_nvshmem(its_context *ctx, its_arena *arena, its_asm_nvshmem_files *files) {
    *files = (its_asm_nvshmem_files){0};
    its_library_find(arena, ITS_LIBRARY_NVSHMEM, &files->host);
    if (!files->host.path) return its_library_absent(ctx, &files->host);
    const char *dir = its_path_dir(arena, files->host.path);
    files->include = its_path_join(arena, its_path_dir(arena, dir), "include");
    files->library = its_path_join(arena, dir, "libnvshmem_device.a");
    read_header_version(files, arena);
    if (!its_file_is_regular(files->library))
        return its_fail(ctx, ITS_ERR_ABSENT, hint, "NVSHMEM's device library (libnvshmem_device.a) is not in '%s'",
                        dir);
    if (!its_file_is_regular(its_path_join(arena, files->include, "nvshmem.h")))
        return its_fail(ctx, ITS_ERR_ABSENT, hint, "NVSHMEM's headers (nvshmem.h) are not in '%s'", files->include);
    return ITS_OK;
}

/* -- mending the text ---------------------------------------------------------------------------------------------- */

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

/* The end of template arguments that begin at `at` ("I...E", in which L...E and names of a length nest). */
static char *skip_arguments(char *at, const char *end) {
    int depth = 0;
    while (at < end) {
        if (*at >= '0' && *at <= '9') {
            size_t size = 0;
            while (at < end && *at >= '0' && *at <= '9') size = size * 10 + (size_t)(*at++ - '0');
            /* after L a number is the length of an enum's name, and a digit behind that name its value */
            at += size < (size_t)(end - at) && depth && is_word(at[0]) && !(at[0] == 'E') ? size : 0;
        } else if (*at == 'I' || *at == 'L') {
            depth++, at++;
        } else if (*at++ == 'E' && --depth == 0) {
            return at;
        }
    }
    return at;
}

/* y -> m and x -> l in the types of parameters; names of types, which have a length in front, are passed over. */
static void mend_parameters(char *at, const char *end) {
    while (at < end) {
        if (*at >= '0' && *at <= '9') {
            size_t size = 0;
            while (at < end && *at >= '0' && *at <= '9') size = size * 10 + (size_t)(*at++ - '0');
            at += size < (size_t)(end - at) ? size : (size_t)(end - at);
        } else if (*at == 'S' || *at == 'T') { /* S1_, T_ */
            while (at < end && *at != '_') at++;
        } else {
            if (*at == 'y') *at = 'm';
            if (*at == 'x') *at = 'l';
            at++;
        }
    }
}

void its_asm_mend_names(char *text) {
    static const char key[] = "nvshmemi_transfer_";
    for (char *at = text; (at = strstr(at, key));) {
        char *start = at, *end = at;
        while (start > text && is_word(start[-1])) start--;
        while (is_word(*end)) end++;
        char *param = strstr(at, "_param_"); /* of the function's own parameters, named after it */
        if (param && param < end) end = param;
        at += sizeof key - 1;
        if (strncmp(start, "_Z", 2) != 0) continue;
        size_t size = 0;
        char *p = start + 2;
        while (*p >= '0' && *p <= '9') size = size * 10 + (size_t)(*p++ - '0');
        if (size > (size_t)(end - p)) continue;
        p += size;
        if (*p == 'I') p = skip_arguments(p, end);
        mend_parameters(p, end);
    }
}

/* A name that begins at `at` and is internal to the source, `_ZN41_INTERNAL_...16nvshmem_sync_allEv`: its own name, and
 * how long the whole is. */
static const char *internal_name(const char *at, size_t *size, size_t *whole) {
    const char *start = at;
    char *end;
    unsigned long length;
    if (strncmp(at, "_ZN", 3) != 0) return NULL;
    length = strtoul(at + 3, &end, 10);
    if (strncmp(end, "_INTERNAL_", 10) != 0 || length > strnlen(end, length)) return NULL;
    at = end + length;
    length = strtoul(at, &end, 10);
    if (!length || length > strnlen(end, length) || end[length] != 'E') return NULL;
    *size = length;
    for (at = end + length; is_word(*at) && strncmp(at, "_param_", 7) != 0;) at++;
    *whole = (size_t)(at - start);
    return end;
}

static bool is_among(const char *const *names, size_t count, const char *name, size_t size) {
    for (size_t i = 0; i < count; i++)
        if (strncmp(names[i], name, size) == 0 && names[i][size] == 0) return true;
    return false;
}

void its_asm_own_names(its_buffer *out, const char *text, const char *const *names, size_t count) {
    const char *rest = text;
    for (const char *at = text; (at = strstr(at, "_ZN"));) {
        size_t size, whole;
        const char *name = at > text && is_word(at[-1]) ? NULL : internal_name(at, &size, &whole);
        if (name && is_among(names, count, name, size)) {
            its_buffer_put(out, rest, (size_t)(at - rest));
            its_buffer_put(out, name, size);
            rest = at + whole;
        }
        at += name ? whole : 3;
    }
    its_buffer_put(out, rest, strlen(rest) + 1);
}

/* What stands in for an extern function of NVSHMEM's library, or NULL if it is none that goes through a network. */
static const char *body_without_network(const char *at, size_t size) {
    static const char transfer[] = "nvshmemi_transfer_", update[] = "nvshmemi_transfer_syncapi_update_mem";
    if (strncmp(at, ".extern .func", 13) != 0 || !memmem(at, size, transfer, sizeof transfer - 1)) return NULL;
    return memmem(at, size, update, sizeof update - 1) ? "fence.acq_rel.sys" : "trap";
}

void its_asm_p2p(its_buffer *out, const char *text) {
    static const char state[] = ".extern .const";
    while (*text) {
        const char *at = strstr(text, ".extern ");
        if (!at) break;
        const char *end = strchr(at, ';');
        if (!end) break;
        its_buffer_put(out, text, (size_t)(at - text));
        const char *body = body_without_network(at, (size_t)(end - at));
        bool is_state = strncmp(at, state, sizeof state - 1) == 0 &&
                        memmem(at, (size_t)(end - at), "nvshmemi_device_state_d", 23) != NULL;
        if (body)
            its_buffer_printf(out, ".func%.*s{\n\t%s;\n\tret;\n}", (int)(end - at - 13), at + 13, body);
        else if (is_state)
            its_buffer_printf(out, ".weak .const%.*s;", (int)(end - at - 14), at + 14);
        else
            its_buffer_put(out, at, (size_t)(end - at + 1));
        text = end + 1;
    }
    its_buffer_text(out, text);
}

/* -- compiling ----------------------------------------------------------------------------------------------------- */

typedef struct provider {
    its_context *ctx;
    its_arena arena;
    its_buffer text;
    const char *arch;
    its_transport transport;
    const char *const *names;
    uint32_t n_names;
    its_asm_nvshmem_files files;
    its_module *made[2];
    uint32_t n_made;
} provider;

static bool is_core(const char *name) {
    for (size_t i = 0; i < N_CORE; i++)
        if (strcmp(core[i], name) == 0) return true;
    return false;
}

/* Others may call them, and may have them as well. */
static void show(its_module *module, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        its_symbol *symbol = its_module_find(module, names[i]);
        if (symbol && !(symbol->flags & (ITS_SYM_VISIBLE | ITS_SYM_WEAK))) symbol->flags |= ITS_SYM_WEAK;
    }
}

static its_status parse(provider *p, const its_unit *unit, const char *const *names, size_t count) {
    p->text.size = 0;
    its_asm_own_names(&p->text, unit->ptx, names, count);
    size_t size = p->text.size - 1;
    char *text = its_arena_text(&p->arena, p->text.data, size);
    its_asm_mend_names(text);
    if (p->transport == ITS_TRANSPORT_P2P) {
        p->text.size = 0;
        its_asm_p2p(&p->text, text);
        text = p->text.data;
        size = p->text.size;
    }
    its_status status = its_ptx_parse(p->ctx, "nvshmem.ptx", text, size, &p->made[p->n_made]);
    if (status != ITS_OK) return status;
    show(p->made[p->n_made++], names, count);
    return ITS_OK;
}

static its_status compile(provider *p, const char *const *names, size_t count) {
    const its_embedded *head = its_embedded_file("gpu/nvshmem.cu");
    if (!head) return its_fail(p->ctx, ITS_ERR_ABSENT, NULL, "this build of Intarsia has no device/gpu/nvshmem.cu");
    p->text.size = 0;
    its_buffer_put(&p->text, head->text, head->size);
    its_buffer_printf(&p->text, "BEGIN(%s)\n", names[0]);
    for (size_t i = 0; i < count; i++) its_buffer_printf(&p->text, "KEEP(%s)\n", names[i]);
    its_buffer_text(&p->text, "END\n");
    its_buffer_char(&p->text, 0);
    const char *options[] = {"-I", p->files.include, "-no-lineinfo", "-default-device"};
    its_cc_input input = {.dialect = "cuda", .path = "nvshmem.cu", .source = p->text.data, .arch = p->arch};
    input.options = options;
    input.n_options = 4;
    its_unit *unit;
    its_status status = its_cc(p->ctx, &input, &unit);
    if (status != ITS_OK) return status;
    status = parse(p, unit, names, count); /* what jumps out of here on no memory leaves the unit to the context */
    its_unit_free(unit);
    return status;
}

/* The others, sorted, so that their order makes no other unit. */
static size_t others(provider *p, const char **names) {
    size_t count = 0;
    for (uint32_t i = 0; i < p->n_names; i++) {
        const char *name = p->names[i];
        if (strncmp(name, "nvshmem_", 8) != 0 && strncmp(name, "nvshmemx_", 9) != 0) continue;
        if (is_core(name)) continue;
        size_t at = count++;
        for (; at > 0 && strcmp(names[at - 1], name) > 0; at--) names[at] = names[at - 1];
        names[at] = name;
    }
    return count;
}

static its_status provide(void *user) {
    provider *p = user;
    its_status status = its_asm_find_nvshmem(p->ctx, &p->arena, &p->files);
    const char **names = ITS_NEW_ARRAY(&p->arena, const char *, p->n_names + 1);
    size_t count = others(p, names);
    bool wants_core = false;
    for (uint32_t i = 0; i < p->n_names; i++) wants_core |= is_core(p->names[i]);
    if (status == ITS_OK && wants_core) status = compile(p, core, N_CORE);
    if (status == ITS_OK && count) {
        status = compile(p, names, count);
        if (status == ITS_ERR_INPUT)
            its_fail(p->ctx, status, NULL, "NVSHMEM %u.%u.%u in '%s' has not all of the functions that are called",
                     p->files.major, p->files.minor, p->files.patch, p->files.include);
    }
    return status;
}

its_status its_asm_nvshmem(its_context *ctx, const char *arch, its_transport transport, const char *const *names,
                           uint32_t n_names, its_module ***modules, uint32_t *count) {
    *modules = NULL;
    *count = 0;
    provider p = {.ctx = ctx, .arch = arch, .transport = transport, .names = names, .n_names = n_names};
    its_arena_init(&p.arena, ctx);
    its_buffer_init(&p.text, ctx);
    its_status status = its_protect(ctx, provide, &p);
    its_buffer_free(&p.text);
    its_arena_free(&p.arena);
    its_module **list = status == ITS_OK ? its_block_alloc(ctx, sizeof p.made) : NULL;
    if (status == ITS_OK && !list) status = its_fail(ctx, ITS_ERR_NOMEM, NULL, "no memory for modules");
    for (uint32_t i = 0; i < p.n_made; i++)
        if (list)
            list[i] = p.made[i];
        else
            its_module_free(p.made[i]);
    *modules = list;
    *count = list ? p.n_made : 0;
    return status;
}

static its_status find_files(void *user) {
    provider *p = user;
    return its_asm_find_nvshmem(p->ctx, &p->arena, &p->files);
}

its_status its_asm_nvshmem_version(its_context *ctx, uint32_t version[3]) {
    provider p = {.ctx = ctx};
    its_arena_init(&p.arena, ctx);
    its_status status = its_protect(ctx, find_files, &p);
    version[0] = p.files.major;
    version[1] = p.files.minor;
    version[2] = p.files.patch;
    its_arena_free(&p.arena);
    return status;
}
