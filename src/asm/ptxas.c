/*
 * ptxas, as a process: the module in a file of a private directory, the machine code in another, what it says read
 * back.
 *
 * The one that Triton brings along comes first, so that a kernel is assembled by the same program with and without a
 * region. What this ptxas can't know, a newer PTX or architecture, is told before it runs: its own words for it name
 * neither side.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "asm/asm.h"
#include "base/file.h"
#include "base/path.h"
#include "base/process.h"

enum { LARGEST_CUBIN = 1 << 30, FIRST_BLACKWELL = 100 };

/* -- which one ----------------------------------------------------------------------------------------------------- */

static const char *const knobs[] = {"INTARSIA_PTXAS", "TRITON_PTXAS_PATH", NULL};
static const char *const blackwell_knobs[] = {"INTARSIA_PTXAS", "TRITON_PTXAS_BLACKWELL_PATH", NULL};
static const char hint[] = "install Triton or a CUDA toolkit, or set INTARSIA_PTXAS to the path of ptxas";

its_status its_asm_find_ptxas(its_context *ctx, its_arena *arena, const char *arch, its_library_search *search) {
    bool blackwell = arch && its_asm_arch_number(arch) >= FIRST_BLACKWELL;
    its_tool tool = {"ptxas", "ptxas", knobs, "triton/backends/nvidia/bin,nvidia/cu13/bin,nvidia/cuda_nvcc/bin",
                     "bin",   true,    hint};
    if (blackwell) { /* Triton has a ptxas of its own for these */
        tool.file = "ptxas-blackwell";
        tool.knobs = blackwell_knobs;
        its_tool_find(arena, &tool, search);
        if (search->path || search->problem) return search->path ? ITS_OK : its_tool_absent(ctx, &tool, search);
        tool.file = "ptxas";
    }
    its_tool_find(arena, &tool, search);
    return search->path ? ITS_OK : its_tool_absent(ctx, &tool, search);
}

static its_status read_version(its_context *ctx, its_buffer *output, const char *path, uint32_t *major,
                               uint32_t *minor) {
    const char *const argv[] = {path, "--version", NULL};
    its_process process = {.argv = argv, .timeout_ms = 20000};
    int code;
    its_status status = its_process_run(ctx, &process, output, &code);
    if (status != ITS_OK) return status;
    const char *release = strstr(output->data, "release ");
    if (code == 0 && release && sscanf(release, "release %u.%u", major, minor) == 2) return ITS_OK;
    return its_fail(ctx, ITS_ERR_ABSENT, "set INTARSIA_PTXAS to a ptxas that works", "'%s' does not tell its version",
                    path);
}

its_status its_asm_ptxas_version(its_context *ctx, const char *path, uint32_t *major, uint32_t *minor) {
    its_buffer output;
    its_buffer_init(&output, ctx);
    its_status status = read_version(ctx, &output, path, major, minor);
    its_buffer_free(&output);
    return status;
}

typedef struct version_job {
    its_context *ctx;
    its_arena arena;
    const char *arch;
    uint32_t major, minor;
} version_job;

static its_status find_version(void *user) {
    version_job *job = user;
    its_library_search search;
    its_status status = its_asm_find_ptxas(job->ctx, &job->arena, job->arch, &search);
    return status == ITS_OK ? its_asm_ptxas_version(job->ctx, search.path, &job->major, &job->minor) : status;
}

its_status its_asm_ptx_version(its_context *ctx, const char *arch, uint32_t *major, uint32_t *minor) {
    version_job job = {.ctx = ctx, .arch = arch};
    its_arena_init(&job.arena, ctx);
    its_status status = its_protect(ctx, find_version, &job);
    its_arena_free(&job.arena);
    if (status == ITS_OK) its_asm_isa_of_cuda(job.major, job.minor, major, minor);
    return status;
}

/* -- what it can't know -------------------------------------------------------------------------------------------- */

static its_status check_known(its_asm_job *job, const char *path, uint32_t cuda_major, uint32_t cuda_minor) {
    uint32_t major, minor;
    const its_module *m = job->module;
    its_asm_isa_of_cuda(cuda_major, cuda_minor, &major, &minor);
    if (m->version_major > major || (m->version_major == major && m->version_minor > minor))
        return its_fail(job->ctx, ITS_ERR_INPUT,
                        "let the linker write an older version (its_link_options.version_major), or set INTARSIA_PTXAS "
                        "to a newer ptxas",
                        "the module is PTX %u.%u, of a newer compiler than the ptxas %u.%u in '%s', which takes %u.%u "
                        "at most",
                        m->version_major, m->version_minor, cuda_major, cuda_minor, path, major, minor);
    uint32_t needed = its_asm_cuda_of_arch(its_asm_arch_number(job->arch));
    if (needed > 10 * cuda_major + cuda_minor)
        return its_fail(job->ctx, ITS_ERR_INPUT, "set INTARSIA_PTXAS to a newer ptxas",
                        "the module is for %s, which ptxas knows from %u.%u on; the one in '%s' is %u.%u", job->arch,
                        needed / 10, needed % 10, path, cuda_major, cuda_minor);
    return ITS_OK;
}

/* -- running it ---------------------------------------------------------------------------------------------------- */

typedef struct place {
    int parent;    /* descriptor of the directory that ours is in */
    int dir;       /* of ours */
    char name[64]; /* of ours */
    char *path;
} place;

static its_status make_place(its_asm_job *job, place *p) {
    const char *temp = getenv("TMPDIR");
    if (!temp || !*temp) temp = "/tmp";
    p->parent = open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = p->parent < 0 ? errno : its_dir_make_temp(p->parent, "intarsia-", p->name);
    if (!error) {
        p->path = its_path_join(job->arena, its_path_absolute(job->arena, temp), p->name);
        p->dir = openat(p->parent, p->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        error = p->dir < 0 ? errno : its_file_write_at(p->dir, "module.ptx", job->ptx, job->ptx_size);
    }
    if (!error) return ITS_OK;
    return its_fail(job->ctx, ITS_ERR_IO, "TMPDIR names another directory", "can't write a file for ptxas in '%s': %s",
                    temp, strerror(error));
}

static void remove_place(place *p) {
    if (p->dir >= 0) close(p->dir);
    if (p->parent >= 0 && *p->name) its_dir_remove(p->parent, p->name);
    if (p->parent >= 0) close(p->parent);
}

static const char *const *arguments(its_asm_job *job, const place *p) {
    const its_asm_options *o = job->options;
    ITS_VEC(const char *) list = {0};
    ITS_PUSH(job->arena, &list, job->result.path);
    ITS_PUSH(job->arena, &list, "-v");
    if (o->line_info) ITS_PUSH(job->arena, &list, "-lineinfo");
    for (uint32_t i = 0; i < o->n_options; i++) ITS_PUSH(job->arena, &list, o->options[i]);
    ITS_PUSH(job->arena, &list, its_arena_printf(job->arena, "--gpu-name=%s", job->arch));
    ITS_PUSH(job->arena, &list, its_path_join(job->arena, p->path, "module.ptx"));
    ITS_PUSH(job->arena, &list, "-o");
    ITS_PUSH(job->arena, &list, its_path_join(job->arena, p->path, "module.cubin"));
    ITS_PUSH(job->arena, &list, NULL);
    return list.items;
}

/* The first lines with errors are the message; the path of our file in them means nothing to anybody. */
static its_status refused(its_asm_job *job, const char *log) {
    const char *at = strstr(log, "error");
    while (at && at > log && at[-1] != '\n') at--;
    const char *line = at ? strstr(at, "line ") : NULL;
    if (line && line < strchrnul(at, '\n')) at = line;
    size_t size = at ? strcspn(at, "\n") : strlen(log);
    return its_fail(job->ctx, ITS_ERR_INPUT, "`intarsia check` tells what is wrong with PTX",
                    "ptxas %s refuses the module: %.*s", job->result.version, (int)(size < 2000 ? size : 2000),
                    at ? at : log);
}

static its_status run_in(its_asm_job *job, const place *p, its_buffer *output) {
    its_process process = {.argv = arguments(job, p)};
    int code;
    its_status status = its_process_run(job->ctx, &process, output, &code);
    if (status != ITS_OK) return status;
    const char *log = its_arena_text(job->arena, output->data, output->size);
    its_asm_read_log(job->arena, log, &job->result);
    if (code != 0) return refused(job, log);
    char *cubin;
    int error = its_file_read_at(job->arena, p->dir, "module.cubin", LARGEST_CUBIN, &cubin, &job->result.cubin_size);
    job->result.cubin = cubin;
    if (!error) return ITS_OK;
    return its_fail(job->ctx, ITS_ERR_IO, NULL, "can't read what ptxas has written: %s", strerror(error));
}

typedef struct ptxas_run {
    its_asm_job *job;
    place place;
    its_buffer output;
} ptxas_run;

static its_status run_body(void *user) {
    ptxas_run *run = user;
    its_status status = make_place(run->job, &run->place);
    return status == ITS_OK ? run_in(run->job, &run->place, &run->output) : status;
}

its_status its_asm_run_ptxas(its_asm_job *job) {
    its_library_search search;
    uint32_t major, minor;
    its_status status = its_asm_find_ptxas(job->ctx, job->arena, job->arch, &search);
    if (status == ITS_OK) status = its_asm_ptxas_version(job->ctx, search.path, &major, &minor);
    if (status == ITS_OK) status = check_known(job, search.path, major, minor);
    if (status != ITS_OK) return status;
    job->result.tool = "ptxas";
    job->result.path = search.path;
    job->result.version = its_arena_printf(job->arena, "%u.%u", major, minor);
    ptxas_run run = {.job = job, .place = {.parent = -1, .dir = -1}};
    its_buffer_init(&run.output, job->ctx);
    status = its_protect(job->ctx, run_body, &run);
    remove_place(&run.place);
    its_buffer_free(&run.output);
    return status;
}
