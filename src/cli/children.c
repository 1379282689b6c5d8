#include "cli/children.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 10, PATIENCE_MS = 2000 }; /* how long a killed process may take to go away */

/* The parent of a process, from the fourth field of its stat file; the second one may hold any character but ends with
 * ). */
static long parent_of(const char *pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return -1;
    text[n] = 0;
    const char *end = strrchr(text, ')');
    return end && strlen(end) > 4 ? strtol(end + 4, NULL, 10) : -1;
}

static void signal_children(int number) {
    DIR *proc = opendir("/proc");
    if (!proc) return;
    long self = getpid();
    for (struct dirent *entry; (entry = readdir(proc));)
        if (isdigit((unsigned char)entry->d_name[0]) && parent_of(entry->d_name) == self)
            kill((pid_t)strtol(entry->d_name, NULL, 10), number);
    closedir(proc);
}

/* Takes note of every child that has ended; false if none is left. */
static bool any_left(void) {
    pid_t pid;
    do pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0 || (pid < 0 && errno == EINTR));
    return pid == 0;
}

/* A child's own children become ours when it ends: hence again and again. */
void cli_end_children(uint32_t grace_ms) {
    const struct timespec step = {0, STEP_MS * 1000000L};
    for (uint32_t waited = 0; any_left() && waited < grace_ms + PATIENCE_MS; waited += STEP_MS) {
        signal_children(waited < grace_ms ? SIGTERM : SIGKILL);
        nanosleep(&step, NULL);
    }
}
