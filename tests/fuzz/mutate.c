/*
 * How all targets change their inputs: mostly by whole lines and words, since bytes changed at random seldom leave PTX.
 * The rest, words of the dictionary among it, is libFuzzer's own.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

typedef struct span {
    size_t at, size;
} span;

/* A line, with its end, or a word. */
static span pick(const uint8_t *data, size_t size, unsigned *seed, bool word) {
    const char *separators = word ? " \t\n,;()[]{}" : "\n";
    size_t at = (size_t)rand_r(seed) % size, end;
    while (at > 0 && !strchr(separators, data[at - 1])) at--;
    for (end = at; end < size && !(data[end] && strchr(separators, data[end]));) end++;
    return (span){at, end - at + (!word && end < size)};
}

/* Replaces `to` by the bytes of `from`; the new size, or the old one if there is no room. */
static size_t replace(uint8_t *data, size_t size, size_t most, span to, span from) {
    if (size - to.size + from.size > most) return size;
    uint8_t *copy = malloc(from.size + 1);
    memcpy(copy, data + from.at, from.size);
    memmove(data + to.at + from.size, data + to.at + to.size, size - to.at - to.size);
    memcpy(data + to.at, copy, from.size);
    free(copy);
    return size - to.size + from.size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    if (size == 0 || rand_r(&seed) % 8 == 0) return LLVMFuzzerMutate(data, size, most);
    for (int times = rand_r(&seed) % 3; times >= 0 && size; times--) {
        bool word = rand_r(&seed) % 2;
        span from = pick(data, size, &seed, word), to = pick(data, size, &seed, word);
        int what = rand_r(&seed) % 4;
        if (what == 0) from.size = 0;        /* remove */
        if (what == 1 && !word) to.size = 0; /* insert */
        size = replace(data, size, most, to, from);
    }
    return size;
}
