/*
 * Every cell of cells.txt: what the simulator computes must hash to what a GPU computed. A second argument is a file
 * for all results, to be compared with what hardware/cells_cuda.c writes.
 */
#include "cells.h"
#include "kit.h"

static FILE *dump;

static void run_cell(kit *k, const cell *c, unsigned char *in, unsigned char *out) {
    char kernel[4096];
    cell_kernel(c, kernel, sizeof(kernel));
    kit_load(k, kernel);
    memset(out, 0, (size_t)CELL_COUNT * CELL_OUT);
    cell_inputs(c, in);
    kit_launch l = {"cell", CELL_COUNT / CELL_BLOCK, CELL_BLOCK, 0, {kit_address(in), kit_address(out)}};
    if (kit_make_grid(k, &l) != ITS_OK) {
        if (dump) print_message("refused: %s\n", kit_message(k));
        return;
    }
    assert_int_equal(kit_finish(k, 1000000, 100), ITS_SIM_DONE);
}

/* All cells on one copy of the loop. */
static void check_cells(uint32_t isa) {
    kit k;
    kit_open(&k);
    k.machine.isa = isa + 1;
    FILE *file = fopen(ITS_SOURCE_DIR "/tests/sim/cells.txt", "r");
    assert_non_null(file);
    unsigned char *in = kit_alloc(&k, (size_t)CELL_COUNT * CELL_SLOT),
                  *out = kit_alloc(&k, (size_t)CELL_COUNT * CELL_OUT);
    char line[1024];
    unsigned count = 0, wrong = 0;
    while (fgets(line, sizeof(line), file)) {
        cell c;
        if (!cell_parse(line, &c)) continue;
        run_cell(&k, &c, in, out);
        if (dump) fwrite(out, (size_t)CELL_COUNT * CELL_OUT, 1, dump);
        if (!c.has_hash) continue;
        count++;
        if (cell_hash(out) == c.hash) continue;
        wrong++;
        print_message("%s differs from the GPU: %s\n", its_sim_isa_name(isa), c.ptx);
    }
    fclose(file);
    assert_true(count > 1000);
    assert_int_equal(wrong, 0);
    kit_free(&k, in);
    kit_free(&k, out);
    kit_close(&k);
}

static void test_cells(void **state) {
    (void)state;
    for (uint32_t isa = 0; its_sim_isa_name(isa); isa++) check_cells(isa);
}

int main(int argc, char **argv) {
    dump = argc > 1 ? fopen(argv[1], "wb") : NULL;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cells)};
    return cmocka_run_group_tests_name("sim/cells", tests, NULL, NULL);
}
