/* What tests of the header check by: whatever is not so ends them, with its line. */
#ifndef PAGEOUT_CHECK_H
#define PAGEOUT_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "pageout.h"

static int checks;

#define CHECK(what)                                                                                                                      \
    do {                                                                                                                                 \
        checks++;                                                                                                                        \
        if (!(what)) {                                                                                                                   \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                                                           \
            exit(1);                                                                                                                     \
        }                                                                                                                                \
    } while (0)

/* What has to be 0 or a count, and what it said otherwise. */
#define FINE(call) fine((call), #call, __LINE__)

static int64_t fine(int64_t result, const char *call, int line) {
    checks++;
    if (result < 0) {
        fprintf(stderr, "line %d: %s: %s (%lld)\n", line, call, pageout_strerror(result), (long long)result);
        exit(1);
    }
    return result;
}

#endif
