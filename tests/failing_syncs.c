/* Stands in front of the C library (LD_PRELOAD): fsync and fdatasync of whatever lies below the folder that
 * FAILING_SYNCS_BELOW names fail with EIO, as long as the file that FAILING_SYNCS_WHILE names is there. With
 * FAILING_SYNCS_MS they take so many milliseconds longer instead. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int fd)
{
    const char *below = getenv("FAILING_SYNCS_BELOW"), *marker = getenv("FAILING_SYNCS_WHILE");
    char link[64], path[PATH_MAX];
    ssize_t size;

    if (below == NULL || marker == NULL || access(marker, F_OK) != 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size = readlink(link, path, sizeof path - 1);
    if (size < 0)
        return 0;
    path[size] = 0;
    return strncmp(path, below, strlen(below)) == 0 && path[strlen(below)] == '/';
}

static int passed_on(const char *name, int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);

    const char *slow_ms = getenv("FAILING_SYNCS_MS");

    if (fails(fd)) {
        if (slow_ms == NULL) {
            errno = EIO;
            return -1;
        }
        usleep(1000 * (useconds_t)atoi(slow_ms));
    }
    return real(fd);
}

int fsync(int fd)
{
    return passed_on("fsync", fd);
}

int fdatasync(int fd)
{
    return passed_on("fdatasync", fd);
}
