/* Runs a target once on every input in some folders: those that were found to fail must not fail again. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_input(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static int replay(const char *path) {
    FILE *file = fopen(path, "rb");
    static uint8_t data[1 << 20];
    if (!file) return 1;
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    /* a block of just this size, so that reading past its end is seen */
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact) return 1;
    for (size_t i = 0; i < size; i++) exact[i] = data[i];
    printf("%s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 0;
}

static int replay_folder(const char *folder) {
    struct dirent **entries;
    int count = scandir(folder, &entries, is_input, alphasort), failed = 0;
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        failed |= replay(path);
        free(entries[i]);
    }
    if (count > 0) free(entries);
    if (count <= 0) fprintf(stderr, "%s: there is no input\n", folder);
    return failed || count <= 0;
}

int main(int argc, char **argv) {
    int failed = argc < 2;
    for (int i = 1; i < argc; i++) failed |= replay_folder(argv[i]);
    return failed;
}
