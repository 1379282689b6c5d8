/*
 * From a source to a unit:
 *
 *     choose the dialect, read the source, find out what it depends on  ->  key
 *     cache: a hit is the unit
 *     lock the key, look again, compile, list the functions, store      ->  unit
 *
 * A key is made anew for every call, from what the files hold now; nothing is remembered about them.
 */
#include <string.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/path.h"
#include "cc/cache.h"
#include "cc/dialects.h"
#include "cc/edit.h"
#include "cc/entry.h"
#include "cc/functions.h"
#include "cc/reads.h"

enum { LARGEST_SOURCE = 256 << 20 };

static const char default_name[] = "source.cu";

typedef struct unit_block {
    its_unit unit;
    its_arena arena;
} unit_block;

typedef struct cc_job {
    its_cc_host host; /* first: its_cc_host.alloc finds the job through it */
    its_context *ctx;
    const its_cc_input *input;
    const char *path; /* as it is shown */
    its_arena scratch;
    its_dialect_ref ref;
    const char *source;
    size_t size;
    its_cc_reads reads;
    its_digest key;
    its_cache cache;
    int lock;
    its_dialect_result result;
    its_entry entry;
    bool cached;
    unit_block *block; /* under construction; NULL when only the id is wanted */
} cc_job;

/* -- what dialects may call ---------------------------------------------------------------------------------------- */

typedef struct alloc_job {
    its_arena *arena;
    size_t size;
    void *block;
} alloc_job;

static its_status alloc_body(void *user) {
    alloc_job *job = user;
    job->block = its_arena_zalloc(job->arena, job->size);
    return ITS_OK;
}

static void *host_alloc(const its_cc_host *host, size_t size) {
    cc_job *job = (cc_job *)host;
    alloc_job alloc = {&job->scratch, size, NULL};
    its_protect(job->ctx, alloc_body, &alloc);
    return alloc.block;
}

typedef struct error_job {
    its_context *ctx;
    its_diag_place place;
    const char *message, *hint;
} error_job;

static its_status error_body(void *user) {
    const error_job *job = user;
    const its_diag_place *place = &job->place;
    its_diag_begin(job->ctx, ITS_ERROR, ITS_NOWHERE, "%s", job->message);
    if (place->file) its_diag_also_line(job->ctx, place->file, place->line, place->column, place->text, NULL);
    if (job->hint) its_diag_hint(job->ctx, "%s", job->hint);
    return ITS_OK;
}

static void host_error(its_context *ctx, const char *file, uint32_t line, uint32_t column, const char *text,
                       const char *message, const char *hint) {
    error_job job = {ctx, {.file = file, .line = line, .column = column, .text = text}, message, hint};
    its_protect(ctx, error_body, &job);
}

static const char *host_read_path(const its_cc_reads *reads, size_t index) {
    return index < reads->files.count ? reads->files.items[index]->path : NULL;
}

static const its_cc_host host_functions = {host_alloc, host_error, its_host_reads_file, its_host_reads_text,
                                           host_read_path};

/* -- the key ------------------------------------------------------------------------------------------------------- */

static its_status check_input(cc_job *job) {
    const its_cc_input *input = job->input;
    if (!input->arch || !*input->arch) return its_fail(job->ctx, ITS_ERR_USAGE, NULL, "no architecture is given");
    if (!input->source && !input->path) return its_fail(job->ctx, ITS_ERR_USAGE, NULL, "no source is given");
    for (uint32_t i = 0; i < input->n_options; i++)
        if (!input->options[i]) return its_fail(job->ctx, ITS_ERR_USAGE, NULL, "option %u is NULL", i);
    for (uint32_t i = 0; i < input->n_instances; i++)
        if (!input->instances[i] || !*input->instances[i] || strpbrk(input->instances[i], "\n\r\\"))
            return its_fail(job->ctx, ITS_ERR_INPUT, "write it as in C++: scale<float>", "instance %u is no name", i);
    return ITS_OK;
}

/* Requires: nothing. Ensures: `source` and `size` are the text as it is now. */
static its_status load_source(cc_job *job) {
    const its_cc_input *input = job->input;
    char *text;
    if (input->source) {
        job->source = input->source;
        job->size = strlen(input->source);
        return ITS_OK;
    }
    int error = its_file_read(&job->scratch, input->path, LARGEST_SOURCE, &text, &job->size);
    job->source = text;
    return error ? its_fail(job->ctx, ITS_ERR_IO, NULL, "'%s' can't be read: %s", input->path, strerror(error))
                 : ITS_OK;
}

/* What the key holds whatever the dialect. */
static its_status hash_basics(cc_job *job, its_hasher *hasher) {
    const its_cc_input *input = job->input;
    const its_dialect *dialect = job->ref.dialect;
    char version[256] = "";
    its_status status = dialect->version(job->ctx, &job->host, version, sizeof version);
    if (status != ITS_OK) return status;
    version[sizeof version - 1] = 0;
    its_hash_text(hasher, "Intarsia " ITS_VERSION_STRING);
    its_hash_text(hasher, dialect->name);
    its_hash_text(hasher, version);
    its_hash_text(hasher, input->arch);
    its_hash_field(hasher, &input->n_instances, sizeof input->n_instances);
    for (uint32_t i = 0; i < input->n_instances; i++) its_hash_text(hasher, input->instances[i]);
    its_hash_content(hasher, job->source, job->size);
    return ITS_OK;
}

static its_status hash_reads(cc_job *job, its_cc_reads *reads) {
    const its_dialect *dialect = job->ref.dialect;
    if (!dialect->scan) {
        for (uint32_t i = 0; i < job->input->n_options; i++) its_reads_text(reads, job->input->options[i]);
        return ITS_OK;
    }
    its_status status = dialect->scan(job->ctx, &job->host, job->input, job->source, job->size, reads);
    if (status == ITS_OK && reads->too_much)
        return its_fail(job->ctx, ITS_ERR_INPUT, NULL, "'%s' includes too much: the limit was passed at '%s'",
                        job->path, reads->too_much);
    return status;
}

/*
 * Requires: dialect and source. Ensures: `reads` is what compiling would read now, `key` a digest of all it depends on.
 */
static its_status make_key(cc_job *job, its_cc_reads *reads, its_digest *key) {
    its_reads_init(reads, &job->scratch);
    its_status status = hash_basics(job, &reads->hasher);
    if (status == ITS_OK) status = hash_reads(job, reads);
    if (status == ITS_OK) its_hash_digest(&reads->hasher, key);
    return status;
}

/* -- compiling ----------------------------------------------------------------------------------------------------- */

static its_status dialect_failed(cc_job *job, its_status status, size_t errors_before) {
    const char *name = job->ref.dialect->name, *log = job->result.log;
    if (its_diag_errors(job->ctx) > errors_before) return status == ITS_OK ? ITS_ERR_INPUT : status;
    if (status == ITS_OK) status = ITS_ERR_INPUT;
    if (log && *log)
        return its_fail(job->ctx, status, NULL, "the dialect %s can't compile '%s': %s", name, job->path, log);
    return its_fail(job->ctx, status, NULL, "the dialect %s can't compile '%s' and doesn't say why", name, job->path);
}

/* Requires: the source. Ensures: `result` has PTX, a log and the names of all instances. */
static its_status run_dialect(cc_job *job) {
    size_t errors_before = its_diag_errors(job->ctx);
    its_status status =
        job->ref.dialect->compile(job->ctx, &job->host, job->input, job->source, job->size, &job->reads, &job->result);
    if (status != ITS_OK || !job->result.ptx) return dialect_failed(job, status, errors_before);
    if (!job->result.log) job->result.log = "";
    for (uint32_t i = 0; i < job->input->n_instances; i++)
        if (!job->result.instance_names || !job->result.instance_names[i])
            return its_fail(job->ctx, ITS_ERR_INPUT, NULL,
                            "the dialect %s doesn't say what the instance '%s' is called", job->ref.dialect->name,
                            job->input->instances[i]);
    return ITS_OK;
}

/* Where marks stand in .file directives. */
static void find_marks(cc_job *job, const its_module *module) {
    ITS_VEC(its_entry_mark) marks = {0};
    const size_t prefix = sizeof ITS_FILE_MARK - 1;
    for (const its_node *node = module->first; node; node = node->next) {
        const its_file *file = (const its_file *)node;
        size_t at;
        if (node->kind != ITS_NODE_FILE || strncmp(file->path->text, ITS_FILE_MARK, prefix) != 0 ||
            !its_file_path_in_text(file, job->entry.ptx, job->entry.ptx_size, &at))
            continue;
        its_entry_mark mark = {at, file->path->size, 0};
        for (const char *p = file->path->text + prefix; *p >= '0' && *p <= '9'; p++)
            mark.number = mark.number * 10 + (uint64_t)(*p - '0');
        ITS_PUSH(&job->scratch, &marks, mark);
    }
    job->entry.marks = marks.items;
    job->entry.n_marks = marks.count;
}

typedef struct describe_job {
    cc_job *cc;
    its_module *module;
    bool complete;
} describe_job;

static its_status describe_body(void *user) {
    describe_job *describe = user;
    cc_job *job = describe->cc;
    const char *name = its_arena_printf(&job->scratch, "%s (as compiled)", job->path);
    its_status status = its_ptx_parse(job->ctx, name, job->result.ptx, job->result.ptx_size, &describe->module);
    if (status != ITS_OK) return status;
    uint32_t count;
    job->entry = (its_entry){.ptx = job->result.ptx, .ptx_size = job->result.ptx_size, .log = job->result.log};
    job->entry.funcs =
        its_functions_list(&job->scratch, describe->module, job->input->instances, job->result.instance_names,
                           job->input->n_instances, &count, &describe->complete);
    job->entry.n_funcs = count;
    find_marks(job, describe->module);
    return ITS_OK;
}

/* Requires: `result`. Ensures: `entry` is complete; `complete` is false if it is too poor to be kept. */
static its_status describe(cc_job *job, bool *complete) {
    describe_job describe = {.cc = job};
    its_status status = its_protect(job->ctx, describe_body, &describe);
    its_module_free(describe.module);
    *complete = describe.complete;
    return status;
}

/* A header may have been edited while it was compiled: then nobody knows which state the result is of. */
static bool key_still_holds(cc_job *job) {
    its_cc_reads reads;
    its_digest key;
    bool same = make_key(job, &reads, &key) == ITS_OK && memcmp(&key, &job->key, sizeof key) == 0;
    its_reads_free(&reads);
    return same;
}

static its_status compile(cc_job *job) {
    bool complete;
    its_status status = run_dialect(job);
    if (status == ITS_OK) status = describe(job, &complete);
    if (status != ITS_OK || job->cache.fd < 0 || !complete || !key_still_holds(job)) return status;
    char *data;
    size_t size;
    its_entry_pack(&job->scratch, &job->key, &job->entry, &data, &size);
    its_cache_store(&job->cache, &job->scratch, job->key.narrow, data, size);
    return ITS_OK;
}

/* -- the cache ----------------------------------------------------------------------------------------------------- */

static bool look_up(cc_job *job) {
    char *data;
    size_t size;
    if (!its_cache_load(&job->cache, &job->scratch, job->key.narrow, &data, &size)) return false;
    job->cached = its_entry_unpack(&job->scratch, &job->key, data, size, &job->entry);
    return job->cached;
}

static its_status look_up_or_compile(cc_job *job) {
    if (job->input->no_cache) return compile(job);
    its_cache_open(job->ctx, &job->scratch, "cc", &job->cache);
    if (look_up(job)) return ITS_OK;
    job->lock = its_cache_lock(&job->cache, job->key.narrow);
    if (look_up(job)) return ITS_OK;
    its_cache_drop(&job->cache, job->key.narrow); /* what is there, if anything, is damaged */
    return compile(job);
}

/* -- the unit ------------------------------------------------------------------------------------------------------ */

static const char *path_of(const cc_job *job, uint64_t number) {
    return number == 0 ? job->path : number <= job->reads.files.count ? job->reads.files.items[number - 1]->path : "?";
}

/* Line tables are read by debuggers, from wherever they are started: there the source has its absolute path. */
static const char *absolute_path_of(cc_job *job, uint64_t number) {
    const char *path = path_of(job, number);
    return number == 0 && !job->input->source ? its_path_absolute(&job->scratch, path) : path;
}

static void fill_ptx(cc_job *job, its_arena *arena, its_unit *unit) {
    its_edits edits = {0};
    for (uint64_t i = 0; i < job->entry.n_marks; i++) {
        const its_entry_mark *mark = &job->entry.marks[i];
        its_edit edit = {mark->offset, mark->size, its_quotable(&job->scratch, absolute_path_of(job, mark->number))};
        ITS_PUSH(&job->scratch, &edits, edit);
    }
    unit->ptx = its_edits_apply(arena, &edits, job->entry.ptx, job->entry.ptx_size, &unit->ptx_size);
}

/* Lines of the log start with marks where they name a file. */
static void fill_log(cc_job *job, its_arena *arena, its_unit *unit) {
    const char *log = job->entry.log ? job->entry.log : "";
    const size_t prefix = sizeof ITS_FILE_MARK - 1;
    its_edits edits = {0};
    for (const char *line = log, *end; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (strncmp(line, ITS_FILE_MARK, prefix) != 0) continue;
        const char *p = line + prefix;
        uint64_t number = 0;
        for (; *p >= '0' && *p <= '9'; p++) number = number * 10 + (uint64_t)(*p - '0');
        its_edit edit = {(size_t)(line - log), (size_t)(p - line), path_of(job, number)};
        if (*p == '(') ITS_PUSH(&job->scratch, &edits, edit);
    }
    size_t size;
    unit->log = its_edits_apply(arena, &edits, log, strlen(log), &size);
}

static void fill_functions(const cc_job *job, its_arena *arena, its_unit *unit) {
    its_unit_func *funcs = ITS_NEW_ARRAY(arena, its_unit_func, job->entry.n_funcs);
    for (uint64_t i = 0; i < job->entry.n_funcs; i++) {
        const its_unit_func *from = &job->entry.funcs[i];
        funcs[i].name = its_arena_text(arena, from->name, strlen(from->name));
        funcs[i].spelling = its_arena_text(arena, from->spelling, strlen(from->spelling));
    }
    unit->funcs = funcs;
    unit->n_funcs = (uint32_t)job->entry.n_funcs;
}

static void fill_depends(const cc_job *job, its_arena *arena, its_unit *unit) {
    const char **depends = ITS_NEW_ARRAY(arena, const char *, job->reads.files.count + 1);
    if (!job->input->source) depends[unit->n_depends++] = unit->path;
    for (size_t i = 0; i < job->reads.files.count; i++) {
        const char *path = job->reads.files.items[i]->path;
        depends[unit->n_depends++] = its_arena_text(arena, path, strlen(path));
    }
    unit->depends = depends;
}

/* Requires: `entry`, `key` and `reads`. Ensures: the unit holds copies of all it needs. */
static void fill_unit(cc_job *job) {
    its_unit *unit = &job->block->unit;
    its_arena *arena = &job->block->arena;
    memcpy(unit->id, job->key.narrow, sizeof unit->id);
    unit->path = its_arena_text(arena, job->path, strlen(job->path));
    unit->arch = its_arena_text(arena, job->input->arch, strlen(job->input->arch));
    unit->cached = job->cached;
    fill_ptx(job, arena, unit);
    fill_log(job, arena, unit);
    fill_functions(job, arena, unit);
    fill_depends(job, arena, unit);
}

/* -- the calls ----------------------------------------------------------------------------------------------------- */

static its_status id_body(void *user) {
    cc_job *job = user;
    its_status status = check_input(job);
    if (status == ITS_OK) status = its_dialect_get(job->ctx, job->input->dialect, &job->ref);
    if (status == ITS_OK) status = load_source(job);
    return status == ITS_OK ? make_key(job, &job->reads, &job->key) : status;
}

static its_status cc_body(void *user) {
    cc_job *job = user;
    its_status status = id_body(job);
    if (status == ITS_OK) status = look_up_or_compile(job);
    if (status != ITS_OK) return status;
    job->block = its_block_alloc(job->ctx, sizeof *job->block);
    if (!job->block) its_guard_raise(job->ctx);
    job->block->unit = (its_unit){0};
    its_arena_init(&job->block->arena, job->ctx);
    fill_unit(job);
    return ITS_OK;
}

static void job_begin(cc_job *job, its_context *ctx, const its_cc_input *input) {
    *job = (cc_job){.host = host_functions, .ctx = ctx, .input = input, .lock = -1, .cache.fd = -1};
    job->path = input->path && *input->path ? input->path : default_name;
    its_arena_init(&job->scratch, ctx);
}

static void job_end(cc_job *job) {
    its_cache_unlock(&job->cache, job->key.narrow, job->lock);
    its_cache_close(&job->cache);
    its_library_close(&job->ref.library);
    its_reads_free(&job->reads);
    its_arena_free(&job->scratch);
}

its_status its_cc(its_context *ctx, const its_cc_input *input, its_unit **unit) {
    cc_job job;
    job_begin(&job, ctx, input);
    its_status status = its_protect(ctx, cc_body, &job);
    job_end(&job);
    if (status != ITS_OK && job.block) its_unit_free(&job.block->unit);
    *unit = status == ITS_OK ? &job.block->unit : NULL;
    return status;
}

its_status its_cc_id(its_context *ctx, const its_cc_input *input, char id[17]) {
    cc_job job;
    job_begin(&job, ctx, input);
    its_status status = its_protect(ctx, id_body, &job);
    job_end(&job);
    memcpy(id, status == ITS_OK ? job.key.narrow : "", status == ITS_OK ? sizeof job.key.narrow : 1);
    return status;
}

void its_unit_free(its_unit *unit) {
    if (!unit) return;
    unit_block *block = (unit_block *)unit; /* the unit is its first member */
    its_arena arena = block->arena;
    its_arena_free(&block->arena);
    its_free(arena.ctx, block);
}
