/*
 * Kernel arguments written on the command line:
 *
 *     i32:-5 u64:0x10 f32:1.5 f16:0.25 bf16:1 f64:1e-3      scalars; b8 to b64 are bits
 *     raw:FILE                                             the bytes of FILE: a struct by value
 *     buf:FILE  inout:FILE  out:BYTES:FILE  zero:BYTES      memory; the kernel gets its address
 */
#ifndef ITS_CLI_ARGUMENTS_H
#define ITS_CLI_ARGUMENTS_H

#include "cli/cli.h"

typedef struct cli_argument {
    const char *text; /* as given */
    bool memory;      /* the value is the address of `data`, copied to the device */
    uint32_t value_size;
    uint64_t scalar;   /* little endian, as a kernel parameter lies in memory */
    const void *value; /* what the kernel gets: &scalar, or the bytes of raw: */
    char *data;        /* memory: what is in it at the start; NULL: zeros */
    size_t size;
    const char *output; /* memory: the file it is written to afterwards, or NULL */
} cli_argument;

/* Reads one; false after a diagnostic. `data` and raw bytes live until the program ends. */
bool cli_argument_parse(cli_app *app, const char *text, cli_argument *argument);

/* IEEE half and bfloat16 of a double, rounded once to the nearest, ties to even. */
uint16_t cli_to_f16(double value);
uint16_t cli_to_bf16(double value);

#endif
