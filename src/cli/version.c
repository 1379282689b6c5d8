/* intarsia --version: this program, and what it finds to work with. */
#include <stdio.h>

#include "cli/cli.h"

void cli_print_version(cli_app *app) {
    (void)app;
    printf("intarsia %s\n", its_version());
}
