/* The table of dialects. */
#include "cc/dialects.h"

#include <string.h>

#include "base/diag.h"

static const its_dialect *const built_in[] = {&its_dialect_cuda, &its_dialect_ptx};
enum { N_BUILT_IN = sizeof built_in / sizeof *built_in };

static its_status unknown(its_context *ctx, const char *name) {
    char list[256] = "";
    for (size_t i = 0; i < N_BUILT_IN; i++) {
        strncat(list, i ? ", " : "", sizeof list - strlen(list) - 1);
        strncat(list, built_in[i]->name, sizeof list - strlen(list) - 1);
    }
    return its_fail(ctx, ITS_ERR_INPUT, "a dialect of your own is named by the path of its shared object, with a slash",
                    "there is no dialect '%s'; there are: %s", name, list);
}

/* What is wrong with a descriptor, or NULL. */
static const char *fault_of(const its_dialect *dialect) {
    if (!dialect) return "it has no its_dialect_descriptor";
    if (dialect->abi != ITS_DIALECT_ABI) return "it was made for another version of the dialect interface";
    if (!dialect->name || !dialect->version || !dialect->compile)
        return "its descriptor lacks name, version or compile";
    return NULL;
}

static its_status open_object(its_context *ctx, const char *path, its_dialect_ref *ref) {
    its_status status = its_plugin_open(ctx, path, "dialect", &ref->library);
    if (status != ITS_OK) return status;
    ref->dialect = its_plugin_symbol(&ref->library, "its_dialect_descriptor");
    const char *fault = fault_of(ref->dialect);
    if (!fault) return ITS_OK;
    uint32_t abi = ref->dialect ? ref->dialect->abi : ITS_DIALECT_ABI;
    its_library_close(&ref->library);
    if (abi != ITS_DIALECT_ABI)
        return its_fail(ctx, ITS_ERR_INPUT, "build it against this version's intarsia/cc.h",
                        "the dialect '%s' can't be used: it has interface version %u, this is %d", path, abi,
                        ITS_DIALECT_ABI);
    return its_fail(ctx, ITS_ERR_INPUT, NULL, "the dialect '%s' can't be used: %s", path, fault);
}

its_status its_dialect_get(its_context *ctx, const char *name, its_dialect_ref *ref) {
    *ref = (its_dialect_ref){0};
    if (!name) name = "cuda";
    if (strchr(name, '/')) return open_object(ctx, name, ref);
    for (size_t i = 0; i < N_BUILT_IN; i++)
        if (strcmp(built_in[i]->name, name) == 0) return ref->dialect = built_in[i], ITS_OK;
    return unknown(ctx, name);
}
