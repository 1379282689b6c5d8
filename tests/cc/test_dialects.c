/* Dialects: PTX as it is, shared objects, and the ones there are not. */
#include "common.h"

static const char good[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                           ".visible .func (.param .b32 r) inc(.param .b32 a) {\n"
                           "    .reg .b32 %r<3>;\n"
                           "    ld.param.b32 %r1, [a];\n"
                           "    add.s32 %r2, %r1, 1;\n"
                           "    st.param.b32 [r], %r2;\n"
                           "    ret;\n"
                           "}\n";

static void ptx_is_taken_as_it_is(void **state) {
    fixture *f = *state;
    its_cc_input input = {.dialect = "ptx", .path = put(f, "inc.ptx", good), .arch = "sm_80"};
    for (int i = 0; i < 2; i++) {
        its_unit *unit = compile_ok(f, &input);
        assert_int_equal(unit->cached, i);
        assert_string_equal(unit->ptx, good);
        assert_string_equal(unit->log, "");
        assert_string_equal(find(f, "inc"), "inc");
        assert_int_equal(unit->n_depends, 1);
        assert_string_equal(unit->depends[0], input.path);
        assemble(f);
    }
}

static void a_syntax_error_in_ptx(void **state) {
    fixture *f = *state;
    const char *path = put(f, "bad.ptx",
                           ".version 8.0\n.target sm_80\n.address_size 64\n.visible .func f() {\n"
                           "    .reg .b32 %r<3>;\n    add.s32 %r1, %r2 1;\n    ret;\n}\n");
    its_cc_input input = {.dialect = "ptx", .path = path, .arch = "sm_80"};
    for (int i = 0; i < 2; i++) { /* and it is not cached */
        assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
        assert_int_equal(its_diag_errors(f->ctx), 1);
        expect_place(its_diag_get(f->ctx, 0), path, 6, 22);
    }
}

static void what_ptx_does_not_have(void **state) {
    fixture *f = *state;
    static const char *const options[] = {"-I."}, *const instances[] = {"f<int>"};
    its_cc_input input = {.dialect = "ptx", .source = good, .arch = "sm_80", .options = options, .n_options = 1};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect(f, "the ptx dialect has no option '-I.'");
    input.n_options = 0;
    input.instances = instances, input.n_instances = 1;
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect(f, "PTX has no templates");
}

static void an_unknown_dialect_lists_those_there_are(void **state) {
    fixture *f = *state;
    its_cc_input input = {.dialect = "opencl", .source = "", .arch = "sm_80"};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    const its_diag *diag = expect(f, "there is no dialect 'opencl'; there are: cuda, ptx");
    assert_non_null(strstr(diag->hint, "with a slash"));
}

/*
 * A dialect for sums: a source "NAME TERM..." is a function that returns the sum of its terms; a term `@FILE` is the
 * number in that file. An example of what an out-of-tree dialect looks like.
 */
static const char sum_dialect[] =
    "#include <intarsia/cc.h>\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "static its_status version(its_context *ctx, const its_cc_host *host, char *text, size_t size) {\n"
    "    (void)ctx, (void)host;\n"
    "    snprintf(text, size, \"sum 1\");\n"
    "    return ITS_OK;\n"
    "}\n"
    "static its_status scan(its_context *ctx, const its_cc_host *host, const its_cc_input *input, const char *source,\n"
    "                       size_t size, its_cc_reads *reads) {\n"
    "    (void)ctx, (void)size;\n"
    "    for (unsigned i = 0; i < input->n_options; i++)\n"
    "        host->reads_text(reads, input->options[i], strlen(input->options[i]));\n"
    "    for (const char *p = source; (p = strchr(p, '@')); p++) {\n"
    "        char path[1000];\n"
    "        if (sscanf(p, \"@%999s\", path) == 1) host->reads_file(reads, path);\n"
    "    }\n"
    "    return ITS_OK;\n"
    "}\n"
    "static its_status compile(its_context *ctx, const its_cc_host *host, const its_cc_input *input,\n"
    "                          const char *source, size_t size, const its_cc_reads *reads,\n"
    "                          its_dialect_result *result) {\n"
    "    char name[100], term[1000];\n"
    "    int used = 0, sum = 0;\n"
    "    (void)size;\n"
    "    if (sscanf(source, \"%99s%n\", name, &used) != 1) {\n"
    "        host->error(ctx, input->path, 1, 1, source, \"a sum starts with its name\", \"write one\");\n"
    "        return ITS_ERR_INPUT;\n"
    "    }\n"
    "    if (strcmp(name, \"silent\") == 0) return ITS_ERR_INPUT;\n"
    "    if (strcmp(name, \"edits\") == 0) {\n"
    "        FILE *file = fopen(host->read_path(reads, 0), \"a\");\n"
    "        fputs(\" \", file), fclose(file);\n"
    "    }\n"
    "    if (strcmp(name, \"nothing\") == 0) return ITS_OK;\n"
    "    if (strcmp(name, \"logged\") == 0) return result->log = \"it is wrong\", ITS_ERR_INPUT;\n"
    "    for (size_t n = 0; source += used, sscanf(source, \"%999s%n\", term, &used) == 1;) {\n"
    "        FILE *file = term[0] == '@' ? fopen(host->read_path(reads, n++), \"r\") : NULL;\n"
    "        if (file) term[fread(term, 1, 99, file)] = 0, fclose(file);\n"
    "        sum += atoi(term);\n"
    "    }\n"
    "    result->ptx = host->alloc(host, 2000);\n"
    "    if (!result->ptx) return ITS_ERR_NOMEM;\n"
    "    result->ptx_size = (size_t)sprintf(result->ptx,\n"
    "        \".version 8.0\\n.target %s\\n.address_size 64\\n.visible .func (.param .b32 r) %s() {\\n\"\n"
    "        \".reg .b32 %%r;\\n.loc 1 1 1\\nmov.b32 %%r, %d;\\nst.param.b32 [r], %%r;\\nret;\\n}\\n\"\n"
    "        \".file 1 \\\"\" ITS_FILE_MARK \"0\\\"\\n\", input->arch, name, sum);\n"
    "    return ITS_OK;\n"
    "}\n"
    "#ifndef ABI\n"
    "#define ABI ITS_DIALECT_ABI\n"
    "#endif\n"
    "__attribute__((visibility(\"default\"))) const its_dialect its_dialect_descriptor = {ABI, \"sum\", version, "
    "scan,\n"
    "                                                                                 compile};\n";

/* Builds it without any library of ours; returns the path of the shared object. */
static const char *build(fixture *f, const char *name, const char *source, const char *option) {
    char file[64];
    snprintf(file, sizeof file, "%s.c", name);
    const char *path = put(f, file, source);
    snprintf(file, sizeof file, "%s.so", name);
    const char *object = at(f, file);
    const char *const argv[] = {
        "cc",   "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I", ITS_SOURCE_DIR "/include",
        option, "-o",      object,  path,    NULL};
    run(f, argv);
    return object;
}

static void a_shared_object_is_a_dialect(void **state) {
    fixture *f = *state;
    char source[600];
    put(f, "term", "30");
    snprintf(source, sizeof source, "total 1 2 @%s/term", f->dir);
    its_cc_input input = {
        .dialect = build(f, "sum", sum_dialect, "-O1"), .path = put(f, "total.sum", source), .arch = "sm_80"};
    char id[17];
    for (int i = 0; i < 2; i++) {
        its_unit *unit = compile_ok(f, &input);
        assert_int_equal(unit->cached, i);
        assert_non_null(strstr(unit->ptx, "mov.b32 %r, 33;"));
        assert_non_null(strstr(unit->ptx, at(f, "total.sum"))); /* in place of the mark */
        assert_string_equal(find(f, "total"), "total");
        assert_int_equal(unit->n_depends, 2);
        assert_string_equal(unit->depends[1], at(f, "term"));
        memcpy(id, unit->id, sizeof id);
        assemble(f);
    }
    put(f, "term", "40");
    assert_non_null(strstr(compile_ok(f, &input)->ptx, "mov.b32 %r, 43;"));
    assert_string_not_equal(f->unit->id, id);
    static const char *const options[] = {"-x"};
    char other[17];
    memcpy(id, f->unit->id, sizeof id);
    input.options = options, input.n_options = 1;
    assert_int_equal(its_cc_id(f->ctx, &input, other), ITS_OK);
    assert_string_not_equal(other, id);
}

static void errors_of_a_shared_object(void **state) {
    fixture *f = *state;
    its_cc_input input = {
        .dialect = build(f, "sum", sum_dialect, "-O1"), .path = "s.sum", .source = " ", .arch = "sm_80"};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    const its_diag *diag = expect(f, "a sum starts with its name");
    expect_place(diag, "s.sum", 1, 1);
    assert_string_equal(diag->hint, "write one");
    input.source = "silent";
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect(f, "the dialect sum can't compile 's.sum' and doesn't say why");
    input.source = "nothing";
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect(f, "and doesn't say why");
    input.source = "logged";
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect(f, "the dialect sum can't compile 's.sum': it is wrong");
    static const char *const instances[] = {"x"};
    input.source = "x 1", input.instances = instances, input.n_instances = 1;
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect(f, "doesn't say what the instance 'x' is called");
    input.n_instances = 0, input.source = "9wrong 1"; /* a name that PTX doesn't take */
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    assert_string_equal(its_diag_get(f->ctx, 0)->places[0].file, "s.sum (as compiled)");
}

/* What was compiled from a file that changed meanwhile is handed out, and not kept. */
static void files_edited_meanwhile(void **state) {
    fixture *f = *state;
    char source[600];
    put(f, "term", "30");
    snprintf(source, sizeof source, "edits 1 @%s/term", f->dir);
    its_cc_input input = {.dialect = build(f, "sum", sum_dialect, "-O1"), .source = source, .arch = "sm_80"};
    for (int i = 0; i < 2; i++) {
        assert_non_null(strstr(compile_ok(f, &input)->ptx, "mov.b32 %r, 31;"));
        assert_false(f->unit->cached);
    }
    its_cache_info info;
    assert_int_equal(its_cache_query(f->ctx, &info), ITS_OK);
    assert_int_equal(info.entries, 0);
    its_free(f->ctx, info.directory);
}

static void objects_that_are_no_dialects(void **state) {
    fixture *f = *state;
    its_cc_input input = {.dialect = "./not/there.so", .source = "", .arch = "sm_80"};
    assert_int_equal(compile(f, &input), ITS_ERR_ABSENT);
    expect(f, "the dialect './not/there.so' can't be loaded: ");
    input.dialect = put(f, "text.so", "no object");
    assert_int_equal(compile(f, &input), ITS_ERR_ABSENT);
    input.dialect = build(f, "plain", "int x;\n", "-O1");
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect(f, "it has no its_dialect_descriptor");
    input.dialect = build(f, "newer", sum_dialect, "-DABI=2");
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect(f, "it has interface version 2, this is 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CC_TEST(ptx_is_taken_as_it_is),        CC_TEST(a_syntax_error_in_ptx),
        CC_TEST(what_ptx_does_not_have),       CC_TEST(an_unknown_dialect_lists_those_there_are),
        CC_TEST(a_shared_object_is_a_dialect), CC_TEST(errors_of_a_shared_object),
        CC_TEST(files_edited_meanwhile),       CC_TEST(objects_that_are_no_dialects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
