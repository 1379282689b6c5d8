#include "cli/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/children.h"
#include "cli/lines.h"

typedef struct pe {
    pid_t pid; /* 0 once it has ended */
    cli_stream out, err;
} pe;

typedef struct launcher {
    cli_app *app;
    const cli_job *job;
    cli_outcome *outcome;
    pe *pes;
    uint32_t running;
    bool own_groups;   /* false for a lone PE on a terminal, which keeps the terminal's group */
    bool carried;      /* output goes through us */
    int signals;       /* signalfd */
    sigset_t old_mask; /* for the PEs */
    cli_sink out, err;
    struct pollfd *polls;
    uint64_t kill_at, stop_at, ask_at; /* milliseconds of the monotonic clock; 0: not set */
    bool killed;
} launcher;

/* -- ending PEs ---------------------------------------------------------------------------------------------------- */

static void signal_pes(launcher *l, int number) {
    for (uint32_t i = 0; i < l->job->n_pes; i++)
        if (l->pes[i].pid) kill(l->own_groups ? -l->pes[i].pid : l->pes[i].pid, number);
}

/* Asks all PEs to end, and sets the time at which they will be made to. */
static void stop_pes(launcher *l, int number) {
    signal_pes(l, number);
    if (!l->kill_at) l->kill_at = its_clock_ms() + l->job->grace_ms;
}

static void stop_others(launcher *l) {
    l->outcome->stopped = true;
    stop_pes(l, SIGTERM);
}

static void pe_ended(launcher *l, uint32_t i, int status) {
    pid_t pid = l->pes[i].pid;
    l->pes[i].pid = 0;
    l->running--;
    if (l->own_groups) kill(-pid, SIGTERM); /* what it has left behind */
    if (status == 0 || l->outcome->failed) return;
    l->outcome->failed = true;
    l->outcome->pe = i;
    l->outcome->wait_status = status;
    if (l->running == 0 || l->kill_at) return;
    uint32_t linger = l->job->linger ? l->job->linger(l->job->user) : 0;
    if (linger)
        l->ask_at = its_clock_ms() + linger;
    else
        stop_others(l);
}

static void reap(launcher *l) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (uint32_t i = 0; i < l->job->n_pes; i++)
            if (l->pes[i].pid == pid) pe_ended(l, i, status);
}

/* -- signals ------------------------------------------------------------------------------------------------------- */

/* A terminal sends its signals to our whole group: a PE that is in it has had them already. */
static bool already_sent(const launcher *l, const struct signalfd_siginfo *info) {
    return !l->own_groups && info->ssi_code == SI_KERNEL;
}

static void pass_on(launcher *l, const struct signalfd_siginfo *info) {
    int number = (int)info->ssi_signo;
    if (l->outcome->signal == SIGINT && number == SIGINT)
        number = SIGKILL; /* asked twice */
    else
        l->outcome->signal = number;
    if (already_sent(l, info) && number != SIGKILL)
        l->kill_at = its_clock_ms() + l->job->grace_ms;
    else
        stop_pes(l, number);
}

static void suspend(launcher *l) {
    if (l->own_groups) signal_pes(l, SIGSTOP);
    raise(SIGSTOP);
    if (l->own_groups) signal_pes(l, SIGCONT);
}

static void read_signals(launcher *l) {
    struct signalfd_siginfo info;
    while (read(l->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            reap(l);
        else if (info.ssi_signo == SIGTSTP)
            suspend(l);
        else
            pass_on(l, &info);
    }
}

static its_status open_signals(launcher *l) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGTSTP);
    sigprocmask(SIG_BLOCK, &set, &l->old_mask);
    signal(SIGPIPE, SIG_IGN);
    l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (l->signals < 0) return its_fail(l->app->ctx, ITS_ERR_IO, NULL, "can't wait for signals: %s", strerror(errno));
    return ITS_OK;
}

/* -- starting ------------------------------------------------------------------------------------------------------ */

typedef struct pipes {
    int out[2], err[2], failure[2];
} pipes;

/* In the new process. What goes wrong is told through `failure`, which closes by itself when the program starts. */
static _Noreturn void become_pe(launcher *l, uint32_t i, const pipes *p, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127); /* it died before that */
    if (l->own_groups) setpgid(0, 0);
    if (l->carried) {
        dup2(p->out[1], STDOUT_FILENO);
        dup2(p->err[1], STDERR_FILENO);
    }
    if (l->job->n_pes > 1) {
        int nothing = open("/dev/null", O_RDONLY);
        if (nothing > 0) dup2(nothing, STDIN_FILENO), close(nothing);
    }
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &l->old_mask, NULL);
    l->job->enter(i, l->job->user);
    execvp(l->job->argv[0], l->job->argv);
    int error = errno;
    if (write(p->failure[1], &error, sizeof error) < 0) _exit(126);
    _exit(127);
}

static void close_pair(int pair[2]) {
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0) close(pair[i]);
}

static bool open_pipes(launcher *l, pipes *p) {
    *p = (pipes){{-1, -1}, {-1, -1}, {-1, -1}};
    if (pipe2(p->failure, O_CLOEXEC) != 0) return false;
    if (!l->carried) return true;
    return pipe2(p->out, O_CLOEXEC) == 0 && pipe2(p->err, O_CLOEXEC) == 0;
}

/* Waits until the program has started: 0, or the error that kept it from it. */
static int await_start(int failure) {
    int error = 0;
    ssize_t n;
    do n = read(failure, &error, sizeof error);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof error ? error : 0;
}

static its_status start_failed(launcher *l, int error) {
    return its_fail(l->app->ctx, ITS_ERR_ABSENT, NULL, "can't start '%s': %s", l->job->argv[0], strerror(error));
}

static its_status start_pe(launcher *l, uint32_t i) {
    pipes p;
    pid_t parent = getpid();
    pid_t pid = open_pipes(l, &p) ? fork() : -1;
    if (pid == 0) become_pe(l, i, &p, parent);
    int error = errno;
    if (pid > 0) {
        if (l->own_groups) setpgid(pid, pid); /* here as well: whoever comes first */
        l->pes[i].pid = pid;
        l->running++;
        close(p.failure[1]), p.failure[1] = -1;
        error = await_start(p.failure[0]);
        if (l->carried) {
            cli_stream_init(&l->pes[i].out, l->app, &l->out, p.out[0], i, l->job->prefix);
            cli_stream_init(&l->pes[i].err, l->app, &l->err, p.err[0], i, l->job->prefix);
            p.out[0] = p.err[0] = -1;
        }
    }
    close_pair(p.out), close_pair(p.err), close_pair(p.failure);
    return error == 0 ? ITS_OK : start_failed(l, error);
}

static its_status start_pes(launcher *l) {
    for (uint32_t i = 0; i < l->job->n_pes; i++) l->pes[i].out.fd = l->pes[i].err.fd = -1;
    for (uint32_t i = 0; i < l->job->n_pes; i++) {
        its_status status = start_pe(l, i);
        if (status == ITS_OK) continue;
        signal_pes(l, SIGKILL);
        return status;
    }
    return ITS_OK;
}

/* -- the loop ------------------------------------------------------------------------------------------------------ */

/* Fills `polls`: signals, the two sinks, then every stream that has room to be read. Returns how many. */
static nfds_t fill_polls(launcher *l) {
    nfds_t n = 0;
    l->polls[n++] = (struct pollfd){l->signals, POLLIN, 0};
    l->polls[n++] = (struct pollfd){cli_sink_pending(&l->out) ? l->out.fd : -1, POLLOUT, 0};
    l->polls[n++] = (struct pollfd){cli_sink_pending(&l->err) ? l->err.fd : -1, POLLOUT, 0};
    for (uint32_t i = 0; i < l->job->n_pes; i++) {
        l->polls[n++] = (struct pollfd){cli_stream_wants(&l->pes[i].out) ? l->pes[i].out.fd : -1, POLLIN, 0};
        l->polls[n++] = (struct pollfd){cli_stream_wants(&l->pes[i].err) ? l->pes[i].err.fd : -1, POLLIN, 0};
    }
    return n;
}

/* One round; returns how many descriptors had something. */
static int turn(launcher *l, int timeout) {
    int ready = poll(l->polls, fill_polls(l), timeout);
    if (ready <= 0) return 0;
    if (l->polls[1].revents) cli_sink_write(&l->out);
    if (l->polls[2].revents) cli_sink_write(&l->err);
    for (uint32_t i = 0; i < l->job->n_pes; i++) {
        if (l->polls[3 + 2 * i].revents) cli_stream_read(&l->pes[i].out);
        if (l->polls[4 + 2 * i].revents) cli_stream_read(&l->pes[i].err);
    }
    if (l->polls[0].revents) read_signals(l); /* last: what an ended PE has written is read first */
    return ready;
}

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a && (!b || a < b) ? a : b;
}

static int until(uint64_t a, uint64_t b) {
    uint64_t first = earlier(a, b), now = its_clock_ms();
    if (!first) return -1;
    return first <= now ? 0 : (int)(first - now < 60000 ? first - now : 60000);
}

static void check_clock(launcher *l) {
    uint64_t now = its_clock_ms();
    if (l->ask_at && now >= l->ask_at) {
        l->ask_at = 0;
        stop_others(l);
    }
    if (l->stop_at && now >= l->stop_at) {
        l->stop_at = 0;
        l->outcome->timed_out = true;
        stop_pes(l, SIGTERM);
    }
    if (l->kill_at && now >= l->kill_at && !l->killed) {
        l->killed = true;
        signal_pes(l, SIGKILL);
    }
}

static void check_reader(launcher *l) {
    if (!l->out.broken || l->outcome->reader_gone) return;
    l->outcome->reader_gone = true;
    stop_pes(l, SIGTERM);
}

static void run_pes(launcher *l) {
    if (l->job->limit_ms) l->stop_at = its_clock_ms() + l->job->limit_ms;
    reap(l); /* one may have ended before the signals were waited for */
    while (l->running > 0) {
        turn(l, until(earlier(l->killed ? 0 : l->kill_at, l->ask_at), l->stop_at));
        check_clock(l);
        check_reader(l);
    }
}

/*
 * Carries what is left to carry, after the last process has ended. A pipe that has neither data nor an end then is held
 * by somebody who got away; it is not waited for. A signal gives up on a reader that doesn't read.
 */
static void drain(launcher *l) {
    l->outcome->signal = 0;
    bool pending = true, open = l->carried;
    while ((pending || open) && l->outcome->signal == 0) {
        pending = cli_sink_pending(&l->out) || cli_sink_pending(&l->err);
        if (turn(l, pending ? -1 : 0) == 0) open = false;
    }
    for (uint32_t i = 0; l->carried && i < l->job->n_pes; i++) {
        cli_stream_close(&l->pes[i].out);
        cli_stream_close(&l->pes[i].err);
    }
    while (cli_sink_pending(&l->out) || cli_sink_pending(&l->err)) {
        if (l->outcome->signal) return;
        turn(l, -1);
    }
}

its_status cli_launch(cli_app *app, const cli_job *job, cli_outcome *outcome) {
    launcher l = {.app = app, .job = job, .outcome = outcome, .own_groups = job->n_pes > 1 || !isatty(STDIN_FILENO)};
    *outcome = (cli_outcome){0};
    l.carried = job->n_pes > 1;
    l.pes = ITS_NEW_ARRAY(&app->arena, pe, job->n_pes);
    l.polls = ITS_NEW_ARRAY(&app->arena, struct pollfd, 3 + 2 * (size_t)job->n_pes);
    cli_sink_init(&l.out, app, STDOUT_FILENO);
    cli_sink_init(&l.err, app, STDERR_FILENO);
    its_status status = open_signals(&l);
    if (status != ITS_OK) return status;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    status = start_pes(&l);
    run_pes(&l);
    cli_end_children(job->grace_ms);
    int signal_before = outcome->signal;
    drain(&l);
    if (signal_before) outcome->signal = signal_before;
    close(l.signals);
    cli_sink_free(&l.out);
    cli_sink_free(&l.err);
    return status;
}
