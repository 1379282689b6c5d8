/* Instruction names: the tables' order, lookups, and what is read off a name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/intern.h"
#include "ptx/mnemonic.h"

static int setup(void **state) {
    *state = its_context_new(NULL);
    return *state ? 0 : -1;
}

static int teardown(void **state) {
    its_context_free(*state);
    return 0;
}

static const its_mnemonic *decode(void **state, const char *text) {
    its_context *ctx = *state;
    return its_mnemonic_of(ctx, its_intern(ctx, text, strlen(text)));
}

static void tables_are_sorted_and_found(void **state) {
    (void)state;
    for (unsigned mod = 1; mod < ITS_MOD_COUNT; mod++) {
        const char *text = its_mod_text((its_mod)mod);
        assert_int_equal(text[0], '.');
        if (mod > 1) assert_true(strcmp(its_mod_text((its_mod)(mod - 1)), text) < 0);
        assert_int_equal(its_mod_find(text, strlen(text)), mod);
    }
    for (unsigned op = 1; op < ITS_OP_COUNT; op++) {
        const char *text = its_op_text((its_op)op);
        assert_int_equal(its_op_find(text, strlen(text)), op);
    }
    assert_int_equal(its_op_find("ad", 2), ITS_OP_UNKNOWN);
    assert_int_equal(its_mod_find(".r", 2) != ITS_MOD_RN, true);
    assert_int_equal(its_mod_find("", 0), ITS_MOD_UNKNOWN);
}

static void decodes_types_spaces_and_vectors(void **state) {
    const its_mnemonic *m = decode(state, "ld.acquire.gpu.shared::cluster.L1::evict_last.v4.b32");
    assert_int_equal(m->op, ITS_OP_LD);
    assert_int_equal(m->n_mods, 6);
    assert_int_equal(m->vec, 4);
    assert_int_equal(m->space, ITS_SPACE_SHARED);
    assert_int_equal(its_mnemonic_type(m, 0), ITS_TYPE_B32);
    assert_int_equal(its_mnemonic_type(m, 1), ITS_TYPE_NONE);
    assert_int_equal(its_mnemonic_find(m, ITS_MODCLASS_SCOPE, 0), ITS_MOD_GPU);
    assert_int_equal(its_mnemonic_find(m, ITS_MODCLASS_SEMANTICS, 0), ITS_MOD_ACQUIRE);
    assert_false(m->unknown_mod);
    assert_string_equal(m->mod_names[3]->text, ".L1::evict_last");

    m = decode(state, "cvt.rn.satfinite.relu.e4m3x2.f32");
    assert_int_equal(m->n_types, 2);
    assert_int_equal(m->types[0], ITS_TYPE_B16);
    assert_int_equal(m->type_mods[0], ITS_MOD_E4M3X2);
    assert_int_equal(m->types[1], ITS_TYPE_F32);
    assert_int_equal(its_mnemonic_find(m, ITS_MODCLASS_ROUND, 0), ITS_MOD_RN);

    m = decode(state, "setp.lt.and.f32");
    assert_int_equal(its_mnemonic_compare(m), ITS_MOD_LT);
    assert_int_equal(its_mnemonic_operation(m), ITS_MOD_AND);

    m = decode(state, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes");
    assert_int_equal(m->space, ITS_SPACE_SHARED);
    assert_int_equal(m->space2, ITS_SPACE_GLOBAL);
    assert_true(its_mnemonic_has(m, ITS_MOD_MBARRIER_COMPLETE_TX_BYTES));

    m = decode(state, "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e5m2.f32.ue8m0");
    assert_int_equal(m->n_types, 5);
    assert_int_equal(m->type_mods[4], ITS_MOD_UE8M0);
    assert_int_equal(its_mnemonic_find(m, ITS_MODCLASS_SHAPE, 0), ITS_MOD_M16N8K32);
}

static void carries_the_unknown(void **state) {
    const its_mnemonic *m = decode(state, "frobnicate.rn.zonk.f32");
    assert_int_equal(m->op, ITS_OP_UNKNOWN);
    assert_true(m->unknown_mod);
    assert_int_equal(m->n_mods, 3);
    assert_string_equal(m->mod_names[1]->text, ".zonk");
    assert_int_equal(its_mnemonic_effects(m), UINT32_MAX);
    m = decode(state, "add.");
    assert_int_equal(m->op, ITS_OP_ADD);
    assert_true(m->unknown_mod);
    m = decode(state, ".f32");
    assert_int_equal(m->op, ITS_OP_UNKNOWN);
    char many[4000] = "add";
    for (size_t at = 3; at + 3 < sizeof many; at += 3) memcpy(many + at, ".rn", 4);
    m = decode(state, many);
    assert_int_equal(m->n_mods, 0);
    assert_true(m->unknown_mod);
}

static void remembers_what_it_decoded(void **state) {
    assert_ptr_equal(decode(state, "add.f32"), decode(state, "add.f32"));
}

static void effects_follow_modifiers(void **state) {
    assert_int_equal(its_mnemonic_effects(decode(state, "add.s32")), ITS_FX_PURE);
    assert_int_equal(its_mnemonic_effects(decode(state, "add.cc.u32")), ITS_FX_CARRY);
    assert_true(its_mnemonic_effects(decode(state, "bar.sync")) & ITS_FX_BARRIER);
    assert_false(its_mnemonic_effects(decode(state, "bar.warp.sync")) & ITS_FX_BARRIER);
    assert_true(its_mnemonic_effects(decode(state, "bar.warp.sync")) & ITS_FX_CONVERGENT);
    assert_true(its_mnemonic_effects(decode(state, "call.uni")) & ITS_FX_CALL);
}

/* -- the tables against each other --------------------------------------------------------------------------------- */

typedef struct set_row {
    const char *name, *words;
} set_row;

static const set_row sets[] = {
#define ITS_SET(name, words) {name, words},
#include "ptx/ptx_ops.def"
};

/* Marks the modifiers that the word stands for; false if there are none. */
static bool mark_word(const char *word, size_t size, bool *marked) {
    const char *gate = memchr(word, '<', size);
    if (gate) size = (size_t)(gate - word);
    if (*word == '@') {
        for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
            if (strlen(sets[i].name) != size || memcmp(sets[i].name, word, size) != 0) continue;
            bool all = true;
            for (const char *at = sets[i].words; *at; at += strspn(at, " ")) {
                size_t length = strcspn(at, " ");
                all &= mark_word(at, length, marked);
                at += length;
            }
            return all;
        }
        return false;
    }
    bool any = false;
    const char *star = memchr(word, '*', size);
    size_t head = star ? (size_t)(star - word) : size, tail = star ? size - head - 1 : 0;
    for (unsigned mod = 1; mod < ITS_MOD_COUNT; mod++) {
        const char *text = its_mod_text((its_mod)mod);
        size_t length = strlen(text);
        bool same = star ? length >= head + tail && memcmp(text + length - tail, word + size - tail, tail) == 0
                         : length == size;
        if (!same || memcmp(text, word, head) != 0) continue;
        marked[mod] = true;
        any = true;
    }
    return any;
}

/* Marks what the items in front of a form's colon name; returns what follows the colon. */
static const char *mark_items(const char *at, bool *marked) {
    for (;;) {
        at += strspn(at, " ");
        size_t size = strcspn(at, " ;");
        bool last = size && at[size - 1] == ':';
        size_t length = last ? size - 1 : size;
        if (length && at[length - 1] == '?') length--;
        if (*at != '<')
            for (size_t from = 0; from < length;) {
                const char *slash = memchr(at + from, '/', length - from);
                size_t word = slash ? (size_t)(slash - at) - from : length - from;
                if (!mark_word(at + from, word, marked)) fail_msg("'%.*s' is no modifier", (int)word, at + from);
                from += word + 1;
            }
        at += size;
        if (last) return at;
        if (!*at || *at == ';') fail_msg("a form without a colon, at '%s'", at - size);
    }
}

static void forms_and_modifiers_agree(void **state) {
    (void)state;
    bool marked[ITS_MOD_COUNT] = {false};
    for (unsigned op = 1; op < ITS_OP_COUNT; op++) {
        const char *at = its_op_pattern((its_op)op);
        while (*at) {
            at = mark_items(at, marked);
            at += strcspn(at, ";");
            at += *at == ';';
        }
    }
    for (unsigned mod = 1; mod < ITS_MOD_COUNT; mod++)
        if (!marked[mod]) printf("%s is in no form\n", its_mod_text((its_mod)mod));
    for (unsigned mod = 1; mod < ITS_MOD_COUNT; mod++) assert_true(marked[mod]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tables_are_sorted_and_found, setup, teardown),
        cmocka_unit_test_setup_teardown(decodes_types_spaces_and_vectors, setup, teardown),
        cmocka_unit_test_setup_teardown(carries_the_unknown, setup, teardown),
        cmocka_unit_test_setup_teardown(remembers_what_it_decoded, setup, teardown),
        cmocka_unit_test_setup_teardown(effects_follow_modifiers, setup, teardown),
        cmocka_unit_test(forms_and_modifiers_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
