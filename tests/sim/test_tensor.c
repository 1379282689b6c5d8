/*
 * Tensor copies: boxes of random tensors, in both directions, against loops over elements. The swizzle is that of the
 * manual's tables: the piece of a row changes places by the row's number.
 */
#include "intarsia/sim.h"
#include "kit.h"

enum { U8, U16, U32, S32, U64, S64, F16, F32, F64, BF16 };
enum { SHARED = 49152, MEMORY = 1 << 18 };

static const unsigned sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};

static uint64_t random_state;
static unsigned draw(unsigned below) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)((random_state >> 33) % below);
}

/* -- the reference ------------------------------------------------------------------------------------------------- */

/* Where byte `byte` of row `row` lies in shared memory, rows of `width` bytes; `swizzle` 0 to 3. */
static unsigned mixed(unsigned swizzle, unsigned width, unsigned row, unsigned byte) {
    unsigned at = row * width + byte, line = at / 128, piece = at / 16 % 8;
    if (swizzle == 3) piece ^= line % 8;
    if (swizzle == 2) piece = (piece & 4) | ((piece & 3) ^ (line % 4));
    if (swizzle == 1) piece = (piece & 6) | ((piece & 1) ^ (line % 2));
    return line * 128 + piece * 16 + at % 16;
}

static unsigned count_of(const its_sim_tensor *t, unsigned dim) {
    if (dim >= t->rank) return 1;
    return dim ? (t->box[dim] + t->steps[dim] - 1) / t->steps[dim] : t->box[0];
}

typedef void visit(void *user, const char *global, unsigned shared, bool inside);

/* Calls `f` for each element of the box: where it is in global memory, if it is inside, and in shared memory. */
static void each_element(const its_sim_tensor *t, const int *at, visit *f, void *user) {
    unsigned n[5], size = sizes[t->type], row = 0;
    for (unsigned i = 0; i < 5; i++) n[i] = count_of(t, i);
    for (unsigned i4 = 0; i4 < n[4]; i4++)
        for (unsigned i3 = 0; i3 < n[3]; i3++)
            for (unsigned i2 = 0; i2 < n[2]; i2++)
                for (unsigned i1 = 0; i1 < n[1]; i1++, row++)
                    for (unsigned i0 = 0; i0 < n[0]; i0++) {
                        unsigned index[5] = {i0, i1, i2, i3, i4};
                        uint64_t address = t->address;
                        bool inside = true;
                        for (unsigned i = 0; i < t->rank; i++) {
                            int64_t where = at[i] + (int64_t)index[i] * (i ? (int64_t)t->steps[i] : 1);
                            if (where < 0 || where >= (int64_t)t->dims[i])
                                inside = false;
                            else
                                address += (uint64_t)where * (i ? t->strides[i - 1] : size);
                        }
                        f(user, (const char *)(uintptr_t)address, mixed(t->swizzle, n[0] * size, row, i0 * size),
                          inside);
                    }
}

typedef struct comparison {
    const its_sim_tensor *tensor;
    char *shared;
    unsigned wrong;
} comparison;

static void compare_loaded(void *user, const char *global, unsigned shared, bool inside) {
    comparison *c = user;
    unsigned size = sizes[c->tensor->type];
    char outside[8] = {0};
    static const uint16_t half = 0x7fff;
    static const uint32_t single = 0x7fffffff;
    static const uint64_t wide = 0x7fffffffffffffff;
    bool real = c->tensor->type >= F16;
    if (c->tensor->fill && real)
        memcpy(outside,
               size == 2   ? (const void *)&half
               : size == 4 ? (const void *)&single
                           : (const void *)&wide,
               size);
    if (memcmp(c->shared + shared, inside ? global : outside, size) != 0) c->wrong++;
}

/* What a store would do. */
static void do_store(void *user, const char *global, unsigned shared, bool inside) {
    comparison *c = user;
    if (inside) memcpy((char *)(uintptr_t)global, c->shared + shared, sizes[c->tensor->type]);
}

/* -- random tensors ------------------------------------------------------------------------------------------------ */

static its_sim_tensor random_tensor(char *memory, unsigned turn) {
    static const unsigned widest[] = {256, 32, 64, 128};
    its_sim_tensor t = {.rank = 1 + turn % 5, .type = turn % 10, .swizzle = turn / 5 % 4, .fill = turn / 7 % 2};
    unsigned size = sizes[t.type], left = 24576;
    t.address = kit_address(memory) + 16 * draw(8);
    unsigned most = widest[t.swizzle] / 16;
    t.box[0] = (1 + draw(most)) * 16 / size;
    if (t.box[0] > 256) t.box[0] = 256;
    t.dims[0] = 1 + draw(2 * t.box[0]);
    t.steps[0] = 1;
    left /= t.box[0] * size;
    uint64_t stride = (t.dims[0] * size + 15) / 16 * 16 + 16 * draw(3);
    for (unsigned i = 1; i < t.rank; i++) {
        unsigned limit = left < 12 ? left : 12;
        t.box[i] = 1 + draw(limit ? limit : 1);
        t.steps[i] = 1 + (draw(3) == 0 ? draw(3) : 0);
        t.dims[i] = 1 + draw(6);
        t.strides[i - 1] = stride;
        stride *= t.dims[i];
        left /= t.box[i];
    }
    return t;
}

static void make_map(kit *k, const its_sim_tensor *t, void *map) {
    its_status status = its_sim_tensor_encode(k->ctx, t, map);
    if (status != ITS_OK) kit_show(k);
    assert_int_equal(status, ITS_OK);
}

#define HEAD                                                                                                    \
    ".extern .shared .align 1024 .b8 s[];\n.visible .entry f(.param .align 64 .b8 map[128], .param .u64 out,\n" \
    ".param .b32 c0, .param .b32 c1, .param .b32 c2, .param .b32 c3, .param .b32 c4, .param .b32 bytes)\n"      \
    "{ .reg .pred %p<4>; .reg .b32 %r<24>; .reg .b64 %rd<16>; .shared .align 8 .b64 m;\n"                       \
    "ld.param.u64 %rd0, [out]; ld.param.u32 %r10, [c0]; ld.param.u32 %r11, [c1]; ld.param.u32 %r12, [c2];\n"    \
    "ld.param.u32 %r13, [c3]; ld.param.u32 %r14, [c4]; ld.param.u32 %r15, [bytes]; mov.u32 %r0, %tid.x;\n"      \
    "mov.u32 %r1, s; mov.u32 %r2, m; mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1; setp.eq.u32 %p0, %r0, 0;\n"  \
    "@%p0 mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster; bar.sync 0;\n"
#define WAIT "mov.u32 %r3, 0; WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], %r3; @!%p1 bra WAIT;\n"
#define EXPECT "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], %r15;\n"
#define SHOW /* all of shared memory goes to `out` */                                                          \
    "mul.lo.u32 %r4, %r0, 16; SHOW: add.u32 %r5, %r1, %r4; cvt.u64.u32 %rd4, %r4; add.u64 %rd4, %rd0, %rd4;\n" \
    "ld.shared.v4.b32 {%r6, %r7, %r8, %r9}, [%r5]; st.global.v4.b32 [%rd4], {%r6, %r7, %r8, %r9};\n"           \
    "add.u32 %r4, %r4, 1024; setp.lt.u32 %p2, %r4, 49152; @%p2 bra SHOW;\n"
#define FILL                                                                                                   \
    "mul.lo.u32 %r4, %r0, 16; FILL: add.u32 %r5, %r1, %r4; cvt.u64.u32 %rd4, %r4; add.u64 %rd4, %rd0, %rd4;\n" \
    "ld.global.v4.b32 {%r6, %r7, %r8, %r9}, [%rd4]; st.shared.v4.b32 [%r5], {%r6, %r7, %r8, %r9};\n"           \
    "add.u32 %r4, %r4, 1024; setp.lt.u32 %p2, %r4, 49152; @%p2 bra FILL; bar.sync 0;\n"

static const char *const coordinates[] = {"{%r10}", "{%r10, %r11}", "{%r10, %r11, %r12}", "{%r10, %r11, %r12, %r13}",
                                          "{%r10, %r11, %r12, %r13, %r14}"};

/* Runs a kernel whose parameters are those of HEAD; its outcome. */
static its_sim_progress run(kit *k, const char *body, const void *map, void *out, const int *at, uint32_t bytes) {
    char text[8192];
    snprintf(text, sizeof(text), "%s%s%s", HEAD, body, "ret;\n}\n");
    kit_load(k, text);
    const its_sim_entry *entry;
    assert_int_equal(its_sim_program_entry(k->ctx, k->program, "f", &entry), ITS_OK);
    char block[192] = {0};
    uint64_t address = kit_address(out);
    memcpy(block + entry->params[0].offset, map, 128);
    memcpy(block + entry->params[1].offset, &address, 8);
    for (unsigned i = 0; i < 5; i++) memcpy(block + entry->params[2 + i].offset, &at[i], 4);
    memcpy(block + entry->params[7].offset, &bytes, 4);
    its_sim_launch launch = {.grid = {1, 1, 1}, .block = {64, 1, 1}, .shared = SHARED, .params = block};
    its_sim_grid_free(k->grid);
    assert_int_equal(its_sim_grid_new(k->ctx, entry, &launch, &k->grid), ITS_OK);
    its_sim_progress progress = kit_finish(k, 100000, 100);
    if (progress == ITS_SIM_FAULT) its_sim_fault_report(k->ctx, its_sim_grid_fault(k->grid));
    return progress;
}

static void expect_done(kit *k, its_sim_progress progress) {
    if (progress == ITS_SIM_FAULT) kit_show(k);
    assert_int_equal(progress, ITS_SIM_DONE);
}

static unsigned bytes_of(const its_sim_tensor *t) {
    unsigned bytes = sizes[t->type];
    for (unsigned i = 0; i < 5; i++) bytes *= count_of(t, i);
    return bytes;
}

static void random_place(const its_sim_tensor *t, int *at) {
    for (unsigned i = 0; i < 5; i++) at[i] = i < t->rank ? (int)draw((unsigned)t->dims[i] + 4) - 3 : 0;
}

static void test_loads(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    char *memory = kit_alloc(&k, MEMORY), *out = kit_alloc(&k, SHARED);
    for (unsigned i = 0; i < MEMORY; i++) memory[i] = (char)draw(256);
    unsigned outside = 0;
    for (unsigned turn = 0; turn < 160; turn++) {
        its_sim_tensor t = random_tensor(memory, turn);
        _Alignas(64) char map[128];
        char body[2048];
        int at[5];
        make_map(&k, &t, map);
        random_place(&t, at);
        strcpy(body, EXPECT);
        snprintf(body + strlen(body), 1024,
                 "@%%p0 cp.async.bulk.tensor.%ud.shared::cluster.global%s.mbarrier::complete_tx::bytes%s [%%r1], "
                 "[%%rd1, %s], [%%r2]%s;\n",
                 t.rank, turn % 2 ? ".tile" : "", turn % 3 ? "" : ".multicast::cluster", coordinates[t.rank - 1],
                 turn % 3 ? "" : ", 1");
        strcat(body, WAIT SHOW);
        expect_done(&k, run(&k, body, map, out, at, bytes_of(&t)));
        comparison c = {&t, out, 0};
        each_element(&t, at, compare_loaded, &c);
        if (c.wrong)
            fail_msg("turn %u, rank %u, type %u, swizzle %u: %u elements are wrong", turn, t.rank, t.type, t.swizzle,
                     c.wrong);
        for (unsigned i = 0; i < t.rank; i++) outside += at[i] < 0;
    }
    assert_true(outside > 50); /* the boxes do reach beyond their tensors */
    kit_free(&k, memory), kit_free(&k, out);
    kit_close(&k);
}

static void test_stores(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    char *memory = kit_alloc(&k, MEMORY), *in = kit_alloc(&k, SHARED), *copy = malloc(MEMORY), *stored = malloc(MEMORY);
    for (unsigned turn = 0; turn < 120; turn++) {
        for (unsigned i = 0; i < MEMORY; i += 8) memset(memory + i, (int)draw(256), 8);
        for (unsigned i = 0; i < SHARED; i++) in[i] = (char)draw(256);
        memcpy(copy, memory, MEMORY);
        its_sim_tensor t = random_tensor(memory, turn);
        _Alignas(64) char map[128];
        char body[2048];
        int at[5];
        make_map(&k, &t, map);
        random_place(&t, at);
        strcpy(body, FILL);
        snprintf(body + strlen(body), 1024,
                 "@%%p0 cp.async.bulk.tensor.%ud.global.shared::cta.bulk_group [%%rd1, %s], [%%r1];\n"
                 "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n",
                 t.rank, coordinates[t.rank - 1]);
        expect_done(&k, run(&k, body, map, in, at, 0));
        memcpy(stored, memory, MEMORY);
        memcpy(memory, copy, MEMORY);
        comparison c = {&t, in, 0};
        each_element(&t, at, do_store, &c);
        if (memcmp(memory, stored, MEMORY) != 0)
            fail_msg("turn %u, rank %u, type %u, swizzle %u differs", turn, t.rank, t.type, t.swizzle);
    }
    free(copy), free(stored);
    kit_free(&k, memory), kit_free(&k, in);
    kit_close(&k);
}

/* -- reductions ---------------------------------------------------------------------------------------------------- */

static int64_t reduce_whole(const char *how, int64_t a, int64_t b) {
    if (strcmp(how, "add") == 0) return a + b;
    if (strcmp(how, "min") == 0) return a < b ? a : b;
    if (strcmp(how, "max") == 0) return a > b ? a : b;
    if (strcmp(how, "and") == 0) return a & b;
    if (strcmp(how, "or") == 0) return a | b;
    if (strcmp(how, "xor") == 0) return a ^ b;
    if (strcmp(how, "inc") == 0) return a >= b ? 0 : a + 1;
    return a == 0 || a > b ? b : a - 1;
}

static void test_reductions(void **state) {
    (void)state;
    static const char *const hows[] = {"add", "min", "max", "and", "or", "xor", "inc", "dec"};
    kit k;
    kit_open(&k);
    int32_t *memory = kit_alloc(&k, 4096), *in = kit_alloc(&k, SHARED);
    for (unsigned turn = 0; turn < 8; turn++) {
        int before[64];
        bool is_signed = turn < 3;
        for (unsigned i = 0; i < 64; i++) before[i] = memory[i] = (int)draw(100) - (is_signed ? 50 : 0);
        for (unsigned i = 0; i < 64; i++) in[i] = (int)draw(100) - (is_signed ? 50 : 0);
        its_sim_tensor t = {.rank = 2,
                            .type = is_signed ? S32 : U32,
                            .address = kit_address(memory),
                            .dims = {8, 7},
                            .strides = {32},
                            .box = {8, 8},
                            .steps = {1, 1}};
        _Alignas(64) char map[128];
        char body[2048];
        make_map(&k, &t, map);
        strcpy(body, FILL);
        snprintf(body + strlen(body), 1024,
                 "@%%p0 cp.reduce.async.bulk.tensor.2d.global.shared::cta.%s.tile.bulk_group [%%rd1, {%%r10, %%r11}], "
                 "[%%r1];\n",
                 hows[turn]);
        expect_done(&k, run(&k, body, map, in, (const int[5]){0}, 0));
        for (unsigned i = 0; i < 64; i++)
            assert_int_equal(memory[i], i < 56 ? reduce_whole(hows[turn], before[i], in[i]) : before[i]);
    }
    /* the same without a tensor, and of floats */
    float *real = (float *)(void *)memory, *given = (float *)(void *)in;
    for (unsigned i = 0; i < 64; i++) real[i] = (float)i, given[i] = 0.5f;
    _Alignas(64) char none[128] = {0};
    expect_done(
        &k,
        run(&k,
            FILL
            "ld.param.u64 %rd2, [map];\n@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd2], [%r1], 128;\n",
            (memcpy(none, &(uint64_t){kit_address(memory)}, 8), none), in, (const int[5]){0}, 0));
    for (unsigned i = 0; i < 64; i++) assert_true(real[i] == (float)i + (i < 32 ? 0.5f : 0));
    kit_free(&k, memory), kit_free(&k, in);
    kit_close(&k);
}

/* -- maps that kernels make ---------------------------------------------------------------------------------------- */

#define REPLACE(field, type, values) "tensormap.replace.tile." field ".shared::cta.b1024." type " [%rd2], " values ";\n"

/* Out of zeros, field by field, and then through global memory. */
static void test_replace(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *memory = kit_alloc(&k, 8192);
    for (unsigned i = 0; i < 2048; i++) memory[i] = i;
    char *out = kit_alloc(&k, SHARED);
    _Alignas(64) char none[128] = {0};
    expect_done(
        &k,
        run(&k,
            ".shared .align 128 .b8 made[128]; mul.lo.u32 %r3, %r0, 4; mov.u32 %r4, made; setp.lt.u32 %p3, %r0, 32;\n"
            "add.u32 %r5, %r4, %r3; mov.u32 %r6, 0; @%p3 st.shared.u32 [%r5], %r6; bar.sync 0; @!%p0 bra JOIN;\n"
            "cvt.u64.u32 %rd2, %r4; add.u64 %rd3, %rd0, 4096; mov.u32 %r7, 20; mov.u32 %r8, 3; mov.u64 %rd5, 128; mov.u32 %r9, 1;\n" REPLACE(
                "global_address", "b64",
                "%rd3") REPLACE("rank", "b32", "1") REPLACE("box_dim", "b32", "0, 8") REPLACE("box_dim", "b32", "1, 4")
                REPLACE("global_dim", "b32", "0, %r7") REPLACE("global_dim", "b32", "1, %r8") REPLACE(
                    "global_stride", "b64", "0, %rd5") REPLACE("element_stride", "b32",
                                                               "0, %r9") REPLACE("element_stride", "b32",
                                                                                 "1, %r9") REPLACE("elemtype", "b32",
                                                                                                   "2")
                    REPLACE("interleave_layout", "b32", "0") REPLACE("swizzle_mode", "b32", "0") REPLACE(
                        "fill_mode", "b32",
                        "0") "JOIN: bar.sync 0; @!%p3 bra LAST; cvt.u64.u32 %rd2, %r4;\n"
                             "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd0], [%rd2], 128;\n"
                             "fence.proxy.tensormap::generic.acquire.gpu [%rd0], 128;\n"
                             "LAST: bar.sync 0;\n" EXPECT
                             "@%p0 cp.async.bulk.prefetch.tensor.2d.L2.global [%rd0, {%r10, %r11}]; @%p0 prefetch.tensormap [%rd0];\n"
                             "@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0, {%r10, %r11}], [%r2];\n" WAIT
                             "mul.lo.u32 %r3, %r0, 4; add.u32 %r4, %r1, %r3; ld.shared.u32 %r5, [%r4]; cvt.u64.u32 %rd6, %r3;\n"
                             "add.u64 %rd6, %rd0, %rd6; st.global.u32 [%rd6+1024], %r5;\n",
            none, memory, (const int[5]){16, 1}, 128));
    for (unsigned i = 0; i < 32; i++) { /* rows 1 and 2 of 3 from column 16 of 20 on */
        unsigned row = 1 + i / 8, column = 16 + i % 8;
        assert_int_equal(memory[256 + i], row < 3 && column < 20 ? 1024 + row * 32 + column : 0);
    }
    kit_free(&k, memory), kit_free(&k, out);
    kit_close(&k);
}

/* One CTA of two copies a box to both, and each waits for its own mbarrier. */
static void test_multicast(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *memory = kit_alloc(&k, 4096), *out = kit_alloc(&k, 4096);
    for (unsigned i = 0; i < 1024; i++) memory[i] = 3 * i;
    its_sim_tensor t = {
        .rank = 1, .type = U32, .address = kit_address(memory), .dims = {100}, .box = {64}, .steps = {1}};
    _Alignas(64) char map[128];
    char block[192] = {0};
    make_map(&k, &t, map);
    kit_load(
        &k,
        ".visible .entry f(.param .align 64 .b8 map[128], .param .u64 out)\n.reqnctapercluster 2\n"
        "{ .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .shared .align 128 .b8 s[512]; .shared .align 8 .b64 m;\n"
        "ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, s; mov.u32 %r2, m; mov.u32 %r3, %cluster_ctarank;\n"
        "mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1; setp.eq.u32 %p0, %r0, 0; setp.eq.and.u32 %p1, %r3, 1, %p0;\n"
        "@%p0 mbarrier.init.shared::cta.b64 [%r2], 1; @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;\n"
        "fence.mbarrier_init.release.cluster; barrier.cluster.arrive; barrier.cluster.wait;\n"
        "@%p1 cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1, "
        "{50}], [%r2], 3;\n"
        "mov.u32 %r4, 0; WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], %r4; @!%p2 bra WAIT;\n"
        "mad.lo.u32 %r5, %r0, 4, %r1; ld.shared.u32 %r6, [%r5]; mad.lo.u32 %r7, %r3, 64, %r0; mul.wide.u32 %rd2, %r7, 4;\n"
        "add.u64 %rd2, %rd0, %rd2; st.global.u32 [%rd2], %r6; ret;\n}\n");
    const its_sim_entry *entry;
    uint64_t address = kit_address(out);
    assert_int_equal(its_sim_program_entry(k.ctx, k.program, "f", &entry), ITS_OK);
    memcpy(block, map, 128), memcpy(block + entry->params[1].offset, &address, 8);
    its_sim_launch launch = {.grid = {2, 1, 1}, .block = {64, 1, 1}, .params = block};
    assert_int_equal(its_sim_grid_new(k.ctx, entry, &launch, &k.grid), ITS_OK);
    expect_done(&k, kit_finish(&k, 100000, 100));
    for (unsigned i = 0; i < 128; i++) assert_int_equal(out[i], i % 64 < 50 ? 3 * (50 + i % 64) : 0);
    kit_free(&k, memory), kit_free(&k, out);
    kit_close(&k);
}

/* A plain bulk copy to the CTAs of a mask: at the same place, and on the mbarrier, of each. */
static void test_bulk_multicast(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *memory = kit_alloc(&k, 4096), *out = kit_alloc(&k, 4096);
    for (unsigned i = 0; i < 1024; i++) memory[i] = 5 * i + 1;
    kit_load(
        &k,
        ".visible .entry f(.param .u64 in, .param .u64 out, .param .u16 ctas)\n.reqnctapercluster 3\n"
        "{ .reg .pred %p<4>; .reg .b16 %rs; .reg .b32 %r<16>; .reg .b64 %rd<8>;\n"
        ".shared .align 128 .b8 s[512]; .shared .align 8 .b64 m;\n"
        "ld.param.u64 %rd1, [in]; ld.param.u64 %rd0, [out]; ld.param.u16 %rs, [ctas]; mov.u32 %r0, %tid.x; mov.u32 %r1, s;\n"
        "mov.u32 %r2, m; mov.u32 %r3, %cluster_ctarank; setp.eq.u32 %p0, %r0, 0; setp.eq.and.u32 %p1, %r3, 1, %p0;\n"
        "mad.lo.u32 %r5, %r0, 4, %r1; st.shared.u32 [%r5], 77; st.shared.u32 [%r5+256], 78;\n"
        "@%p0 mbarrier.init.shared::cta.b64 [%r2], 1; setp.ne.and.u32 %p3, %r3, 1, %p0;\n"
        "@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;\n"
        "barrier.cluster.arrive; barrier.cluster.wait;\n"
        "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1+128], [%rd1], 256, "
        "[%r2], %rs;\n"
        "setp.eq.u32 %p1, %r3, 1; @%p1 bra DONE;\n"
        "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra WAIT;\n"
        "DONE: ld.shared.u32 %r6, [%r5+128]; mad.lo.u32 %r7, %r3, 64, %r0; mul.wide.u32 %rd2, %r7, 4;\n"
        "add.u64 %rd2, %rd0, %rd2; st.global.u32 [%rd2], %r6; barrier.cluster.arrive; barrier.cluster.wait; ret;\n}\n");
    kit_run(&k, (kit_launch){"f", 3, 64, 0, {kit_address(memory), kit_address(out), 5}});
    for (unsigned i = 0; i < 192; i++)
        assert_int_equal(out[i], i / 64 == 1 ? (i % 64 < 32 ? 77 : 78) : 5 * (i % 64) + 1);
    assert_int_equal(kit_launch_run(&k, (kit_launch){"f", 3, 64, 0, {kit_address(memory), kit_address(out), 8}}),
                     ITS_SIM_FAULT);
    its_sim_fault_report(k.ctx, its_sim_grid_fault(k.grid));
    assert_non_null(strstr(kit_message(&k), "copies to the CTAs 0x8 of a cluster that has 3"));
    kit_free(&k, memory), kit_free(&k, out);
    kit_close(&k);
}

/* -- faults -------------------------------------------------------------------------------------------------------- */

#define LOAD2(to, at)                                                                                 \
    "@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [" to "], [" at \
    ", {%r10, %r11}], [%r2];\n"

static void expect_fault(kit *k, const its_sim_tensor *t, const char *body, const char *message) {
    _Alignas(64) char map[128] = {0};
    char *out = kit_alloc(k, SHARED);
    if (t) make_map(k, t, map);
    assert_int_equal(run(k, body, map, out, (const int[5]){0}, 512), ITS_SIM_FAULT);
    if (!strstr(kit_message(k), message)) fail_msg("reported: %s\nexpected: %s", kit_message(k), message);
    kit_free(k, out);
}

static void test_faults(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    float *memory = kit_alloc(&k, 4096);
    its_sim_tensor t = {.rank = 2,
                        .type = F32,
                        .address = kit_address(memory),
                        .dims = {16, 16},
                        .strides = {64},
                        .box = {16, 8},
                        .steps = {1, 1}},
                   beyond = t;
    beyond.dims[1] = 100;
    expect_fault(&k, NULL, EXPECT LOAD2("%r1", "%rd1"), "uses a tensor map that was not made by this simulator");
    expect_fault(&k, &t, EXPECT "add.u32 %r1, %r1, 64;\n" LOAD2("%r1", "%rd1"),
                 "copies a tensor with shared address 0x840, which is no multiple of 128");
    expect_fault(&k, &t, EXPECT "add.u32 %r1, %r1, 49152;\n" LOAD2("%r1", "%rd1"), "outside of the CTA's");
    expect_fault(&k, &t, EXPECT "add.u64 %rd1, %rd1, 8;\n" LOAD2("%r1", "%rd1"), "which is no multiple of 64");
    expect_fault(&k, &t, EXPECT LOAD2("%r1", "%rd0"), "uses a tensor map that was not made by this simulator");
    expect_fault(&k, &beyond, EXPECT "mov.u32 %r11, 60;\n" LOAD2("%r1", "%rd1"), "reads 64 bytes at address 0x");
    expect_fault(&k, &t, "@%p0 mbarrier.inval.shared::cta.b64 [%r2];\n" LOAD2("%r1", "%rd1"),
                 "which was not initialised");
    expect_fault(&k, &t, "@%p0 cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r10}], [%r1];",
                 "gives 1 coordinates for a tensor map of rank 2");
    expect_fault(&k, &t,
                 "@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%r1], [%rd1, {%r10, %r11}], [%r2], 3;",
                 "copies to the CTAs 0x3 of a cluster that has 1");
    expect_fault(
        &k, NULL,
        "ld.param.u64 %rd2, [map]; @%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd2, {%r10, %r11}], [%r1];",
        "reads 64 bytes at address 0x");
    t.type = U8;
    t.box[0] = 16;
    expect_fault(&k, &t,
                 "@%p0 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%rd1, {%r10, %r11}], [%r1];",
                 "reduces a tensor whose elements have less than 32 bits and are no floats");
    kit_free(&k, memory);
    kit_close(&k);
}

/* Fewer bytes than were expected, or none: nobody can help a wait for a phase that can't come. */
static void test_wrong_byte_counts(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    float *memory = kit_alloc(&k, 4096), *out = kit_alloc(&k, SHARED);
    _Alignas(64) char map[128];
    its_sim_tensor t = {.rank = 2,
                        .type = F32,
                        .address = kit_address(memory),
                        .dims = {16, 16},
                        .strides = {64},
                        .box = {16, 8},
                        .steps = {1, 1}};
    make_map(&k, &t, map);
    assert_int_equal(run(&k, EXPECT LOAD2("%r1", "%rd1") WAIT, map, out, (const int[5]){0}, 512), ITS_SIM_DONE);
    assert_int_equal(run(&k, EXPECT LOAD2("%r1", "%rd1") WAIT, map, out, (const int[5]){0}, 768), ITS_SIM_BLOCKED);
    assert_int_equal(run(&k, EXPECT LOAD2("%r1", "%rd1") WAIT, map, out, (const int[5]){0}, 256), ITS_SIM_BLOCKED);
    assert_int_equal(run(&k, EXPECT LOAD2("%r1", "%rd1") WAIT, map, out, (const int[5]){0}, 1 << 20), ITS_SIM_FAULT);
    assert_non_null(strstr(kit_message(&k), "expects 1048576 bytes more at the mbarrier at shared address"));
    kit_free(&k, memory), kit_free(&k, out);
    kit_close(&k);
}

/* -- descriptions that are wrong ----------------------------------------------------------------------------------- */

static void test_limits(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    char map[128];
    const its_sim_tensor good = {.rank = 2,
                                 .type = F16,
                                 .address = 4096,
                                 .dims = {64, 64},
                                 .strides = {128},
                                 .box = {64, 8},
                                 .steps = {1, 1},
                                 .swizzle = 3};
    its_sim_tensor t = good;
    assert_int_equal(its_sim_tensor_encode(k.ctx, &t, map), ITS_OK);
#define WRONG(change, message)                                              \
    t = good, change;                                                       \
    assert_int_equal(its_sim_tensor_encode(k.ctx, &t, map), ITS_ERR_INPUT); \
    assert_string_equal(kit_message(&k), "this tensor map " message)
    WRONG(t.rank = 0, "has a rank that is not 1 to 5");
    WRONG(t.rank = 6, "has a number that is too large");
    WRONG(t.type = 10, "has elements of a type that the simulator doesn't have");
    WRONG(t.address = 4104, "has a global address that is no multiple of 16");
    WRONG(t.dims[1] = 0, "has a dimension of 0 elements");
    WRONG(t.dims[0] = (uint64_t)1 << 33, "has a number that is too large");
    WRONG(t.strides[0] = 120, "has a stride that is no multiple of 16 bytes below 2^40");
    WRONG(t.box[1] = 257, "has a box of a dimension that is not 1 to 256 elements");
    WRONG(t.box[1] = 0, "has a box of a dimension that is not 1 to 256 elements");
    WRONG(t.steps[1] = 9, "has an element stride that is not 1 to 8");
    WRONG(t.box[0] = 60, "has a box whose innermost dimension is no multiple of 16 bytes");
    WRONG(t.box[0] = 72, "has a box whose innermost dimension is wider than its swizzle");
    WRONG(t.swizzle = 1, "has a box whose innermost dimension is wider than its swizzle");
    WRONG(t.swizzle = 4, "has a swizzle mode that the simulator doesn't have");
    WRONG(t.interleave = 1, "interleaves, which the simulator doesn't do");
    WRONG(t.fill = 2, "has a fill mode that does not exist");
    WRONG((t.swizzle = 0, t.box[0] = t.box[1] = 256, t.type = F64), "has a box larger than shared memory");
#undef WRONG
    kit_close(&k);
}

static void test_what_is_refused(void **state) {
    (void)state;
    static const char *const bodies[][2] = {
        {"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r10, %r11, %r12}], "
         "[%r2], {1};",
         "doesn't have 'cp' with '.im2col'"},
        {"cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r10, %r11, "
         "%r12, %r13, %r14}], [%r2];",
         "takes 2 coordinates but is given 5"},
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
        kit k;
        kit_open(&k);
        char text[4096];
        const its_sim_entry *entry;
        snprintf(text, sizeof(text), "%s%s%s", HEAD, bodies[i][0], "ret;\n}\n");
        kit_load(&k, text);
        assert_int_equal(its_sim_program_entry(k.ctx, k.program, "f", &entry), ITS_ERR_INPUT);
        if (!strstr(kit_message(&k), bodies[i][1])) fail_msg("reported: %s", kit_message(&k));
        kit_close(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads),      cmocka_unit_test(test_stores),
        cmocka_unit_test(test_reductions), cmocka_unit_test(test_replace),
        cmocka_unit_test(test_multicast),  cmocka_unit_test(test_bulk_multicast),
        cmocka_unit_test(test_faults),     cmocka_unit_test(test_wrong_byte_counts),
        cmocka_unit_test(test_limits),     cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests_name("sim/tensor", tests, NULL, NULL);
}
