/*
 * ptxas as the oracle of the verifier's files: it must refuse each of tests/ptx/bad and accept each of tests/ptx/good.
 * It is looked for in $PTXAS, in PATH and where a CUDA toolkit puts it; without one the test is skipped, loudly.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

extern char **environ;

#define BAD ITS_SOURCE_DIR "/tests/ptx/bad"
#define GOOD ITS_SOURCE_DIR "/tests/ptx/good"

static char ptxas[1024];

static bool try_directory(const char *directory, size_t size) {
    if (!size) return false;
    snprintf(ptxas, sizeof ptxas, "%.*s/ptxas", (int)size, directory);
    return access(ptxas, X_OK) == 0;
}

static bool find_ptxas(void) {
    const char *given = getenv("PTXAS");
    if (given && *given) {
        snprintf(ptxas, sizeof ptxas, "%s", given);
        return access(ptxas, X_OK) == 0;
    }
    const char *path = getenv("PATH");
    for (const char *at = path ? path : ""; *at;) {
        size_t size = strcspn(at, ":");
        if (try_directory(at, size)) return true;
        at += size + (at[size] == ':');
    }
    return try_directory("/usr/local/cuda/bin", strlen("/usr/local/cuda/bin"));
}

/* The module's own target: what it is compiled for. */
static bool read_target(const char *file, char *target, size_t size) {
    FILE *in = fopen(file, "r");
    char line[800];
    bool found = false;
    if (!in) return false;
    while (!found && fgets(line, sizeof line, in))
        if (strncmp(line, ".target ", 8) == 0) {
            snprintf(target, size, "%.*s", (int)strcspn(line + 8, " ,\n"), line + 8);
            found = true;
        }
    fclose(in);
    return found;
}

/* The exit status of ptxas, 0 if it accepts; its words are thrown away. -1 if it could not be run. */
static int run_ptxas(const char *file) {
    char target[64], architecture[80];
    if (!read_target(file, target, sizeof target)) return -1;
    snprintf(architecture, sizeof architecture, "-arch=%s", target);
    char *argv[] = {ptxas, architecture, "-o", "/dev/null", (char *)file, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t pid;
    int status = -1;
    if (posix_spawn(&pid, ptxas, &actions, NULL, argv, environ) == 0) waitpid(pid, &status, 0);
    posix_spawn_file_actions_destroy(&actions);
    return status == -1 ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int is_ptx(const struct dirent *entry) {
    size_t size = strlen(entry->d_name);
    return size > 4 && strcmp(entry->d_name + size - 4, ".ptx") == 0;
}

static void check_directory(const char *directory, bool accepts) {
    if (!*ptxas) {
        printf("SKIPPED: no ptxas on this machine, set PTXAS to its path\n");
        skip();
    }
    struct dirent **entries;
    int count = scandir(directory, &entries, is_ptx, alphasort), wrong = 0;
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
        int status = run_ptxas(path);
        if (status < 0 || (status == 0) != accepts) {
            wrong++;
            printf("%s: ptxas %s it\n", path, status == 0 ? "accepts" : status < 0 ? "could not be run on" : "refuses");
        }
        free(entries[i]);
    }
    free(entries);
    assert_int_equal(wrong, 0);
}

static void ptxas_refuses_the_bad(void **state) {
    (void)state;
    check_directory(BAD, false);
}

static void ptxas_accepts_the_good(void **state) {
    (void)state;
    check_directory(GOOD, true);
}

int main(void) {
    if (!find_ptxas()) *ptxas = 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ptxas_refuses_the_bad),
        cmocka_unit_test(ptxas_accepts_the_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
