/* Running a program to its end: no shell, no standard input, its output in a buffer. */
#ifndef ITS_BASE_PROCESS_H
#define ITS_BASE_PROCESS_H

#include "base/buffer.h"

typedef struct its_process {
    const char *const *argv; /* NULL at the end; argv[0] is searched in PATH unless it has a slash */
    uint32_t timeout_ms;     /* 0: none */
    size_t most_output;      /* 0: 64 MiB; what is beyond is read and dropped */
} its_process;

/*
 * Runs it. `output` gets what the program wrote to standard output and error, NUL-terminated (the NUL is not counted),
 * and `exit_code` its exit status, or 128 plus the signal that ended it. ITS_ERR_ABSENT if there is no such program,
 * ITS_ERR_IO if it can't be run or passed its time, each with a diagnostic. That it exits with another status than 0 is
 * no error here.
 */
its_status its_process_run(its_context *ctx, const its_process *process, its_buffer *output, int *exit_code);

#endif
