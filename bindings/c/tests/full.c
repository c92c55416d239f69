/*
 * The header's promises on a full disk, as C11 and as C++. The process's limit of a file's size (RLIMIT_FSIZE) stands for the disk: a write beyond it is EFBIG.
 * full FILE: a file that it may make, of a file system with direct I/O.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "pageout.h"

#define PAGE ((uint64_t)PAGEOUT_PAGE_SIZE)
#define ROOM (64 * PAGE)
#define SECONDS_MAX 100 /* a call that does not return is a failure */

static void limit_files(uint64_t bytes) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes ? (rlim_t)bytes : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void fill(unsigned char *page, uint64_t number) { memset(page, (int)(number % 251) + 1, PAGE); }

static int is_filled(const unsigned char *page, uint64_t number) { return page[0] == number % 251 + 1 && page[PAGE - 1] == page[0]; }

/* A sync has the device's errno, each one, until there is room; and nothing is lost. */
static void sync_on_a_full_disk_has_its_errno(struct pageout_file *file, const char *path) {
    enum { PAGES = 100 };
    unsigned char page[PAGEOUT_PAGE_SIZE];
    uint64_t n;
    int fd;
    limit_files(ROOM);
    for (n = 0; n < PAGES; n++) {
        fill(page, n);
        FINE(pageout_pwrite(file, page, sizeof page, n * PAGE));
    }
    CHECK(pageout_sync(file, PAGEOUT_SYNC_DATA) == -EFBIG);
    CHECK(strstr(pageout_strerror(-EFBIG), path) != NULL);
    CHECK(pageout_sync(file, PAGEOUT_SYNC_ALL) == -EFBIG);
    FINE(pageout_acknowledge(file));
    CHECK(pageout_sync(file, PAGEOUT_SYNC_DATA) == -EFBIG);
    for (n = 0; n < PAGES; n++)
        CHECK(FINE(pageout_pread(file, page, sizeof page, n * PAGE)) == (int64_t)PAGE && is_filled(page, n));
    limit_files(0);
    FINE(pageout_acknowledge(file));
    FINE(pageout_sync(file, PAGEOUT_SYNC_DATA));
    fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    for (n = 0; n < PAGES; n++)
        CHECK(pread(fd, page, sizeof page, (off_t)(n * PAGE)) == (ssize_t)PAGE && is_filled(page, n));
    CHECK(close(fd) == 0);
}

/* What is not needed any more can be cut off: nothing is left to write. */
static void cut_on_a_full_disk_ends_its_errors(struct pageout_file *file) {
    unsigned char page[PAGEOUT_PAGE_SIZE];
    limit_files(ROOM);
    fill(page, 200);
    FINE(pageout_pwrite(file, page, sizeof page, 200 * PAGE));
    CHECK(pageout_sync(file, PAGEOUT_SYNC_DATA) == -EFBIG);
    FINE(pageout_truncate(file, 10 * PAGE));
    FINE(pageout_acknowledge(file));
    FINE(pageout_sync(file, PAGEOUT_SYNC_DATA));
    CHECK(FINE(pageout_pread(file, page, sizeof page, 9 * PAGE)) == (int64_t)PAGE && is_filled(page, 9));
    limit_files(0);
}

/* A writer that has to wait for pages that can't be written is refused, and soon. What was accepted is there, and on disk once there is room. */
static void writer_on_a_full_disk_is_refused(struct pageout_file *file, const char *path) {
    enum { PAGES = 16384 };
    unsigned char page[PAGEOUT_PAGE_SIZE];
    uint64_t n, accepted;
    int64_t said = 0;
    time_t began;
    int fd;
    limit_files(ROOM);
    for (n = 0; n < PAGES && said >= 0; n++) {
        fill(page, n);
        began = time(NULL);
        said = pageout_pwrite(file, page, sizeof page, n * PAGE);
        CHECK(time(NULL) - began < 10);
    }
    CHECK(said == -EFBIG && strstr(pageout_strerror(said), path) != NULL);
    accepted = n - 1;
    CHECK(accepted > ROOM / PAGE);
    CHECK(pageout_sync(file, PAGEOUT_SYNC_DATA) == -EFBIG);
    for (n = 0; n < accepted; n++)
        CHECK(FINE(pageout_pread(file, page, sizeof page, n * PAGE)) == (int64_t)PAGE && is_filled(page, n));
    limit_files(0);
    FINE(pageout_acknowledge(file));
    FINE(pageout_sync(file, PAGEOUT_SYNC_DATA));
    fill(page, accepted);
    FINE(pageout_pwrite(file, page, sizeof page, accepted * PAGE));
    FINE(pageout_sync(file, PAGEOUT_SYNC_DATA));
    fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    for (n = 0; n <= accepted; n++)
        CHECK(pread(fd, page, sizeof page, (off_t)(n * PAGE)) == (ssize_t)PAGE && is_filled(page, n));
    CHECK(close(fd) == 0);
}

/* What can't be written can be given up with the file; another file of the cache keeps what it has. */
static void unwritten_pages_are_given_up(struct pageout *cache, struct pageout_file *file, const char *path) {
    struct pageout_file *again = NULL;
    struct pageout_page *held = NULL;
    const void *data = NULL;
    char byte = 0;
    FINE(pageout_truncate(file, 0));
    FINE(pageout_sync(file, PAGEOUT_SYNC_DATA));
    limit_files(ROOM);
    FINE(pageout_pwrite(file, "x", 1, 2 * ROOM));
    CHECK(pageout_forget(file) == -EFBIG);
    FINE(pageout_page_get(file, 2 * ROOM / PAGE, &data, &held));
    CHECK(pageout_forget_and_discard(file) == -EBUSY);
    pageout_page_put(held);
    FINE(pageout_forget_and_discard(file));
    CHECK(pageout_pread(file, &byte, 1, 0) == -ESTALE);
    CHECK(pageout_forget_and_discard(NULL) == -EINVAL);
    limit_files(0);
    FINE(pageout_open(cache, path, PAGEOUT_RDWR, NULL, &again));
    CHECK(pageout_size(again) < (int64_t)(2 * ROOM));
    pageout_close(again);
}

int main(int argc, char **argv) {
    struct pageout *cache = NULL;
    struct pageout_file *file = NULL;
    if (argc != 2)
        return 2;
    signal(SIGXFSZ, SIG_IGN);
    alarm(SECONDS_MAX);
    FINE(pageout_new("{\"budget\": 8388608}", &cache));
    FINE(pageout_open(cache, argv[1], PAGEOUT_RDWR | PAGEOUT_CREATE, NULL, &file));
    sync_on_a_full_disk_has_its_errno(file, argv[1]);
    cut_on_a_full_disk_ends_its_errors(file);
    writer_on_a_full_disk_is_refused(file, argv[1]);
    unwritten_pages_are_given_up(cache, file, argv[1]);
    pageout_close(file);
    pageout_free(cache);
    CHECK(unlink(argv[1]) == 0);
    printf("%s: %d checks hold\n", argv[0], checks);
    return 0;
}
