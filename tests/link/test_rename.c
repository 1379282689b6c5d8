/* Renaming alone: a module in which every name is another gives the same machine code. */
#include "common.h"

#include "link/linker.h"

static tools found;

typedef struct section {
    uint32_t name, type;
    uint64_t flags, address, offset, size;
} section;

static uint64_t read_le(const char *at, unsigned size) {
    uint64_t value = 0;
    while (size--) value = value << 8 | (unsigned char)at[size];
    return value;
}

/* The n-th section of an ELF64 file; false behind the last. */
static bool read_section(const char *elf, uint64_t n, section *s) {
    const char *at = elf + read_le(elf + 40, 8) + n * read_le(elf + 58, 2);
    if (n >= read_le(elf + 60, 2)) return false;
    *s = (section){(uint32_t)read_le(at, 4), (uint32_t)read_le(at + 4, 4), read_le(at + 8, 8),
                   read_le(at + 16, 8),      read_le(at + 24, 8),          read_le(at + 32, 8)};
    return true;
}

/* Adds up the sections that hold code or data (.text.*, .nv.constant*, .nv.info.*), names included. */
static uint64_t digest(const char *elf, size_t *n_code) {
    section names, s;
    uint64_t sum = 14695981039346656037u;
    assert_true(read_section(elf, read_le(elf + 62, 2), &names));
    for (uint64_t i = 0; read_section(elf, i, &s); i++) {
        const char *name = elf + names.offset + s.name;
        bool code = strncmp(name, ".text.", 6) == 0;
        *n_code += code;
        if (s.type == 8 || (!code && strncmp(name, ".nv.constant", 12) != 0)) continue;
        for (const char *at = name; *at; at++) sum = (sum ^ (unsigned char)*at) * 1099511628211u;
        for (uint64_t k = 0; k < s.size; k++) sum = (sum ^ (unsigned char)elf[s.offset + k]) * 1099511628211u;
    }
    return sum;
}

/* The same machine code to the byte; debug information holds the PTX text and is left out. */
static bool same_code(its_context *ctx, const its_module *a, const its_module *b) {
    const its_module *modules[] = {a, b};
    uint64_t sums[2];
    for (int i = 0; i < 2; i++) {
        char cubin[1200], *text;
        size_t size, n_code = 0;
        assert_int_equal(its_ptx_print(modules[i], &text, &size), ITS_OK);
        bool ok = assemble(ctx, &found, text, size, a->targets[0]->text, false, cubin, sizeof cubin);
        if (!ok) fail_msg("%s", text);
        its_free(ctx, text);
        char *code = read_file(cubin, &size);
        sums[i] = digest(code, &n_code);
        assert_true(n_code > 0);
        free(code);
    }
    return sums[0] == sums[1];
}

/* Every name is another, and the machine code is the same to the byte. */
static void renaming_changes_nothing(void **state) {
    (void)state;
    if (!*found.ptxas) skip();
    its_context *ctx = its_context_new(NULL);
    static const char *const files[] = {"capture.ptx",      "names.ptx",       "params-struct.ptx", "statics.ptx",
                                        "recursion.ptx",    "local-depot.ptx", "indirect.ptx",      "uniform.ptx",
                                        "result-twice.ptx", "deep-braces.ptx", "builtins.ptx"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[1024];
        its_module *module;
        its_linked *linked;
        snprintf(path, sizeof path, ITS_SOURCE_DIR "/tests/link/data/%s", files[i]);
        assert_int_equal(its_ptx_parse_file(ctx, path, &module), ITS_OK);
        if (its_link_renamed(ctx, module, &linked) != ITS_OK) fail_msg("%s", its_diag_render(ctx, false));
        if (!same_code(ctx, module, its_linked_module(linked))) fail_msg("%s: other code after renaming", files[i]);
        its_linked_free(linked);
        its_module_free(module);
    }
    its_context_free(ctx);
}

static int open_tools(void **state) {
    (void)state;
    find_tools(&found);
    return 0;
}

static int close_tools(void **state) {
    (void)state;
    remove_tools(&found);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(renaming_changes_nothing)};
    return cmocka_run_group_tests(tests, open_tools, close_tools);
}
