/* Running a program to its end. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/diag.h"

extern char **environ;

enum { DEFAULT_MOST_OUTPUT = 64 << 20 };

typedef struct run_job {
    const its_process *process;
    its_buffer *output;
    int pipe;
    int64_t deadline; /* in ms; INT64_MAX: none */
    bool late;
    int error;
} run_job;

/* -- starting ------------------------------------------------------------------------------------------------------ */

/* A process group of its own, so that whatever it starts can be ended with it. */
static int start(const its_process *process, int out, pid_t *pid) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&files);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&files, out, 1);
        posix_spawn_file_actions_adddup2(&files, out, 2);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        error = posix_spawnp(pid, process->argv[0], &files, &attributes, (char *const *)process->argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

/* Waits for output until the deadline; false when there will be none. */
static bool wait_readable(run_job *job) {
    struct pollfd ready = {.fd = job->pipe, .events = POLLIN};
    for (;;) {
        int64_t left = job->deadline == INT64_MAX ? -1 : job->deadline - (int64_t)its_clock_ms();
        if (job->deadline != INT64_MAX && left <= 0) return job->late = true, false;
        int n = poll(&ready, 1, left > 1000000 ? 1000000 : (int)left);
        if (n > 0) return true;
        if (n < 0 && errno != EINTR) return job->error = errno, false;
    }
}

static its_status read_output(void *user) {
    run_job *job = user;
    size_t most = job->process->most_output ? job->process->most_output : DEFAULT_MOST_OUTPUT;
    char block[4096];
    while (wait_readable(job)) {
        ssize_t n = read(job->pipe, block, sizeof block);
        if (n == 0) break;
        if (n < 0 && errno != EINTR) return job->error = errno, ITS_OK;
        if (n > 0 && job->output->size < most) its_buffer_put(job->output, block, (size_t)n);
    }
    its_buffer_char(job->output, 0);
    job->output->size--;
    return ITS_OK;
}

/* A program may close its output and go on: the deadline holds for that as well. */
static bool wait_late(run_job *job, pid_t pid) {
    siginfo_t info;
    while (job->deadline != INT64_MAX && !job->late) {
        info.si_pid = 0;
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid) break;
        job->late = (int64_t)its_clock_ms() > job->deadline;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return job->late;
}

static int wait_end(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* -- both ---------------------------------------------------------------------------------------------------------- */

static its_status not_started(its_context *ctx, const char *program, int error) {
    its_status status = error == ENOENT ? ITS_ERR_ABSENT : ITS_ERR_IO;
    return its_fail(ctx, status, NULL, "the program '%s' can't be run: %s", program, strerror(error));
}

its_status its_process_run(its_context *ctx, const its_process *process, its_buffer *output, int *exit_code) {
    int ends[2];
    pid_t pid;
    const char *program = process->argv[0];
    output->size = 0;
    if (pipe2(ends, O_CLOEXEC)) return not_started(ctx, program, errno);
    int error = start(process, ends[1], &pid);
    close(ends[1]);
    run_job job = {.process = process, .output = output, .pipe = ends[0], .deadline = INT64_MAX};
    if (process->timeout_ms) job.deadline = (int64_t)its_clock_ms() + process->timeout_ms;
    its_status status = error ? ITS_OK : its_protect(ctx, read_output, &job);
    close(ends[0]);
    if (error) return not_started(ctx, program, error);
    if (status != ITS_OK || job.error || wait_late(&job, pid)) kill(-pid, SIGKILL);
    *exit_code = wait_end(pid);
    if (status != ITS_OK) return status;
    if (job.error) return not_started(ctx, program, job.error);
    if (job.late)
        return its_fail(ctx, ITS_ERR_IO, NULL, "'%s' was ended after %u ms without a result", program,
                        process->timeout_ms);
    return ITS_OK;
}
