/* Programs that go wrong, one mistake each, named by the first argument; what they print is checked by test_host.c. */
#include <nvshmem.h>
#include <nvshmemx.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void early(void) {
    nvshmem_barrier_all();
}

static void not_symmetric(void) {
    static int word;
    nvshmem_init();
    nvshmem_int_p(&word, 1, 0);
}

static void no_such_pe(void) {
    nvshmem_init();
    int *word = nvshmem_malloc(4);
    nvshmem_int_p(word, 1, nvshmem_n_pes());
}

static void beyond(void) {
    nvshmem_init();
    int *word = nvshmem_malloc(4);
    nvshmem_int_put(word, word, 2, 0);
}

static void mismatch(void) {
    nvshmem_init();
    nvshmem_malloc(nvshmem_my_pe() ? 64 : 128);
}

static void aligned_too_far(void) {
    nvshmem_init();
    nvshmem_align((size_t)1 << 22, 64);
}

static void twice_freed(void) {
    nvshmem_init();
    void *block = nvshmem_malloc(64);
    nvshmem_free(block);
    nvshmem_free(block);
}

static void dies(void) {
    nvshmem_init();
    nvshmem_barrier_all();
    if (nvshmem_my_pe() == 1) {
        usleep(20000);
        kill(getpid(), SIGKILL);
    }
    nvshmem_barrier_all();
}

static void wrong_rank(void) {
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_get_uniqueid(&id);
    nvshmemx_set_attr_uniqueid_args(5, 9, &id, &attr);
    nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"early", early},   {"not_symmetric", not_symmetric}, {"no_such_pe", no_such_pe},
                 {"beyond", beyond}, {"mismatch", mismatch},           {"twice_freed", twice_freed},
                 {"dies", dies},     {"wrong_rank", wrong_rank},       {"aligned_too_far", aligned_too_far}};
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0) cases[i].run();
    return 0; /* not reached when the mistake was noticed */
}
