/* intarsia run: a program on several PEs, each a process of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/launcher.h"
#include "cli/python.h"
#include "intarsia/sim.h"

enum { MOST_PES = 64, GRACE_S = 5, TELL_MS = 2000, TIMED_OUT = 124 };

typedef struct run_args {
    bool sim, no_prefix;
    cli_number n_pes, timeout, grace, heap_size;
    const char *wait_limit;
    const char *arch, *check;
} run_args;

static const cli_option options[] = {
    {0, "sim", NULL, CLI_FLAG, offsetof(run_args, sim),
     "on the simulator, which needs no GPU; without it on GPUs,\nwhich PEs share if there are fewer of them"},
    {'n', "pes", "N", CLI_COUNT, offsetof(run_args, n_pes), "how many PEs, 1 to 64 (default 1)"},
    {0, "arch", "SM", CLI_TEXT, offsetof(run_args, arch), "the GPU that is simulated: sm_80 (default), sm_90a ..."},
    {0, "check", "races", CLI_TEXT, offsetof(run_args, check),
     "also look for races: accesses to the same memory that\nnothing orders (slower, see docs/simulator.md)"},
    {0, "heap-size", "BYTES", CLI_SIZE, offsetof(run_args, heap_size),
     "symmetric heap of each PE, e.g. 512M (default 1G; only what is used takes memory)"},
    {0, "timeout", "SECONDS", CLI_COUNT, offsetof(run_args, timeout),
     "end all PEs after this time, with exit code 124"},
    {0, "wait-limit", "SECONDS", CLI_TEXT, offsetof(run_args, wait_limit),
     "on GPUs: end a kernel that waits for memory to change for\nlonger, and say at which line for what value"},
    {0, "grace", "SECONDS", CLI_COUNT, offsetof(run_args, grace),
     "how long a PE that is asked to end may take before it is\nkilled (default 5)"},
    {0, "no-prefix", NULL, CLI_FLAG, offsetof(run_args, no_prefix), "don't put [pe K] in front of every line"},
};

static const char text[] =
    "SCRIPT.py is run by Python once per PE: by $INTARSIA_PYTHON if that is set, else by the .venv next to this\n"
    "program, else by python3. A SCRIPT that doesn't end in .py is a program of its own and is started itself.\n"
    "What follows SCRIPT is passed to it.\n"
    "\n"
    "Each process finds its place in RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE, as under torchrun, and in\n"
    "INTARSIA_PE and INTARSIA_N_PES. With more than one PE, every line it prints is prefixed with its number, and\n"
    "its standard input is empty.\n"
    "\n"
    "The first PE that fails ends all others, with everything they started, and its exit code is that of the\n"
    "command (128 + N if signal N killed it). SIGINT, SIGTERM and SIGHUP are passed on to all.\n"
    "\n"
    "examples:\n"
    "  intarsia run --sim -n 4 examples/01-simple-shift/simple-shift.py\n"
    "  intarsia run --sim -n 2 --heap-size 4G --timeout 60 train.py --steps 10\n";

/* -- what to start ------------------------------------------------------------------------------------------------- */

/* The command of one PE, or NULL after a diagnostic. */
static char *const *build_argv(cli_app *app, const cli_list *operands) {
    const char *script = operands->items[0];
    struct stat info;
    if (stat(script, &info) != 0) {
        cli_usage(app, "the first word after the options is the program that every PE runs", "there is no script '%s'",
                  script);
        return NULL;
    }
    if (S_ISDIR(info.st_mode)) {
        cli_usage(app, NULL, "'%s' is a folder; name the script in it", script);
        return NULL;
    }
    cli_list argv = {0};
    if (cli_has_suffix(script, ".py")) {
        const char *python = cli_find_python(app);
        if (!python) return NULL;
        cli_use_own_package(app);
        ITS_PUSH(&app->arena, &argv, python);
    } else if (access(script, X_OK) != 0) {
        cli_usage(app, "a Python script's name ends in .py; another program must be executable (chmod +x)",
                  "'%s' is neither a Python script nor a program", script);
        return NULL;
    } else if (!strchr(script, '/')) {
        script = its_arena_printf(&app->arena, "./%s", script);
    }
    ITS_PUSH(&app->arena, &argv, script);
    for (size_t i = 1; i < operands->count; i++) ITS_PUSH(&app->arena, &argv, operands->items[i]);
    ITS_PUSH(&app->arena, &argv, NULL);
    return (char *const *)(uintptr_t)argv.items;
}

/* -- the world ----------------------------------------------------------------------------------------------------- */

static void set_number(const char *name, uint64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    setenv(name, digits, 1);
}

typedef struct world {
    int fd; /* of the simulated world, or of the file that PEs on GPUs find each other by */
    uint32_t n_pes;
    bool sim;
    uint64_t heap_size;     /* 0: the default */
    const char *wait_limit; /* or NULL */
} world;

/* In the new process: tells it which PE of which world it is. */
static void enter_world(uint32_t pe, void *user) {
    const world *w = user;
    if (w->sim) {
        setenv("INTARSIA_BACKEND", "sim", 1);
        set_number("INTARSIA_SIM_FD", (uint64_t)w->fd);
        unsetenv("INTARSIA_RENDEZVOUS_FD");
    } else {
        setenv("INTARSIA_BACKEND", "cuda", 1);
        unsetenv("INTARSIA_SIM_FD");
        set_number("INTARSIA_RENDEZVOUS_FD", (uint64_t)w->fd);
        if (w->wait_limit) setenv("INTARSIA_WAIT_LIMIT", w->wait_limit, 1);
        if (w->heap_size) set_number("NVSHMEM_SYMMETRIC_SIZE", w->heap_size);
    }
    set_number("INTARSIA_PE", pe);
    set_number("INTARSIA_N_PES", w->n_pes);
    set_number("RANK", pe);
    set_number("LOCAL_RANK", pe);
    set_number("WORLD_SIZE", w->n_pes);
    set_number("LOCAL_WORLD_SIZE", w->n_pes);
    setenv("PYTHONUNBUFFERED", "1", 0);   /* lines appear when they are printed, also through our pipe */
    setenv("PYTHONFAULTHANDLER", "1", 0); /* a crash in a host file says which line of Python called it */
}

/* In a deadlock every PE says what it waits for. */
static uint32_t linger(void *user) {
    const world *w = user;
    return w->sim && its_sim_world_stuck(w->fd) ? TELL_MS : 0;
}

/* sm_80 -> 8, 0; sm_90a -> 9, 0; sm_120 -> 12, 0 */
static bool parse_arch(const char *arch, its_sim_options *sim) {
    char *end;
    if (strncmp(arch, "sm_", 3) != 0 || arch[3] < '1' || arch[3] > '9') return false;
    unsigned long number = strtoul(arch + 3, &end, 10);
    bool suffix = *end == 0 || ((*end == 'a' || *end == 'f') && end[1] == 0);
    if (!suffix || number < 50 || number > 999) return false;
    sim->compute_major = (uint32_t)(number / 10);
    sim->compute_minor = (uint32_t)(number % 10);
    return true;
}

/* -- the end ------------------------------------------------------------------------------------------------------- */

static const char *how_it_ended(cli_app *app, int status) {
    if (WIFEXITED(status)) return its_arena_printf(&app->arena, "exited with code %d", WEXITSTATUS(status));
    int number = WTERMSIG(status);
    return its_arena_printf(&app->arena, "was killed by signal %d (%s)", number, strsignal(number));
}

static int exit_code(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Says what went wrong, and returns the exit code. */
static int conclude(cli_app *app, const run_args *args, uint32_t n_pes, const cli_outcome *o) {
    if (o->timed_out) {
        its_fail(app->ctx, ITS_ERR_FAULT, "--timeout sets the limit", "not finished after %u s; all PEs were stopped",
                 (unsigned)args->timeout.value);
        return TIMED_OUT;
    }
    if (o->reader_gone && (!o->failed || o->stopped || WIFSIGNALED(o->wait_status))) return 128 + SIGPIPE;
    if (!o->failed) return CLI_OK;
    const char *ended = how_it_ended(app, o->wait_status);
    if (o->signal)
        its_fail(app->ctx, ITS_ERR_FAULT, NULL, "stopped by signal %d (%s)", o->signal, strsignal(o->signal));
    else if (o->stopped)
        its_fail(app->ctx, ITS_ERR_FAULT, NULL, "PE %u %s; the others were stopped", (unsigned)o->pe, ended);
    else if (n_pes > 1 || WIFSIGNALED(o->wait_status))
        its_fail(app->ctx, ITS_ERR_FAULT, NULL, "PE %u %s", (unsigned)o->pe, ended);
    return exit_code(o->wait_status);
}

static bool is_time(const char *word) {
    char *end;
    double seconds = strtod(word, &end);
    return end != word && *end == 0 && seconds >= 1e-6 && seconds <= 1e9;
}

static int check_args(cli_app *app, const run_args *args, const cli_list *operands, its_sim_options *sim) {
    if (operands->count == 0)
        return cli_usage(app, "for example: intarsia run --sim -n 4 SCRIPT.py", "no script given");
    if (args->n_pes.given && (args->n_pes.value < 1 || args->n_pes.value > MOST_PES))
        return cli_usage(app, NULL, "-n takes 1 to %d PEs, not %llu", MOST_PES, (unsigned long long)args->n_pes.value);
    if (args->grace.value > 3600) return cli_usage(app, NULL, "--grace takes at most 3600 seconds");
    if (args->timeout.given && args->timeout.value == 0)
        return cli_usage(app, "leave it away for no limit", "--timeout takes at least 1 second");
    if (args->wait_limit && args->sim)
        return cli_usage(app, "leave it away: a deadlock ends the run by itself there", "--wait-limit is for GPUs");
    if (args->wait_limit && !is_time(args->wait_limit))
        return cli_usage(app, NULL, "--wait-limit takes seconds, as 5 or 0.5, not '%s'", args->wait_limit);
    if (args->arch && !parse_arch(args->arch, sim))
        return cli_usage(app, NULL, "--arch takes an architecture such as sm_80 or sm_90a, not '%s'", args->arch);
    if (args->check && strcmp(args->check, "races") != 0)
        return cli_usage(app, NULL, "--check takes 'races', not '%s'", args->check);
    if (!args->sim && args->check)
        return cli_usage(app, "add --sim to run on the simulator", "--check is for simulated GPUs");
    sim->find_races = args->check != NULL;
    if (!args->sim && args->arch)
        return cli_usage(app, "add --sim to run on the simulator", "--arch is for simulated GPUs");
    return CLI_OK;
}

/* A file without a name, in which one PE tells the others how to find it. */
static its_status make_rendezvous(cli_app *app, int *fd) {
    *fd = memfd_create("intarsia-rendezvous", 0);
    if (*fd >= 0 && ftruncate(*fd, 4096) == 0) return ITS_OK;
    return its_fail(app->ctx, ITS_ERR_IO, NULL, "can't make a file for PEs to meet at: %s", strerror(errno));
}

static int run(cli_app *app, const void *user, const cli_list *operands) {
    const run_args *args = user;
    its_sim_options sim = {.n_pes = args->n_pes.given ? (uint32_t)args->n_pes.value : 1};
    sim.heap_size = args->heap_size.value;
    int code = check_args(app, args, operands, &sim);
    if (code) return code;
    char *const *argv = build_argv(app, operands);
    if (!argv) return CLI_USAGE;
    world w = {
        .n_pes = sim.n_pes, .sim = args->sim, .heap_size = args->heap_size.value, .wait_limit = args->wait_limit};
    its_status status = args->sim ? its_sim_world_new(app->ctx, &sim, &w.fd) : make_rendezvous(app, &w.fd);
    if (status != ITS_OK) return cli_status(status);
    cli_job job = {.argv = argv,
                   .n_pes = sim.n_pes,
                   .prefix = !args->no_prefix,
                   .grace_ms = 1000 * (args->grace.given ? (uint32_t)args->grace.value : GRACE_S),
                   .limit_ms = args->timeout.value * 1000,
                   .enter = enter_world,
                   .linger = linger,
                   .user = &w};
    cli_outcome outcome;
    status = cli_launch(app, &job, &outcome);
    close(w.fd);
    return status == ITS_OK ? conclude(app, args, sim.n_pes, &outcome) : cli_status(status);
}

const cli_command cli_run = {
    .name = "run",
    .usage = "[--sim] [-n N] [OPTIONS] SCRIPT.py [ARGUMENTS]",
    .summary = "run a program on several PEs",
    .text = text,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_size = sizeof(run_args),
    .first_ends = true,
    .run = run,
};
