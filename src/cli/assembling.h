/*
 * What the assembler makes of a linked kernel, against what it makes of the kernel without the calls that were linked.
 *
 * "Before" is the main module with its region calls, and its calls of what libraries define, taken out. Left in, as
 * calls of externs, they could only be assembled with -c, which serialises wgmma and ignores setmaxnreg by itself: such
 * a "before" would excuse everything.
 */
#ifndef ITS_CLI_ASSEMBLING_H
#define ITS_CLI_ASSEMBLING_H

#include "cli/linking.h"
#include "intarsia/asm.h"

typedef struct cli_assembled {
    its_asm_result *before, *after; /* `before` is NULL if nothing from elsewhere is called */
} cli_assembled;

its_status cli_assembled_open(cli_assembled *code, cli_linking *linking);
void cli_assembled_close(cli_assembled *code);
/* Puts both into the JSON report; the length of the new text, 0 if memory ran out. */
size_t cli_assembled_join(cli_app *app, char **report, const cli_assembled *code);
/* Fails, naming the calls, if wgmma is serialised or setmaxnreg ignored and that was not so before. */
int cli_assembled_check(const cli_assembled *code, cli_linking *linking);

#endif
