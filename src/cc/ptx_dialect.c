/* The `ptx` dialect: the source is PTX already; it is parsed and checked. */
#include <string.h>

#include "base/diag.h"
#include "cc/dialects.h"
#include "intarsia/ptx.h"

static its_status ptx_version(its_context *ctx, const its_cc_host *host, char *text, size_t size) {
    (void)ctx, (void)host;
    if (size) *text = 0;
    strncat(text, "ptx 1", size - 1); /* its own version: Intarsia's is part of every unit id */
    return ITS_OK;
}

static its_status ptx_compile(its_context *ctx, const its_cc_host *host, const its_cc_input *input, const char *source,
                              size_t size, const its_cc_reads *reads, its_dialect_result *result) {
    (void)reads;
    if (input->n_options)
        return its_fail(ctx, ITS_ERR_INPUT, "leave it out", "the ptx dialect has no option '%s'", input->options[0]);
    if (input->n_instances)
        return its_fail(ctx, ITS_ERR_INPUT, NULL, "PTX has no templates, so there is no instance '%s'",
                        input->instances[0]);
    its_module *module;
    its_status status = its_ptx_parse(ctx, input->path ? input->path : "source.ptx", source, size, &module);
    if (status == ITS_OK) status = its_ptx_verify(module);
    its_module_free(module);
    if (status != ITS_OK) return status;
    result->ptx = host->alloc(host, size + 1);
    if (!result->ptx) return ITS_ERR_NOMEM;
    memcpy(result->ptx, source, size);
    result->ptx[size] = 0;
    result->ptx_size = size;
    return ITS_OK;
}

const its_dialect its_dialect_ptx = {ITS_DIALECT_ABI, "ptx", ptx_version, NULL, ptx_compile};
