/* The time of day, moved by as many seconds as the first eight bytes of the file MOVED_CLOCK say at
 * that moment. Durations (CLOCK_MONOTONIC) are left alone, as a system leaves them.
 *   cc -shared -fPIC moved_clock.c -o moved_clock.so -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static int64_t moved(void) {
    static volatile int64_t *seconds;
    if (!seconds) {
        int file = open(getenv("MOVED_CLOCK"), O_RDONLY);
        seconds = mmap(0, sizeof *seconds, PROT_READ, MAP_SHARED, file, 0);
    }
    return *seconds;
}

int clock_gettime(clockid_t kind, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(kind, now);
    if (!failed && (kind == CLOCK_REALTIME || kind == CLOCK_REALTIME_COARSE)) now->tv_sec += moved();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
