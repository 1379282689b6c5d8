/* The `cuda` dialect: CUDA C++ to PTX with NVRTC, which is loaded at run time. */
#include "cc/cuda.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/diag.h"
#include "cc/dialects.h"
#include "cc/embed.h"

/* -- the compiler's identity --------------------------------------------------------------------------------------- */

/*
 * NVRTC tells its version only when it is loaded, which takes longer than a warm compilation may, and then without the
 * patch level. So its identity is taken from the file: size and a few pages, among them the build id in front.
 */
enum { SAMPLES = 16, SAMPLE_SIZE = 4096 };

static bool hash_samples(const char *path, its_hasher *hasher) {
    char page[SAMPLE_SIZE];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool ok = fstat(fd, &st) == 0;
    its_hash_field(hasher, &st.st_size, sizeof st.st_size);
    for (int i = 0; ok && i < SAMPLES; i++) {
        off_t at = st.st_size / SAMPLES * i / SAMPLE_SIZE * SAMPLE_SIZE;
        ssize_t n = pread(fd, page, sizeof page, at);
        ok = n >= 0;
        if (ok) its_hash_field(hasher, page, (size_t)n);
    }
    close(fd);
    return ok;
}

typedef struct version_job {
    its_context *ctx;
    its_arena arena;
    its_digest digest;
} version_job;

static its_status version_body(void *user) {
    version_job *job = user;
    its_library_search search;
    its_hasher hasher;
    its_hash_init(&hasher);
    its_library_find(&job->arena, ITS_LIBRARY_NVRTC, &search);
    if (!search.path) return its_library_absent(job->ctx, &search);
    if (!hash_samples(search.path, &hasher))
        return its_fail(job->ctx, ITS_ERR_ABSENT, search.hint, "NVRTC in '%s' can't be read", search.path);
    its_hash_digest(&hasher, &job->digest);
    return ITS_OK;
}

static its_status cuda_version(its_context *ctx, const its_cc_host *host, char *text, size_t size) {
    (void)host;
    version_job job = {.ctx = ctx};
    its_arena_init(&job.arena, ctx);
    its_status status = its_protect(ctx, version_body, &job);
    its_arena_free(&job.arena);
    snprintf(text, size, "nvrtc %s", job.digest.narrow);
    return status;
}

/* -- what compiling reads ------------------------------------------------------------------------------------------ */

/* Offset of the first byte that is not part of UTF-8 text, or `size`. */
static size_t first_bad_byte(const char *text, size_t size) {
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    while (p < end) {
        size_t more = *p < 0x80                 ? 0
                      : *p >= 0xc2 && *p < 0xe0 ? 1
                      : (*p & 0xf0) == 0xe0     ? 2
                      : *p >= 0xf0 && *p < 0xf5 ? 3
                                                : 4;
        bool ok = *p && more < 4 && (size_t)(end - p) > more;
        for (size_t i = 1; ok && i <= more; i++) ok = (p[i] & 0xc0) == 0x80;
        if (!ok) break;
        p += more + 1;
    }
    return (size_t)(p - (const unsigned char *)text);
}

/* NVRTC ends a line at a byte that is no UTF-8, and the text at a NUL: silently, in a comment or string. */
static its_status check_text(its_context *ctx, const its_cc_input *input, const char *text, size_t size) {
    size_t at = first_bad_byte(text, size);
    if (at == size) return ITS_OK;
    its_source source = {input->path ? input->path : "source.cu", text, size};
    its_diag_begin(ctx, ITS_ERROR, its_at(&source, (uint32_t)at),
                   "the source is not UTF-8 text: it has the byte 0x%02x", (unsigned char)text[at]);
    its_diag_hint(ctx, "save the file as UTF-8");
    return ITS_ERR_INPUT;
}

static its_status cuda_scan(its_context *ctx, const its_cc_host *host, const its_cc_input *input, const char *source,
                            size_t size, its_cc_reads *reads) {
    (void)host;
    its_arena *arena = reads->arena;
    its_cuda_options options;
    its_cuda_search search;
    its_library_search nvrtc;
    its_status status = check_text(ctx, input, source, size);
    if (status == ITS_OK) status = its_cuda_options_parse(ctx, arena, input, &options);
    if (status != ITS_OK) return status;
    its_library_find(arena, ITS_LIBRARY_NVRTC, &nvrtc);
    its_cuda_search_init(arena, input, &options, &nvrtc, &search);
    its_reads_text(reads, its_cuda_source_name(arena, input));
    its_reads_text(reads, options.no_lineinfo ? "no lines" : "lines");
    for (size_t i = 0; i < options.passed.count; i++) its_reads_text(reads, options.passed.items[i]);
    its_cuda_read_includes(arena, &search, source, size, reads);
    return ITS_OK;
}

/* -- compiling ----------------------------------------------------------------------------------------------------- */

typedef struct compile_job {
    its_context *ctx;
    its_arena *arena;
    const its_cc_input *input;
    const char *source;
    size_t size;
    const its_cc_reads *reads;
    its_dialect_result *result;
    its_library_search found;
    its_library library;
    its_nvrtc nvrtc;
    void *program;
    its_cuda_options options;
    its_cuda_search search;
    ITS_VEC(const char *) arguments;
} compile_job;

static void add(compile_job *job, const char *option) {
    ITS_PUSH(job->arena, &job->arguments, option);
}

static its_status make_arguments(compile_job *job) {
    const its_cuda_options *options = &job->options;
    const char *arch = its_cuda_arch(job->arena, job->input->arch);
    if (!arch)
        return its_fail(job->ctx, ITS_ERR_INPUT, "name it as in \"sm_80\" or \"sm_90a\"",
                        "'%s' is no architecture of the cuda dialect", job->input->arch);
    add(job, its_arena_printf(job->arena, "--gpu-architecture=%s", arch));
    add(job, "--relocatable-device-code=true");
    if (!options->has_std) add(job, "--std=c++17");
    if (!options->no_lineinfo && !options->debug) add(job, "--generate-line-info");
    for (size_t i = 0; i < options->passed.count; i++) add(job, options->passed.items[i]);
    for (size_t i = 0; i < options->pre_includes.count; i++)
        add(job, its_arena_printf(job->arena, "--pre-include=%s", options->pre_includes.items[i]));
    for (size_t i = 0; i < job->search.n_dirs; i++)
        add(job, its_arena_printf(job->arena, "--include-path=%s", job->search.dirs[i]));
    return ITS_OK;
}

/* The source with its name in front, so that nothing in the result depends on its directory, and the instances. */
static const char *make_source(compile_job *job) {
    static const char mark[] = "\xef\xbb\xbf"; /* a byte order mark, legal only at the very start */
    const char *source = job->source + (strncmp(job->source, mark, 3) == 0 ? 3 : 0);
    return its_arena_printf(job->arena, "#line 1 \"%s\"\n%s%s", its_cuda_source_name(job->arena, job->input), source,
                            its_cuda_instances_text(job->arena, job->input));
}

static its_status nvrtc_failed(compile_job *job, int code, const char *what) {
    return its_fail(job->ctx, ITS_ERR_INPUT, NULL, "NVRTC could not %s: %s", what,
                    job->nvrtc.nvrtcGetErrorString(code));
}

static its_status create_program(compile_job *job) {
    size_t n_files, count = 0;
    const its_embedded *files = its_embedded_files(&n_files);
    const char **texts = ITS_NEW_ARRAY(job->arena, const char *, n_files + 1);
    const char **names = ITS_NEW_ARRAY(job->arena, const char *, n_files + 1);
    for (size_t i = 0; i < n_files; i++) {
        if (!its_cuda_use_embedded(job->arena, &job->search, files[i].name)) continue;
        texts[count] = files[i].text;
        names[count++] = files[i].name;
    }
    int code = job->nvrtc.nvrtcCreateProgram(&job->program, make_source(job),
                                             its_cuda_source_path(job->arena, job->input), (int)count, texts, names);
    return code ? nvrtc_failed(job, code, "take the source") : ITS_OK;
}

/* The log, with marks for the files that its lines start with. */
static its_status read_log(compile_job *job) {
    size_t size = 0;
    int code = job->nvrtc.nvrtcGetProgramLogSize(job->program, &size);
    if (code) return nvrtc_failed(job, code, "tell the size of its log");
    job->result->log = its_arena_zalloc(job->arena, size + 1);
    code = job->nvrtc.nvrtcGetProgramLog(job->program, job->result->log);
    return code ? nvrtc_failed(job, code, "hand over its log") : ITS_OK;
}

static its_status read_ptx(compile_job *job, const char **ptx, size_t *size) {
    int code = job->nvrtc.nvrtcGetPTXSize(job->program, size);
    if (code) return nvrtc_failed(job, code, "tell the size of its PTX");
    char *text = its_arena_zalloc(job->arena, *size + 1);
    code = job->nvrtc.nvrtcGetPTX(job->program, text);
    *ptx = text;
    *size = strlen(text); /* what NVRTC tells includes the NUL */
    return code ? nvrtc_failed(job, code, "hand over its PTX") : ITS_OK;
}

/* The only architecture that NVRTC is told is ours: its message about it says less than there is to say. */
static its_status wrong_arch(compile_job *job) {
    int major = 0, minor = 0;
    job->nvrtc.nvrtcVersion(&major, &minor);
    return its_fail(job->ctx, ITS_ERR_INPUT,
                    "name one that it has, as in \"sm_80\" or \"sm_90a\", or use another NVRTC",
                    "NVRTC %d.%d has no architecture '%s'", major, minor, job->input->arch);
}

static its_status compile_failed(compile_job *job, int code) {
    if (strstr(job->result->log, "nvrtc: error: invalid value for --gpu-architecture")) return wrong_arch(job);
    if (strstr(job->result->log, "libnvrtc-builtins"))
        return its_fail(job->ctx, ITS_ERR_ABSENT, job->found.hint, "NVRTC in '%s' lacks a part of itself: %s",
                        job->found.path, job->result->log);
    const char *name = its_cuda_source_name(job->arena, job->input);
    if (its_cuda_log_errors(job->ctx, job->arena, job->input, &job->search, name, job->result->log))
        return ITS_ERR_INPUT;
    return *job->result->log ? ITS_ERR_INPUT : nvrtc_failed(job, code, "compile");
}

static its_status run_compiler(compile_job *job) {
    its_status status = make_arguments(job);
    if (status == ITS_OK) status = create_program(job);
    if (status != ITS_OK) return status;
    int code = job->nvrtc.nvrtcCompileProgram(job->program, (int)job->arguments.count, job->arguments.items);
    status = read_log(job);
    if (status == ITS_OK && code) status = compile_failed(job, code);
    return status;
}

static its_status compile_body(void *user) {
    compile_job *job = user;
    const char *ptx;
    its_status status = its_cuda_options_parse(job->ctx, job->arena, job->input, &job->options);
    if (status != ITS_OK) return status;
    its_library_find(job->arena, ITS_LIBRARY_NVRTC, &job->found);
    its_cuda_search_init(job->arena, job->input, &job->options, &job->found, &job->search);
    status = its_library_open(job->ctx, &job->found, &job->library, &job->nvrtc);
    if (status == ITS_OK) status = run_compiler(job);
    if (status == ITS_OK) status = read_ptx(job, &ptx, &job->result->ptx_size);
    if (status != ITS_OK) return status;
    job->result->instance_names = ITS_NEW_ARRAY(job->arena, char *, job->input->n_instances);
    status = its_cuda_finish(job->ctx, job->arena, job->input, job->reads, &ptx, &job->result->ptx_size,
                             job->result->instance_names);
    job->result->ptx = (char *)ptx;
    job->result->log = (char *)its_cuda_mark_log(job->arena, job->input, job->reads, job->result->log);
    return status;
}

static its_status cuda_compile(its_context *ctx, const its_cc_host *host, const its_cc_input *input, const char *source,
                               size_t size, const its_cc_reads *reads, its_dialect_result *result) {
    (void)host;
    compile_job job = {.ctx = ctx,
                       .arena = reads->arena,
                       .input = input,
                       .source = source,
                       .size = size,
                       .reads = reads,
                       .result = result};
    its_status status = its_protect(ctx, compile_body, &job);
    if (job.program) job.nvrtc.nvrtcDestroyProgram(&job.program);
    its_library_close(&job.library);
    return status;
}

const its_dialect its_dialect_cuda = {ITS_DIALECT_ABI, "cuda", cuda_version, cuda_scan, cuda_compile};
