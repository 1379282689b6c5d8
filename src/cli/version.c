/* intarsia --version: this program, and what it finds to work with. Nothing that is missing is an error here. */
#include <stdio.h>

#include "base/dynload.h"
#include "cli/cli.h"
#include "cli/python.h"

static void print_nvrtc(cli_app *app) {
    its_library_search search;
    its_library_find(&app->arena, ITS_LIBRARY_NVRTC, &search);
    if (!search.path) {
        printf("NVRTC     not found: %s\n", search.hint);
        return;
    }
    its_library library;
    its_nvrtc nvrtc;
    int major = 0, minor = 0;
    if (its_library_open(app->ctx, &search, &library, &nvrtc) == ITS_OK) {
        nvrtc.nvrtcVersion(&major, &minor);
        its_library_close(&library);
    }
    printf("NVRTC     %d.%d, %s\n", major, minor, search.path);
}

static const char packages[] = "import sys\n"
                               "from importlib import metadata\n"
                               "print(sys.version.split()[0] + ', ' + sys.executable)\n"
                               "for name in 'Triton', 'NumPy':\n"
                               "    try: version = metadata.version(name)\n"
                               "    except metadata.PackageNotFoundError: version = 'not found in this Python'\n"
                               "    print(f'{name:9} {version}')\n";

static void print_python(cli_app *app) {
    const char *python = cli_find_python(app);
    const char *answer = python ? cli_ask_python(app, python, packages) : NULL;
    printf("Python    %s\n", answer ? answer : "not found");
}

void cli_print_version(cli_app *app) {
    printf("intarsia  %s\n", its_version());
    print_nvrtc(app);
    print_python(app);
    its_diag_clear(app->ctx);
}
