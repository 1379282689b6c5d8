/* Loading libraries at run time. The search is a list of directories, each with the reason why it is on it. */
#include "base/dynload.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"

typedef struct library_facts {
    const char *what, *file, *versions, *knob, *wheels, *hint;
} library_facts;

static const library_facts libraries[] = {
#define ITS_LIBRARY(id, what, file, versions, knob, wheels, hint) {what, file, versions, knob, wheels, hint},
#include "base/libraries.def"
#undef ITS_LIBRARY
};
_Static_assert(sizeof libraries / sizeof *libraries == ITS_LIBRARY_COUNT, "one row for each library");

/* -- small texts --------------------------------------------------------------------------------------------------- */

/* The next part of a list; NULL at its end. Empty parts are passed over. */
static char *next_part(its_arena *arena, const char **list, char separator) {
    while (**list == separator) ++*list;
    if (!**list) return NULL;
    const char *start = *list, *end = strchr(start, separator);
    *list = end ? end : start + strlen(start);
    return its_arena_text(arena, start, (size_t)(*list - start));
}

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

typedef ITS_VEC(char *) texts;

/* Names in `dir` that start with `prefix`, those of the highest version first. */
static texts names_in(its_arena *arena, const char *dir, const char *prefix) {
    texts names = {0};
    DIR *listing = opendir(dir);
    if (!listing) return names;
    char found[16][64]; /* copied while nothing is allocated: the arena may jump away and leave the directory open */
    size_t count = 0;
    for (struct dirent *entry; count < 16 && (entry = readdir(listing));)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && strlen(entry->d_name) < sizeof *found)
            strcpy(found[count++], entry->d_name);
    closedir(listing);
    for (size_t i = 0; i < count; i++) {
        size_t at = names.count;
        ITS_PUSH(arena, &names, its_arena_text(arena, found[i], strlen(found[i])));
        for (; at > 0 && strverscmp(names.items[at - 1], found[i]) < 0; at--) {
            char *lower = names.items[at - 1];
            names.items[at - 1] = names.items[at];
            names.items[at] = lower;
        }
    }
    return names;
}

/* -- where CUDA may be --------------------------------------------------------------------------------------------- */

typedef struct root {
    const char *path, *origin;
} root;
typedef ITS_VEC(root) roots;

static void add_root(its_arena *arena, roots *list, const char *path, const char *origin) {
    if (!path || !its_file_is_dir(path)) return;
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].path, path) == 0) return;
    root item = {its_arena_text(arena, path, strlen(path)), origin};
    ITS_PUSH(arena, list, item);
}

/* False if INTARSIA_CUDA says that CUDA is to be taken from somewhere else than `where`. */
static bool is_wanted(const char *where) {
    const char *choice = environment("INTARSIA_CUDA");
    return !choice || strcmp(choice, where) == 0;
}

static roots toolkits(its_arena *arena) {
    roots list = {0};
    if (!is_wanted("toolkit")) return list;
    add_root(arena, &list, environment("CUDA_HOME"), "CUDA_HOME");
    add_root(arena, &list, environment("CUDA_PATH"), "CUDA_PATH");
    add_root(arena, &list, "/usr/local/cuda", "CUDA toolkit");
    texts names = names_in(arena, "/usr/local", "cuda-");
    for (size_t i = 0; i < names.count; i++)
        add_root(arena, &list, its_path_join(arena, "/usr/local", names.items[i]), "CUDA toolkit");
    return list;
}

/* The site-packages of a virtual environment. */
static void add_environment(its_arena *arena, roots *list, const char *dir, const char *origin) {
    char *lib = its_path_join(arena, dir, "lib");
    texts names = names_in(arena, lib, "python3");
    for (size_t i = 0; i < names.count; i++)
        add_root(arena, list, its_arena_printf(arena, "%s/%s/site-packages", lib, names.items[i]), origin);
}

enum { LEVELS_UP = 6 };

/* Whatever Python environment a file is in or below: ours is in one when it came as a wheel, or next to a .venv. */
static void add_around(its_arena *arena, roots *list, const char *file) {
    char resolved[PATH_MAX];
    if (!file || !realpath(file, resolved)) return;
    char *dir = its_path_dir(arena, resolved);
    for (int level = 0; level < LEVELS_UP && strcmp(dir, "/") != 0; level++, dir = its_path_dir(arena, dir)) {
        char *inner = its_path_join(arena, dir, ".venv");
        if (strcmp(its_path_base(dir), "site-packages") == 0) add_root(arena, list, dir, "wheels around Intarsia");
        if (its_file_is_regular(its_path_join(arena, dir, "pyvenv.cfg")))
            add_environment(arena, list, dir, "environment around Intarsia");
        if (its_file_is_regular(its_path_join(arena, inner, "pyvenv.cfg")))
            add_environment(arena, list, inner, "environment next to Intarsia");
    }
}

static roots site_packages(its_arena *arena) {
    roots list = {0};
    if (!is_wanted("wheels")) return list;
    const char *dirs = environment("INTARSIA_SITE_PACKAGES"), *venv = environment("VIRTUAL_ENV");
    for (char *dir; dirs && (dir = next_part(arena, &dirs, ':'));)
        add_root(arena, &list, dir, "INTARSIA_SITE_PACKAGES");
    if (venv) add_environment(arena, &list, venv, "VIRTUAL_ENV");
    Dl_info self;
    if (dladdr((const void *)libraries, &self)) add_around(arena, &list, self.dli_fname);
    add_around(arena, &list, "/proc/self/exe");
    return list;
}

/* -- the search ---------------------------------------------------------------------------------------------------- */

typedef struct finder {
    its_arena *arena;
    const library_facts *facts;
    its_library_search *search;
    ITS_VEC(its_looked) looked;
} finder;

static bool try_file(finder *f, const char *path, const char *origin) {
    its_looked item = {path, origin, its_file_is_regular(path)};
    ITS_PUSH(f->arena, &f->looked, item);
    if (!item.found) return false;
    f->search->path = path;
    f->search->origin = origin;
    return true;
}

/* The library under each of its names; only a directory that is there is written down. */
static bool try_dir(finder *f, const char *dir, const char *origin) {
    if (!its_file_is_dir(dir)) return false;
    const char *plain = its_path_join(f->arena, dir, f->facts->file), *versions = f->facts->versions;
    if (try_file(f, plain, origin)) return true;
    for (char *version; (version = next_part(f->arena, &versions, ','));)
        if (try_file(f, its_arena_printf(f->arena, "%s.%s", plain, version), origin)) return true;
    return false;
}

/* True if the knob is set, and with that the search is over. */
static bool try_knob(finder *f) {
    const char *knob = f->facts->knob, *value = environment(knob);
    if (!value) return false;
    if (strcmp(value, "none") == 0) {
        f->search->problem = its_arena_printf(f->arena, "%s is set to 'none'", knob);
        return true;
    }
    const char *path = its_path_absolute(f->arena, value);
    bool found = its_file_is_dir(path) ? try_dir(f, path, knob) : try_file(f, path, knob);
    if (!found)
        f->search->problem = its_arena_printf(f->arena,
                                              its_file_is_dir(path) ? "%s names the directory '%s', which has no %s"
                                                                    : "%s names '%s', which is no file",
                                              knob, value, f->facts->file);
    return true;
}

static bool try_toolkits(finder *f) {
    static const char *const subdirs[] = {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"};
    roots list = toolkits(f->arena);
    for (size_t i = 0; i < list.count; i++)
        for (size_t j = 0; j < sizeof subdirs / sizeof *subdirs; j++)
            if (try_dir(f, its_path_join(f->arena, list.items[i].path, subdirs[j]), list.items[i].origin)) return true;
    return false;
}

static bool try_wheels(finder *f) {
    roots list = site_packages(f->arena);
    for (size_t i = 0; i < list.count; i++) {
        const char *subdirs = f->facts->wheels;
        for (char *subdir; (subdir = next_part(f->arena, &subdirs, ','));)
            if (try_dir(f, its_path_join(f->arena, list.items[i].path, subdir), list.items[i].origin)) return true;
    }
    return false;
}

/* The loader's own list can't be read without loading: the path is what it then says. */
static bool try_loader(finder *f) {
    const char *versions = f->facts->versions;
    for (char *version; (version = next_part(f->arena, &versions, ','));) {
        char *name = its_arena_printf(f->arena, "%s.%s", f->facts->file, version), path[PATH_MAX] = "";
        void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
        struct link_map *map;
        if (handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && strlen(map->l_name) < sizeof path)
            strcpy(path, map->l_name);
        if (handle) dlclose(handle);
        if (try_file(f, *path ? its_arena_text(f->arena, path, strlen(path)) : name, "system")) return true;
    }
    return false;
}

static bool try_system(finder *f) {
    static const char *const dirs[] = {
        "/usr/local/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/lib64",
    };
    const char *list = environment("LD_LIBRARY_PATH");
    for (char *dir; list && (dir = next_part(f->arena, &list, ':'));)
        if (try_dir(f, dir, "LD_LIBRARY_PATH")) return true;
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
        if (try_dir(f, dirs[i], "system")) return true;
    return try_loader(f);
}

void its_library_find(its_arena *arena, its_library_id id, its_library_search *search) {
    finder f = {.arena = arena, .facts = &libraries[id], .search = search};
    *search = (its_library_search){.id = id, .what = f.facts->what, .hint = f.facts->hint};
    bool cuda = *f.facts->wheels;
    (void)(try_knob(&f) || (cuda && (try_toolkits(&f) || try_wheels(&f))) || try_system(&f));
    search->looked = f.looked.items;
    search->n_looked = f.looked.count;
}

its_status its_library_absent(its_context *ctx, const its_library_search *search) {
    const char *file = libraries[search->id].file;
    if (search->problem)
        return its_fail(ctx, ITS_ERR_ABSENT, search->hint, "%s (%s) can't be used: %s", search->what, file,
                        search->problem);
    return its_fail(ctx, ITS_ERR_ABSENT, search->hint, "%s (%s) is not on this machine", search->what, file);
}

/* -- programs and other files -------------------------------------------------------------------------------------- */

static bool try_tool_knobs(finder *f, const its_tool *tool) {
    for (const char *const *knob = tool->knobs; *knob; knob++) {
        const char *value = environment(*knob);
        if (!value) continue;
        const char *path = its_path_absolute(f->arena, value);
        if (its_file_is_dir(path)) path = its_path_join(f->arena, path, tool->file);
        if (strcmp(value, "none") == 0)
            f->search->problem = its_arena_printf(f->arena, "%s is set to 'none'", *knob);
        else if (!try_file(f, path, *knob))
            f->search->problem = its_arena_printf(f->arena, "%s names '%s', which is no file", *knob, value);
        return true;
    }
    return false;
}

static bool try_below(finder *f, const roots *list, const char *subdirs, const char *file) {
    for (size_t i = 0; i < list->count; i++) {
        const char *rest = subdirs;
        for (char *subdir; (subdir = next_part(f->arena, &rest, ','));) {
            char *dir = its_path_join(f->arena, list->items[i].path, subdir);
            if (try_file(f, its_path_join(f->arena, dir, file), list->items[i].origin)) return true;
        }
    }
    return false;
}

static bool try_path(finder *f, const char *file) {
    const char *list = environment("PATH");
    for (char *dir; list && (dir = next_part(f->arena, &list, ':'));)
        if (try_file(f, its_path_join(f->arena, dir, file), "PATH")) return true;
    return false;
}

void its_tool_find(its_arena *arena, const its_tool *tool, its_library_search *search) {
    finder f = {.arena = arena, .search = search};
    *search = (its_library_search){.what = tool->what, .hint = tool->hint};
    roots wheels = site_packages(arena), kits = toolkits(arena);
    (void)(try_tool_knobs(&f, tool) || try_below(&f, &wheels, tool->wheels, tool->file) ||
           try_below(&f, &kits, tool->toolkit, tool->file) || (tool->in_path && try_path(&f, tool->file)));
    search->looked = f.looked.items;
    search->n_looked = f.looked.count;
}

its_status its_tool_absent(its_context *ctx, const its_tool *tool, const its_library_search *search) {
    if (search->problem)
        return its_fail(ctx, ITS_ERR_ABSENT, tool->hint, "%s can't be used: %s", tool->what, search->problem);
    return its_fail(ctx, ITS_ERR_ABSENT, tool->hint, "%s is not on this machine", tool->what);
}

/* -- headers ------------------------------------------------------------------------------------------------------- */

/* Takes `dir` if CUDA's device headers are in it; CCCL (cuda/std, cub) may be a level further down or in a wheel. */
static bool try_headers(its_arena *arena, its_header_search *search, const char *dir, const char *cccl,
                        const char *origin) {
    if (!its_file_is_regular(its_path_join(arena, dir, "cuda_fp16.h"))) return false;
    const char **dirs = ITS_NEW_ARRAY(arena, const char *, 3);
    const char *inner = its_path_join(arena, dir, "cccl");
    dirs[search->n_dirs++] = dir;
    if (its_file_is_dir(inner)) dirs[search->n_dirs++] = inner;
    if (cccl && its_file_is_dir(cccl)) dirs[search->n_dirs++] = cccl;
    search->dirs = dirs;
    search->origin = origin;
    return true;
}

/* Headers of a toolkit, or of a directory that is laid out like one (nvidia/cu13). */
static bool try_headers_root(its_arena *arena, its_header_search *search, const char *path, const char *origin) {
    static const char *const subdirs[] = {"include", "targets/x86_64-linux/include", "targets/sbsa-linux/include"};
    for (size_t i = 0; i < sizeof subdirs / sizeof *subdirs; i++)
        if (try_headers(arena, search, its_path_join(arena, path, subdirs[i]), NULL, origin)) return true;
    return false;
}

static bool try_headers_wheels(its_arena *arena, its_header_search *search, const char *site, const char *origin) {
    char *cccl = its_path_join(arena, site, "nvidia/cuda_cccl/include");
    return try_headers_root(arena, search, its_path_join(arena, site, "nvidia/cu13"), origin) ||
           try_headers_root(arena, search, its_path_join(arena, site, "nvidia/cu12"), origin) ||
           try_headers(arena, search, its_path_join(arena, site, "nvidia/cuda_runtime/include"), cccl, origin);
}

void its_cuda_headers_find(its_arena *arena, const its_library_search *library, its_header_search *search) {
    *search = (its_header_search){0};
    if (library->path) { /* ROOT/lib64/libnvrtc.so, ROOT/targets/x86_64-linux/lib/..., SITE/nvidia/cuda_nvrtc/lib/... */
        char *up = its_path_dir(arena, its_path_dir(arena, library->path));
        char *site = its_path_dir(arena, its_path_dir(arena, up));
        if (try_headers_root(arena, search, up, library->origin)) return;
        if (try_headers_wheels(arena, search, site, library->origin)) return;
    }
    roots list = toolkits(arena);
    for (size_t i = 0; i < list.count; i++)
        if (try_headers_root(arena, search, list.items[i].path, list.items[i].origin)) return;
    list = site_packages(arena);
    for (size_t i = 0; i < list.count; i++)
        if (try_headers_wheels(arena, search, list.items[i].path, list.items[i].origin)) return;
    try_headers(arena, search, "/usr/include", NULL, "system");
}

/* -- loading ------------------------------------------------------------------------------------------------------- */

/* Where in the structure of functions each symbol goes. */
typedef struct symbol_slot {
    const char *name;
    size_t offset;
} symbol_slot;

static const symbol_slot nvrtc_slots[] = {
#define ITS_SYMBOL(result, name, params) {#name, offsetof(its_nvrtc, name)},
#include "base/libnvrtc.def"
#undef ITS_SYMBOL
};

static const symbol_slot cxx_slots[] = {
#define ITS_SYMBOL(result, name, params) {#name, offsetof(its_cxx, name)},
#include "base/libcxx.def"
#undef ITS_SYMBOL
};

static const symbol_slot nvjitlink_slots[] = {
#define ITS_SYMBOL(result, name, params) {#name, offsetof(its_nvjitlink, name)},
#include "base/libnvjitlink.def"
#undef ITS_SYMBOL
};

static const symbol_slot cuda_slots[] = {
#define ITS_SYMBOL(result, name, params) {#name, offsetof(its_cuda, name)},
#include "base/libcuda.def"
#undef ITS_SYMBOL
};

static const symbol_slot nvshmem_slots[] = {
#define ITS_SYMBOL(result, name, params) {#name, offsetof(its_nvshmem, name)},
#include "base/libnvshmem.def"
#undef ITS_SYMBOL
};

static const symbol_slot *slots_of(its_library_id id, size_t *count) {
    switch (id) {
    case ITS_LIBRARY_NVRTC:
        *count = sizeof nvrtc_slots / sizeof *nvrtc_slots;
        return nvrtc_slots;
    case ITS_LIBRARY_CXX:
        *count = sizeof cxx_slots / sizeof *cxx_slots;
        return cxx_slots;
    case ITS_LIBRARY_NVJITLINK:
        *count = sizeof nvjitlink_slots / sizeof *nvjitlink_slots;
        return nvjitlink_slots;
    case ITS_LIBRARY_CUDA:
        *count = sizeof cuda_slots / sizeof *cuda_slots;
        return cuda_slots;
    case ITS_LIBRARY_NVSHMEM:
        *count = sizeof nvshmem_slots / sizeof *nvshmem_slots;
        return nvshmem_slots;
    case ITS_LIBRARY_COUNT:
        break;
    }
    *count = 0;
    return NULL;
}

/* Older libraries have some functions only under a name that holds a version; the newest one is taken. */
static void *find_symbol(void *handle, const char *name) {
    void *address = dlsym(handle, name);
    char versioned[96];
    for (int version = 149; !address && version >= 110; version--)
        if ((size_t)snprintf(versioned, sizeof versioned, "__%s_%d_%d", name, version / 10, version % 10) <
            sizeof versioned)
            address = dlsym(handle, versioned);
    return address;
}

/* The name of the first symbol that is missing, or NULL. */
static const char *bind_symbols(its_library_id id, void *handle, void *functions) {
    size_t count;
    const symbol_slot *slots = slots_of(id, &count);
    for (size_t i = 0; i < count; i++) {
        void *address = find_symbol(handle, slots[i].name);
        if (!address) return slots[i].name;
        memcpy((char *)functions + slots[i].offset, &address, sizeof address);
    }
    return NULL;
}

/*
 * NVRTC opens its second half, libnvrtc-builtins.so, by its bare name when it compiles, and finds it only in the
 * loader's own directories. One that lies next to it (in a wheel, or a toolkit off the beaten track) is loaded here
 * first: the loader then knows it by that name.
 */
static void open_second_half(its_library_id id, const char *path) {
    static const char prefix[] = "libnvrtc-builtins.so.";
    const char *slash = strrchr(path, '/');
    char dir[PATH_MAX], file[2 * PATH_MAX];
    if (id != ITS_LIBRARY_NVRTC || !slash || (size_t)(slash - path) >= sizeof dir) return;
    snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path);
    DIR *listing = opendir(dir);
    if (!listing) return;
    for (struct dirent *entry; (entry = readdir(listing));) {
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1) != 0) continue;
        snprintf(file, sizeof file, "%s/%s", dir, entry->d_name);
        void *half = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (half) dlclose(half);
    }
    closedir(listing);
}

static void *open_file(const its_library_search *search) {
    open_second_half(search->id, search->path);
    return dlopen(search->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

its_status its_library_open(its_context *ctx, const its_library_search *search, its_library *library, void *functions) {
    library->handle = NULL;
    if (!search->path) return its_library_absent(ctx, search);
    void *handle = open_file(search);
    if (!handle) {
        const char *why = dlerror();
        return its_fail(ctx, ITS_ERR_ABSENT, search->hint, "%s can't be loaded: %s", search->what,
                        why ? why : "unknown");
    }
    const char *missing = bind_symbols(search->id, handle, functions);
    if (missing) {
        dlclose(handle);
        return its_fail(ctx, ITS_ERR_ABSENT, search->hint, "%s in '%s' is not a version that can be used: it has no %s",
                        search->what, search->path, missing);
    }
    library->handle = handle;
    return ITS_OK;
}

bool its_library_load(const its_library_search *search, its_library *library, void *functions) {
    void *handle = search->path ? open_file(search) : NULL;
    library->handle = NULL;
    if (!handle) return false;
    if (!bind_symbols(search->id, handle, functions)) return library->handle = handle, true;
    dlclose(handle);
    return false;
}

void its_library_close(its_library *library) {
    if (library->handle) dlclose(library->handle);
    library->handle = NULL;
}

its_status its_plugin_open(its_context *ctx, const char *path, const char *what, its_library *library) {
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library->handle) return ITS_OK;
    const char *why = dlerror();
    return its_fail(ctx, ITS_ERR_ABSENT, NULL, "the %s '%s' can't be loaded: %s", what, path, why ? why : "unknown");
}

void *its_plugin_symbol(const its_library *library, const char *name) {
    return dlsym(library->handle, name);
}
