/* intarsia cache: compiled device files on disk. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "intarsia/cc.h"

typedef struct cache_args {
    char unused;
} cache_args;

static const char text[] =
    "  show    where it is and how much it holds (the default)\n"
    "  path    only where it is\n"
    "  clear   removes all of it; what is needed again is compiled again\n"
    "\n"
    "It is in $INTARSIA_CACHE_DIR, else in $XDG_CACHE_HOME/intarsia, else in ~/.cache/intarsia. Entries are named\n"
    "by the hash of what they were made from, so that nothing in it is ever out of date.\n";

static void print_size(uint64_t bytes) {
    if (bytes < 10240)
        printf("%" PRIu64 " bytes\n", bytes);
    else if (bytes < 10485760)
        printf("%" PRIu64 " KiB\n", bytes >> 10);
    else
        printf("%" PRIu64 " MiB\n", bytes >> 20);
}

static int show(cli_app *app, bool only_path) {
    its_cache_info info;
    its_status status = its_cache_query(app->ctx, &info);
    if (status != ITS_OK) return cli_status(status);
    puts(info.directory);
    if (!only_path) {
        printf("%" PRIu64 " entries, ", info.entries);
        print_size(info.bytes);
    }
    its_free(app->ctx, info.directory);
    return CLI_OK;
}

static int clear(cli_app *app) {
    uint64_t removed;
    its_status status = its_cache_clear(app->ctx, &removed);
    if (status == ITS_OK) printf("%" PRIu64 " entries removed\n", removed);
    return cli_status(status);
}

static int run(cli_app *app, const void *user, const cli_list *operands) {
    (void)user;
    static const char *const actions[] = {"show", "path", "clear"};
    const char *action = operands->count ? operands->items[0] : "show";
    if (operands->count > 1)
        return cli_usage(app, NULL, "one action is expected, but '%s' follows", operands->items[1]);
    if (strcmp(action, "show") == 0 || strcmp(action, "path") == 0) return show(app, action[0] == 'p');
    if (strcmp(action, "clear") == 0) return clear(app);
    const char *closest = its_closest(action, actions, 3);
    const char *hint = its_arena_printf(&app->arena, "did you mean '%s'?", closest ? closest : "show");
    return cli_usage(app, hint, "the cache can't '%s'", action);
}

const cli_command cli_cache = {
    .name = "cache",
    .usage = "[show | path | clear]",
    .summary = "look at or clear the cache of compiled device files",
    .text = text,
    .args_size = sizeof(cache_args),
    .run = run,
};
