/* The Python interpreter that runs scripts. */
#ifndef ITS_CLI_PYTHON_H
#define ITS_CLI_PYTHON_H

#include "cli/cli.h"

/*
 * $INTARSIA_PYTHON, else the .venv next to this program, else python3 of $PATH. A path, or a name to be looked up in
 * $PATH; NULL after a diagnostic.
 */
const char *cli_find_python(cli_app *app);

/*
 * Lets scripts import the Python package that was installed along with this program (cmake/install.cmake), by way of
 * PYTHONPATH. Does nothing in a build tree and in a wheel, whose interpreters have it.
 */
void cli_use_own_package(cli_app *app);

/* What `python -c code` prints, without the end of the line; NULL if it fails. At most some KB. */
const char *cli_ask_python(cli_app *app, const char *python, const char *code);

#endif
