/* intarsia doctor: what was found on this machine, and what would fail. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/python.h"
#include "intarsia/rt.h"

typedef struct doctor_args {
    char unused;
} doctor_args;

static const char text[] =
    "Lists libraries and tools, where each was found and why there, their versions and whether they fit together,\n"
    "the GPUs, and what processes need to share memory. Each thing that would fail is one sentence. docs/gpus.md\n"
    "has the environment variables that choose.\n"
    "\n"
    "The exit code is 1 if something would fail: without a GPU that is so, and only the simulator runs.\n";

static const char packages[] = "import os, sys\n"
                               "there = lambda path, name: os.path.isdir(os.path.join(path, name))\n"
                               "print(':'.join(p for p in sys.path if there(p, 'nvidia') or there(p, 'triton')))\n";

/* What a program finds that Python runs: only Python knows its own directories. */
static void look_where_python_looks(cli_app *app) {
    const char *python = cli_find_python(app);
    const char *answer = python ? cli_ask_python(app, python, packages) : NULL;
    if (answer && *answer) setenv("INTARSIA_SITE_PACKAGES", answer, 0);
    its_diag_clear(app->ctx);
}

static int run(cli_app *app, const void *user, const cli_list *operands) {
    (void)user;
    if (operands->count) return cli_usage(app, NULL, "no operand is expected, but there is '%s'", operands->items[0]);
    look_where_python_looks(app);
    uint32_t problems = 0;
    char *found = its_doctor_text(app->ctx, &problems);
    if (!found) return cli_status(ITS_ERR_NOMEM);
    fputs(found, stdout);
    its_free(app->ctx, found);
    return problems ? CLI_FAILED : CLI_OK;
}

const cli_command cli_doctor = {
    .name = "doctor",
    .usage = "",
    .summary = "what is on this machine, and what would fail",
    .text = text,
    .args_size = sizeof(doctor_args),
    .run = run,
};
