/*
 * What is on this machine: every library and tool with where it was found and why there, versions and whether they
 * agree, GPUs, and what processes need to share memory. Each thing that would fail is one plain sentence.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "asm/asm.h"
#include "base/path.h"
#include "rt/rt.h"

enum { COMPUTE_MAJOR = 75, COMPUTE_MINOR = 76, MULTIPROCESSORS = 16, MOST_GPUS = 64, NEEDED_FILES = 1024 };

typedef struct doctor {
    its_context *ctx; /* of its own: what is missing is a finding, no error */
    its_arena arena;
    its_buffer out, problems;
    uint32_t n_problems;
    its_cuda cuda;
    its_library cuda_library;
    its_nvshmem nvshmem;
    its_library nvshmem_library;
    uint32_t driver, nvrtc, nvjitlink, ptxas; /* CUDA versions, 1000 * major + 10 * minor; 0: none */
    uint32_t nvshmem_host, nvshmem_headers;   /* 10000 * major + 100 * minor + patch */
    int n_gpus;
    uint32_t arch; /* of GPU 0 */
    char *text;
} doctor;

static void problem(doctor *d, const char *format, ...) ITS_PRINTF(2, 3);
static void problem(doctor *d, const char *format, ...) {
    va_list args;
    va_start(args, format);
    its_buffer_printf(&d->problems, "  %u. %s\n", ++d->n_problems, its_arena_vprintf(&d->arena, format, args));
    va_end(args);
}

static void found(doctor *d, const char *what, const char *version, const char *path, const char *origin) {
    its_buffer_printf(&d->out, "%-22s %-8s %s%s%s%s\n", what, version, path, origin ? " (" : "", origin ? origin : "",
                      origin ? ")" : "");
}

static const char *cuda_version(doctor *d, uint32_t version) {
    return version ? its_arena_printf(&d->arena, "%u.%u", version / 1000, version / 10 % 100) : "?";
}

static const char *nvshmem_version(doctor *d, uint32_t version) {
    return version ? its_arena_printf(&d->arena, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100) : "?";
}

/* What the last failure said, as one sentence; the diagnostics are cleared. */
static const char *what_failed(doctor *d) {
    const its_diag *diag = its_diag_get(d->ctx, 0);
    const char *text = diag ? its_arena_printf(&d->arena, "%s%s%s", diag->message, diag->hint ? ": " : "",
                                               diag->hint ? diag->hint : "")
                            : "it does not work";
    its_diag_clear(d->ctx);
    return text;
}

/* -- libraries and tools ------------------------------------------------------------------------------------------- */

/* The search's result; loads the library into `functions`. False, with a sentence, if that fails. */
static bool open_library(doctor *d, its_library_id id, its_library_search *search, its_library *library,
                         void *functions, const char *without) {
    its_library_find(&d->arena, id, search);
    if (its_library_open(d->ctx, search, library, functions) == ITS_OK) return true;
    its_buffer_printf(&d->out, "%-22s %-8s %s\n", search->what, "-", search->path ? search->path : "not found");
    problem(d, "%s; %s", what_failed(d), without);
    return false;
}

static void look_at_driver(doctor *d) {
    its_library_search search;
    its_library_find(&d->arena, ITS_LIBRARY_CUDA, &search);
    if (its_gpu_load_driver(d->ctx, &d->cuda, &d->cuda_library) != ITS_OK) {
        its_buffer_printf(&d->out, "%-22s %-8s %s\n", search.what, "-", search.path ? search.path : "not found");
        problem(d, "%s; only the simulator runs here", what_failed(d));
        d->cuda_library.handle = NULL;
        return;
    }
    int version = 0;
    d->cuda.cuDriverGetVersion(&version);
    d->driver = (uint32_t)version;
    d->cuda.cuDeviceGetCount(&d->n_gpus);
    found(d, search.what, cuda_version(d, d->driver), search.path, search.origin);
}

static void look_at_nvrtc(doctor *d) {
    its_library_search search;
    its_library library;
    its_nvrtc nvrtc;
    if (!open_library(d, ITS_LIBRARY_NVRTC, &search, &library, &nvrtc, "device files can't be compiled")) return;
    int major = 0, minor = 0;
    nvrtc.nvrtcVersion(&major, &minor);
    d->nvrtc = (uint32_t)(1000 * major + 10 * minor);
    found(d, search.what, cuda_version(d, d->nvrtc), search.path, search.origin);
    its_library_close(&library);
}

static void look_at_nvjitlink(doctor *d) {
    its_library_search search;
    its_library library;
    its_nvjitlink api;
    if (!open_library(d, ITS_LIBRARY_NVJITLINK, &search, &library, &api,
                      "kernels that need NVSHMEM's device library can't be linked"))
        return;
    unsigned major = 0, minor = 0;
    api.nvJitLinkVersion(&major, &minor);
    d->nvjitlink = 1000 * major + 10 * minor;
    found(d, search.what, cuda_version(d, d->nvjitlink), search.path, search.origin);
    its_library_close(&library);
}

static void look_at_ptxas(doctor *d) {
    its_library_search search;
    uint32_t major, minor;
    if (its_asm_find_ptxas(d->ctx, &d->arena, NULL, &search) != ITS_OK ||
        its_asm_ptxas_version(d->ctx, search.path, &major, &minor) != ITS_OK) {
        its_buffer_printf(&d->out, "%-22s %-8s %s\n", "ptxas", "-", search.path ? search.path : "not found");
        problem(d, "%s; bare PTX can't be assembled", what_failed(d));
        return;
    }
    d->ptxas = 1000 * major + 10 * minor;
    found(d, "ptxas", cuda_version(d, d->ptxas), search.path, search.origin);
}

static void look_at_nvshmem(doctor *d) {
    its_library_search search;
    its_asm_nvshmem_files files;
    if (!open_library(d, ITS_LIBRARY_NVSHMEM, &search, &d->nvshmem_library, &d->nvshmem,
                      "there is no symmetric memory on GPUs"))
        return;
    int major = 0, minor = 0, patch = 0;
    d->nvshmem.nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    d->nvshmem_host = (uint32_t)(10000 * major + 100 * minor + patch);
    found(d, search.what, nvshmem_version(d, d->nvshmem_host), search.path, search.origin);
    its_library_close(&d->nvshmem_library);
    if (its_asm_find_nvshmem(d->ctx, &d->arena, &files) != ITS_OK) {
        problem(d, "%s; kernels can't call NVSHMEM", what_failed(d));
        return;
    }
    d->nvshmem_headers = 10000 * files.major + 100 * files.minor + files.patch;
    found(d, "NVSHMEM's headers", nvshmem_version(d, d->nvshmem_headers), files.include, NULL);
    found(d, "NVSHMEM's device code", "", files.library, NULL);
    if (d->arch && d->nvjitlink && its_asm_try_nvshmem(d->ctx, its_arena_printf(&d->arena, "sm_%u", d->arch)) != ITS_OK)
        problem(d, "%s", what_failed(d));
}

/* Another NVSHMEM on the loader's path may be what another package loads first. */
static void look_for_second_nvshmem(doctor *d) {
    its_library_search search;
    its_library_find(&d->arena, ITS_LIBRARY_NVSHMEM, &search);
    const char *list = getenv("LD_LIBRARY_PATH");
    if (!search.path || !list) return;
    char *mine = realpath(search.path, NULL);
    for (const char *at = list; mine && *at;) {
        size_t size = strcspn(at, ":");
        char *dir = its_arena_text(&d->arena, at, size);
        char *other = realpath(its_path_join(&d->arena, dir, "libnvshmem_host.so.3"), NULL);
        if (other && strcmp(other, mine) != 0)
            problem(d,
                    "there are two NVSHMEM host libraries, '%s' and, on LD_LIBRARY_PATH, '%s'; a program that loads "
                    "both has two worlds",
                    mine, other);
        free(other);
        at += size + (at[size] == ':');
    }
    free(mine);
}

/* -- do they agree ------------------------------------------------------------------------------------------------- */

static void check_versions(doctor *d) {
    if (d->driver && d->nvrtc / 1000 > d->driver / 1000)
        problem(d, "NVRTC %s is of a newer CUDA than the driver, which knows %s: install a newer driver",
                cuda_version(d, d->nvrtc), cuda_version(d, d->driver));
    if (d->nvjitlink && d->nvrtc > d->nvjitlink)
        problem(d,
                "NVRTC %s is newer than nvJitLink %s, which may refuse its PTX: install the nvJitLink of the same CUDA",
                cuda_version(d, d->nvrtc), cuda_version(d, d->nvjitlink));
    if (d->nvshmem_host && d->nvshmem_headers && d->nvshmem_host != d->nvshmem_headers)
        problem(d, "NVSHMEM's host library is %s and its headers are %s: they must be of one version",
                nvshmem_version(d, d->nvshmem_host), nvshmem_version(d, d->nvshmem_headers));
    uint32_t needed = d->arch ? its_asm_cuda_of_arch(d->arch) : 0;
    if (d->ptxas && needed * 100 > d->ptxas)
        problem(d, "the GPU is sm_%u, which ptxas knows from %u.%u on; this one is %s", d->arch, needed / 10,
                needed % 10, cuda_version(d, d->ptxas));
}

/* -- GPUs ---------------------------------------------------------------------------------------------------------- */

static void look_at_gpu(doctor *d, int i) {
    char name[64] = "";
    size_t bytes = 0;
    int major = 0, minor = 0, processors = 0, device = 0;
    d->cuda.cuDeviceGet(&device, i);
    d->cuda.cuDeviceGetName(name, sizeof name, device);
    d->cuda.cuDeviceTotalMem_v2(&bytes, device);
    d->cuda.cuDeviceGetAttribute(&major, COMPUTE_MAJOR, device);
    d->cuda.cuDeviceGetAttribute(&minor, COMPUTE_MINOR, device);
    d->cuda.cuDeviceGetAttribute(&processors, MULTIPROCESSORS, device);
    if (i == 0) d->arch = (uint32_t)(10 * major + minor);
    its_buffer_printf(&d->out, "GPU %d                  sm_%-5d %s, %zu MiB, %d multiprocessors\n", i,
                      10 * major + minor, name, bytes >> 20, processors);
}

static void look_at_peers(doctor *d) {
    for (int i = 0; i < d->n_gpus; i++)
        for (int j = 0; j < d->n_gpus; j++) {
            int a = 0, b = 0, can = 0;
            if (i == j || d->cuda.cuDeviceGet(&a, i) || d->cuda.cuDeviceGet(&b, j)) continue;
            if (d->cuda.cuDeviceCanAccessPeer(&can, a, b) == 0 && !can)
                problem(d, "GPU %d can't reach the memory of GPU %d: transport=\"p2p\" will not work between them", i,
                        j);
        }
    if (d->n_gpus > 1) its_buffer_printf(&d->out, "peer access            %d GPUs looked at, both ways\n", d->n_gpus);
}

/* -- what processes share ------------------------------------------------------------------------------------------ */

static bool passes_descriptors(void) {
    int ends[2], got = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return false;
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    memcpy(CMSG_DATA(&control.head), &ends[0], sizeof(int));
    if (sendmsg(ends[0], &message, 0) == 1 && recvmsg(ends[1], &message, 0) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof got);
    close(ends[0]);
    close(ends[1]);
    if (got >= 0) close(got);
    return got >= 0;
}

static void look_at_sharing(doctor *d) {
    struct statvfs shm;
    unsigned long long room = statvfs("/dev/shm", &shm) == 0 ? (unsigned long long)shm.f_bavail * shm.f_frsize : 0;
    its_buffer_printf(&d->out, "%-22s %-8s /dev/shm has %llu MiB free\n", "shared memory", "", room >> 20);
    if (room < 64ull << 20)
        problem(d,
                "/dev/shm has less than 64 MiB free, which NVSHMEM's processes share: give the container --shm-size");
    int fd = memfd_create("intarsia-doctor", MFD_CLOEXEC);
    if (fd < 0) problem(d, "memory can't be made a file (%s): the simulator can't run", strerror(errno));
    if (fd >= 0) close(fd);
    bool passes = passes_descriptors();
    its_buffer_printf(&d->out, "%-22s %-8s %s\n", "descriptor passing", "", passes ? "works" : "does not work");
    if (!passes) problem(d, "a process can't pass a file descriptor to another, by which NVSHMEM shares GPU memory");
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < NEEDED_FILES)
        problem(d, "a process may open %llu files only; raise it: ulimit -n %d", (unsigned long long)files.rlim_cur,
                NEEDED_FILES);
}

/* -- all of it ----------------------------------------------------------------------------------------------------- */

static its_status examine(void *user) {
    doctor *d = user;
    its_buffer_printf(&d->out, "%-22s %-8s\n", "Intarsia", its_version());
    look_at_driver(d);
    for (int i = 0; i < d->n_gpus && i < MOST_GPUS; i++) look_at_gpu(d, i);
    if (d->cuda_library.handle) look_at_peers(d);
    look_at_nvrtc(d);
    look_at_ptxas(d);
    look_at_nvjitlink(d);
    look_at_nvshmem(d);
    look_for_second_nvshmem(d);
    check_versions(d);
    look_at_sharing(d);
    if (d->n_problems) {
        its_buffer_printf(&d->out, "\nwhat would fail:\n");
        its_buffer_put(&d->out, d->problems.data, d->problems.size);
    } else {
        its_buffer_printf(&d->out, "\nnothing found that would fail\n");
    }
    d->text = its_buffer_take(&d->out, NULL);
    return ITS_OK;
}

char *its_doctor_text(its_context *ctx, uint32_t *problems) {
    doctor d = {.ctx = ctx};
    its_arena_init(&d.arena, ctx);
    its_buffer_init(&d.out, ctx);
    its_buffer_init(&d.problems, ctx);
    its_protect(ctx, examine, &d);
    if (d.cuda_library.handle) its_library_close(&d.cuda_library);
    its_buffer_free(&d.out);
    its_buffer_free(&d.problems);
    its_arena_free(&d.arena);
    if (problems) *problems = d.n_problems;
    return d.text;
}
