/*
 * How long a kernel may wait, and what is said if it waits for longer: the host's side of the linker's `limit_waits`
 * (intarsia/link.h has the record and the module's two variables).
 *
 * The record is memory of the host that the GPU writes to, because after a trap nothing on the GPU can be read any
 * more.
 */
#include <stdio.h>
#include <string.h>

#include "intarsia/link.h"
#include "rt/rt.h"

enum { HOST_PORTABLE = 1, HOST_MAPPED = 2, LONGEST_TABLE = 1 << 26 };

struct its_gpu_waits {
    its_gpu_waits *next;
    void *module; /* CUmodule */
    uint64_t number;
    char *table; /* the module's ITS_WAIT_TABLE, NUL-terminated */
};

static its_status make_record(its_gpu *gpu) {
    if (gpu->wait_record) return ITS_OK;
    void *record = NULL;
    int error = gpu->cuda.cuMemHostAlloc(&record, ITS_WAIT_WORDS * sizeof(uint64_t), HOST_PORTABLE | HOST_MAPPED);
    if (!error) error = gpu->cuda.cuMemHostGetDevicePointer_v2(&gpu->wait_record_on_gpu, record, 0);
    if (error) return its_gpu_failed(gpu, error, "make a record for waits");
    memset(record, 0, ITS_WAIT_WORDS * sizeof(uint64_t));
    gpu->wait_record = record;
    return ITS_OK;
}

static its_status read_table(its_gpu *gpu, void *module, char **table) {
    uint64_t address;
    size_t size;
    int error = gpu->cuda.cuModuleGetGlobal_v2(&address, &size, module, ITS_WAIT_TABLE);
    if (error) return its_gpu_failed(gpu, error, "find '%s' in a module", ITS_WAIT_TABLE);
    if (size > LONGEST_TABLE) return its_fail(gpu->base.ctx, ITS_ERR_INPUT, NULL, "a module has too many waits");
    *table = its_block_alloc(gpu->base.ctx, size + 1);
    if (!*table) return its_fail(gpu->base.ctx, ITS_ERR_NOMEM, NULL, "no memory for the waits of a module");
    error = gpu->cuda.cuMemcpyDtoHAsync_v2(*table, address, size, NULL);
    if (!error) error = gpu->cuda.cuStreamSynchronize(NULL);
    (*table)[size] = 0;
    return error ? its_gpu_failed(gpu, error, "read the waits of a module") : ITS_OK;
}

static its_status set_state(its_gpu *gpu, uint64_t address, uint64_t number) {
    uint64_t state[] = {gpu->options.wait_limit_ns, gpu->wait_record_on_gpu, number, 0};
    int error = gpu->cuda.cuMemcpyHtoDAsync_v2(address, state, sizeof state, NULL);
    if (!error) error = gpu->cuda.cuStreamSynchronize(NULL);
    return error ? its_gpu_failed(gpu, error, "set the limit of waits") : ITS_OK;
}

its_status its_gpu_limit_waits(its_gpu *gpu, void *module) {
    uint64_t address;
    size_t size;
    if (!gpu->options.wait_limit_ns) return ITS_OK;
    if (gpu->cuda.cuModuleGetGlobal_v2(&address, &size, module, ITS_WAIT_STATE) != 0) return ITS_OK;
    for (const its_gpu_waits *known = gpu->waits; known; known = known->next)
        if (known->module == module) return ITS_OK;
    its_gpu_waits *waits = its_block_alloc(gpu->base.ctx, sizeof *waits);
    if (!waits) return its_fail(gpu->base.ctx, ITS_ERR_NOMEM, NULL, "no memory for the waits of a module");
    *waits = (its_gpu_waits){.next = gpu->waits, .module = module, .number = ++gpu->n_waits};
    gpu->waits = waits;
    its_status status = make_record(gpu);
    if (status == ITS_OK) status = read_table(gpu, module, &waits->table);
    return status == ITS_OK ? set_state(gpu, address, waits->number) : status;
}

void its_gpu_forget_waits(its_gpu *gpu, const void *module) {
    for (its_gpu_waits **link = &gpu->waits; *link;) {
        its_gpu_waits *waits = *link;
        if (module && waits->module != module) {
            link = &waits->next;
            continue;
        }
        *link = waits->next;
        its_free(gpu->base.ctx, waits->table);
        its_free(gpu->base.ctx, waits);
    }
}

/* -- the report ---------------------------------------------------------------------------------------------------- */

/* A line of the table; each part ends at a tab or the line's end. */
typedef struct wait_line {
    const char *kernel, *place, *compare, *type;
    int kernel_size, place_size, compare_size, type_size;
} wait_line;

static const char *part(const char *at, const char **start, int *size) {
    *start = at;
    *size = (int)strcspn(at, "\t\n");
    at += *size;
    return *at == '\t' ? at + 1 : at;
}

static bool find_line(const its_gpu *gpu, uint64_t module, uint64_t number, wait_line *line) {
    const its_gpu_waits *waits = gpu->waits;
    while (waits && waits->number != module) waits = waits->next;
    const char *at = waits ? waits->table : NULL;
    for (; at && number; number--) {
        at = strchr(at, '\n');
        if (at) at++;
    }
    if (!at || !*at) return false;
    at = part(at, &line->kernel, &line->kernel_size);
    at = part(at, &line->place, &line->place_size);
    at = part(at, &line->compare, &line->compare_size);
    part(at, &line->type, &line->type_size);
    return true;
}

static const char *sign_of(const wait_line *line) {
    static const struct {
        const char *name, *sign;
    } signs[] = {{"eq", "=="}, {"ne", "!="}, {"lt", "<"},  {"le", "<="}, {"gt", ">"},
                 {"ge", ">="}, {"lo", "<"},  {"ls", "<="}, {"hi", ">"},  {"hs", ">="}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (line->compare_size == 2 && memcmp(line->compare, signs[i].name, 2) == 0) return signs[i].sign;
    return NULL;
}

static void put_value(char *out, size_t size, const wait_line *line, uint64_t value) {
    if (line->type_size && line->type[0] == 's')
        snprintf(out, size, "%lld", (long long)value);
    else
        snprintf(out, size, "%llu", (unsigned long long)value);
}

/* "a value == 3; it is 2" */
static void put_values(char *out, size_t size, const wait_line *line, const uint64_t *record) {
    char seen[24], expected[24];
    put_value(seen, sizeof seen, line, record[ITS_WAIT_SEEN]);
    put_value(expected, sizeof expected, line, record[ITS_WAIT_EXPECTED]);
    const char *sign = sign_of(line);
    if (!line->type_size)
        snprintf(out, size, "a change");
    else if (sign)
        snprintf(out, size, "a value %s %s and sees %s", sign, expected, seen);
    else if (line->compare_size)
        snprintf(out, size, "a value that it compares with %s, and sees %s", expected, seen);
    else
        snprintf(out, size, "a change, and sees %s", seen);
}

/* "at 0x7f..., 16 bytes into a symmetric allocation of 64 bytes" */
static void put_address(char *out, size_t size, const its_gpu *gpu, uint64_t address) {
    const its_symmetric *s = gpu->symmetric;
    while (s && (address < s->address || address - s->address >= s->size)) s = s->next;
    if (!address)
        *out = 0;
    else if (s)
        snprintf(out, size, " at 0x%llx, %llu bytes into a symmetric allocation of %zu bytes",
                 (unsigned long long)address, (unsigned long long)(address - s->address), s->size);
    else
        snprintf(out, size, " at 0x%llx", (unsigned long long)address);
}

bool its_gpu_waited_too_long(its_gpu *gpu) {
    const volatile uint64_t *live = gpu->wait_record;
    wait_line line;
    if (!live || !live[ITS_WAIT_WRITTEN]) return false;
    uint64_t record[ITS_WAIT_WORDS];
    for (size_t i = 0; i < ITS_WAIT_WORDS; i++) record[i] = live[i];
    if (!find_line(gpu, record[ITS_WAIT_MODULE], record[ITS_WAIT_NUMBER], &line)) return false;
    char values[96], address[128];
    put_values(values, sizeof values, &line, record);
    put_address(address, sizeof address, gpu, record[ITS_WAIT_ADDRESS]);
    const uint64_t *cta = record + ITS_WAIT_CTA, *thread = record + ITS_WAIT_THREAD;
    its_fail(gpu->base.ctx, ITS_ERR_FAULT,
             "another PE did not send what is waited for, or sent it elsewhere; on the simulator a deadlock is shown "
             "with all PEs: intarsia run --sim",
             "PE %u, kernel '%.*s', CTA (%u, %u, %u), thread (%u, %u, %u) waits at %.*s for longer than %g s for %s%s",
             gpu->options.pe, line.kernel_size, line.kernel, (unsigned)cta[0], (unsigned)cta[1], (unsigned)cta[2],
             (unsigned)thread[0], (unsigned)thread[1], (unsigned)thread[2], line.place_size, line.place,
             (double)gpu->options.wait_limit_ns * 1e-9, values, address);
    return true;
}

its_status its_cuda_check_waits(its_backend *backend) {
    its_gpu *gpu = its_gpu_of(backend);
    return its_gpu_waited_too_long(gpu) || its_gpu_complained(gpu) ? ITS_ERR_FAULT : ITS_OK;
}
