// A clock that jumps: preloaded, it adds to the time of day the seconds that the file CLOCK_JUMP names holds. Monotonic clocks, by which
// programs wait, are left alone, as they are by whoever sets a clock.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*next)(clockid_t, struct timespec *);
    if (!next) next = dlsym(RTLD_NEXT, "clock_gettime");
    int result = next(clock, time);
    const char *path = getenv("CLOCK_JUMP");
    if (clock != CLOCK_REALTIME || !path) return result;
    FILE *file = fopen(path, "r");
    long seconds = 0;
    if (file) {
        if (fscanf(file, "%ld", &seconds) == 1) time->tv_sec += seconds;
        fclose(file);
    }
    return result;
}
