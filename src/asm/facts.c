/* What is known of CUDA versions and architectures: the little that has to be said before an assembler is run. */
#include <stdlib.h>
#include <string.h>

#include "asm/asm.h"

uint32_t its_asm_arch_number(const char *arch) {
    if (strncmp(arch, "sm_", 3) != 0) return 0;
    char *end;
    unsigned long number = strtoul(arch + 3, &end, 10);
    if (*end == 'a' || *end == 'f') end++;
    return *end == 0 && number < 1000 ? (uint32_t)number : 0;
}

/* Releases 12.6 to 12.9 lag one behind: 12.5 and 12.6 have the same PTX. */
void its_asm_isa_of_cuda(uint32_t cuda_major, uint32_t cuda_minor, uint32_t *major, uint32_t *minor) {
    *major = cuda_major >= 11 ? cuda_major - 4 : 6;
    *minor = cuda_major == 12 && cuda_minor > 5 ? cuda_minor - 1 : cuda_minor;
}

uint32_t its_asm_cuda_of_arch(uint32_t number) {
    static const struct {
        uint32_t number, cuda;
    } known[] = {
        {80, 110},  {86, 111},  {87, 114},  {88, 130},  {89, 118},  {90, 118},
        {100, 128}, {101, 128}, {103, 129}, {110, 130}, {120, 128}, {121, 129},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].number == number) return known[i].cuda;
    return 0;
}
