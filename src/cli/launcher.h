/*
 * Starts the processes of a job, carries their output, and ends them together.
 *
 * One thread, one poll loop:
 *
 *     PE 0  out ─┐                     whole lines, each with "[pe 0] "
 *           err ─┼─► line buffers ─► sinks: standard output, standard error
 *     PE 1  out ─┤
 *           err ─┘    signalfd ─► children that ended; signals to pass on
 *
 * Each PE leads a process group of its own, so that what it started ends with it; processes that left their group are
 * adopted (the launcher is a subreaper) and ended too. PEs die with the launcher (PDEATHSIG), however it dies.
 */
#ifndef ITS_CLI_LAUNCHER_H
#define ITS_CLI_LAUNCHER_H

#include "cli/cli.h"

enum { CLI_LONGEST_LINE = 1 << 20 }; /* bytes; a longer one is broken, so that no PE can fill the memory */

typedef struct cli_job {
    char *const *argv; /* the program and its arguments */
    uint32_t n_pes;
    bool prefix;                            /* else lines are passed on as they are */
    uint32_t grace_ms;                      /* between asking a process to end and killing it */
    uint64_t limit_ms;                      /* for the whole job; 0: none */
    void (*enter)(uint32_t pe, void *user); /* in the new process, before the program: sets its environment */
    /*
     * When a PE has failed: milliseconds in which the others may end by themselves, to say what they know. May be NULL.
     */
    uint32_t (*linger)(void *user);
    void *user;
} cli_job;

typedef struct cli_outcome {
    bool failed;
    uint32_t pe;     /* the first that failed */
    int wait_status; /* its, as waitpid gives it */
    bool stopped;    /* others were still running and were ended */
    int signal;      /* the signal that was passed on to all PEs, or 0 */
    bool timed_out;
    bool reader_gone; /* nobody reads standard output any more */
} cli_outcome;

/* Runs the job to its end. ITS_OK if it ran, whatever came of it; else a diagnostic says why it could not start. */
its_status cli_launch(cli_app *app, const cli_job *job, cli_outcome *outcome);

#endif
