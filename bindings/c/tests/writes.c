/*
 * The header's promises on writing, as C11 and as C++: each check is a sentence of pageout.h.
 * writes FILE: a file that it may make, of a file system with direct I/O.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "pageout.h"

#define PAGE ((uint64_t)PAGEOUT_PAGE_SIZE)

/* What others read. */
static int64_t on_disk(const char *path, void *buf, size_t size, uint64_t offset) {
    int fd = open(path, O_RDONLY);
    int64_t got;
    CHECK(fd >= 0);
    got = pread(fd, buf, size, (off_t)offset);
    CHECK(close(fd) == 0);
    return got;
}

static void write_as_another(const char *path, const void *buf, size_t size, uint64_t offset, int64_t length) {
    int fd = open(path, O_WRONLY);
    CHECK(fd >= 0);
    CHECK(pwrite(fd, buf, size, (off_t)offset) == (ssize_t)size);
    CHECK(length < 0 || ftruncate(fd, (off_t)length) == 0);
    CHECK(close(fd) == 0);
}

static void needs_the_right_flags(struct pageout *cache, const char *path) {
    struct pageout_file *file = NULL;
    CHECK(pageout_open(cache, path, PAGEOUT_RDWR, NULL, &file) == -ENOENT);
    CHECK(pageout_open(cache, path, PAGEOUT_CREATE, NULL, &file) == -EINVAL && file == NULL);
    FINE(pageout_open(cache, path, PAGEOUT_RDWR | PAGEOUT_CREATE, NULL, &file));
    CHECK(pageout_size(file) == 0);
    CHECK(pageout_sync(file, 7) == -EINVAL);
    CHECK(pageout_pwrite(file, NULL, 1, 0) == -EINVAL);
    CHECK(pageout_pwrite(file, NULL, 0, 0) == 0);
    CHECK(pageout_pwrite(NULL, "", 1, 0) == -EINVAL);
    CHECK(pageout_sync(NULL, PAGEOUT_SYNC_ALL) == -EINVAL);
    CHECK(pageout_truncate(NULL, 0) == -EINVAL);
    CHECK(pageout_acknowledge(NULL) == -EINVAL);
    CHECK(pageout_reload(NULL) == -EINVAL);
    pageout_close(file);
}

/* One cache writes a file at a time, unless the program has locks of its own. */
static void second_writer_is_refused(struct pageout *cache, const char *path) {
    struct pageout *other = NULL;
    struct pageout_file *file = NULL, *second = NULL, *same = NULL;
    FINE(pageout_new("{\"budget\": 8388608}", &other));
    CHECK(pageout_open(cache, path, PAGEOUT_OWN_LOCKS, NULL, &file) == -EINVAL && file == NULL);
    FINE(pageout_open(cache, path, PAGEOUT_RDWR, NULL, &file));
    FINE(pageout_open(cache, path, PAGEOUT_RDWR, NULL, &same));
    CHECK(pageout_open(other, path, PAGEOUT_RDWR, NULL, &second) == -EAGAIN && second == NULL);
    CHECK(strstr(pageout_strerror(-EAGAIN), path) != NULL);
    FINE(pageout_open(other, path, PAGEOUT_RDWR | PAGEOUT_OWN_LOCKS, NULL, &second));
    pageout_close(second);
    pageout_close(same);
    FINE(pageout_forget(file));
    pageout_close(file);
    pageout_free(other);
}

static void a_reader_may_not_write(struct pageout *cache, const char *path) {
    struct pageout_file *file = NULL;
    FINE(pageout_open(cache, path, PAGEOUT_READ, NULL, &file));
    CHECK(pageout_pwrite(file, "x", 1, 0) == -EBADF);
    CHECK(strstr(pageout_strerror(-EBADF), path) != NULL);
    CHECK(pageout_truncate(file, 0) == -EBADF);
    pageout_close(file);
}

static void what_is_synced_is_on_disk(struct pageout_file *file, const char *path) {
    char buf[64];
    CHECK(FINE(pageout_pwrite(file, "pageout", 7, 3 * PAGE - 3)) == 7);
    CHECK(pageout_size(file) == (int64_t)(3 * PAGE + 4));
    CHECK(FINE(pageout_pread(file, buf, sizeof buf, 3 * PAGE - 5)) == 9 && memcmp(buf, "\0\0pageout", 9) == 0);
    FINE(pageout_sync(file, PAGEOUT_SYNC_DATA));
    CHECK(on_disk(path, buf, sizeof buf, 3 * PAGE - 5) == 9 && memcmp(buf, "\0\0pageout", 9) == 0);
    FINE(pageout_truncate(file, 3 * PAGE - 1));
    CHECK(FINE(pageout_pread(file, buf, sizeof buf, 3 * PAGE - 5)) == 4 && memcmp(buf, "\0\0pa", 4) == 0);
    FINE(pageout_truncate(file, 3 * PAGE + 1));
    CHECK(FINE(pageout_pread(file, buf, sizeof buf, 3 * PAGE - 5)) == 6 && memcmp(buf, "\0\0pa\0\0", 6) == 0);
    FINE(pageout_sync(file, PAGEOUT_SYNC_ALL));
    FINE(pageout_acknowledge(file));
    CHECK(on_disk(path, buf, sizeof buf, 3 * PAGE - 5) == 6 && memcmp(buf, "\0\0pa\0\0", 6) == 0);
}

/* The data survives the process, as others read it. The flush is left out. */
static void what_is_written_back_is_in_the_file(struct pageout_file *file, const char *path) {
    char buf[8];
    CHECK(FINE(pageout_pwrite(file, "earlier", 7, PAGE + 9)) == 7);
    FINE(pageout_sync(file, PAGEOUT_SYNC_DATA));
    CHECK(FINE(pageout_pwrite(file, "written", 7, PAGE + 9)) == 7);
    CHECK(on_disk(path, buf, 7, PAGE + 9) == 7 && memcmp(buf, "earlier", 7) == 0);
    FINE(pageout_sync(file, PAGEOUT_SYNC_WRITE));
    CHECK(on_disk(path, buf, 7, PAGE + 9) == 7 && memcmp(buf, "written", 7) == 0);
    FINE(pageout_sync(file, PAGEOUT_SYNC_WRITE));
}

static uint64_t word_at(uint64_t offset) { return (offset + 1) * 0x9e3779b97f4a7c15u; }

static void more_than_fits_is_written(struct pageout_file *file, const char *path) {
    static uint64_t chunk[40960 / 8];
    const uint64_t SIZE = 24 << 20, CHUNK = sizeof chunk;
    uint64_t offset, at;
    for (offset = 0; offset < SIZE; offset += CHUNK) {
        for (at = 0; at < CHUNK / 8; at++)
            chunk[at] = word_at(offset + 8 * at);
        CHECK(FINE(pageout_pwrite(file, chunk, SIZE - offset < CHUNK ? SIZE - offset : CHUNK, offset)) > 0);
    }
    CHECK(pageout_size(file) == (int64_t)SIZE);
    for (offset = 0; offset < SIZE; offset += 4099 * 8) {
        CHECK(FINE(pageout_pread(file, chunk, 8, offset)) == 8 && chunk[0] == word_at(offset));
    }
    FINE(pageout_sync(file, PAGEOUT_SYNC_DATA));
    for (offset = 0; offset < SIZE; offset += CHUNK) {
        int64_t got = on_disk(path, chunk, CHUNK, offset);
        CHECK(got == (int64_t)(SIZE - offset < CHUNK ? SIZE - offset : CHUNK));
        for (at = 0; at < (uint64_t)got / 8; at++)
            if (chunk[at] != word_at(offset + 8 * at))
                CHECK(!"what was synced is on disk");
    }
}

static void others_writes_are_read_after_a_reload(struct pageout_file *file, const char *path) {
    struct pageout_page *held = NULL;
    const void *data = NULL;
    char buf[16];
    struct flock lock;
    pid_t child;
    int fd, status = 0;
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_WRLCK;
    lock.l_start = 0;
    lock.l_len = 1;
    FINE(pageout_sync(file, PAGEOUT_SYNC_DATA));
    CHECK(FINE(pageout_pread(file, buf, 6, 5 * PAGE)) == 6);
    write_as_another(path, "others", 6, 5 * PAGE, 6 * PAGE + 6);
    CHECK(FINE(pageout_pread(file, buf, 6, 5 * PAGE)) == 6 && memcmp(buf, "others", 6) != 0);

    /* No close here ends a lock of the process. */
    fd = open(path, O_RDWR);
    CHECK(fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0);
    CHECK(FINE(pageout_page_get(file, 5, &data, &held)) == PAGEOUT_PAGE_SIZE);
    CHECK(pageout_reload(file) == -EBUSY);
    pageout_page_put(held);
    FINE(pageout_reload(file));
    child = fork();
    if (child == 0)
        _exit(fcntl(fd, F_SETLK, &lock) == 0 ? 1 : 0);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(close(fd) == 0);

    CHECK(FINE(pageout_pread(file, buf, 6, 5 * PAGE)) == 6 && memcmp(buf, "others", 6) == 0);
    CHECK(pageout_size(file) == (int64_t)(6 * PAGE + 6));
    CHECK(FINE(pageout_pwrite(file, "ours", 4, 7 * PAGE)) == 4);
    CHECK(FINE(pageout_pread(file, buf, 8, 7 * PAGE - 4)) == 8 && memcmp(buf, "\0\0\0\0ours", 8) == 0);
    write_as_another(path, "more", 4, 8 * PAGE - 4, -1);
    FINE(pageout_reload(file));
    CHECK(pageout_size(file) == (int64_t)(8 * PAGE));
    CHECK(FINE(pageout_pread(file, buf, 4, 8 * PAGE - 4)) == 4 && memcmp(buf, "more", 4) == 0);
}

int main(int argc, char **argv) {
    struct pageout *cache = NULL;
    struct pageout_file *file = NULL;
    if (argc != 2)
        return 2;
    FINE(pageout_new("{\"budget\": 8388608}", &cache));
    needs_the_right_flags(cache, argv[1]);
    second_writer_is_refused(cache, argv[1]);
    a_reader_may_not_write(cache, argv[1]);
    FINE(pageout_open(cache, argv[1], PAGEOUT_RDWR | PAGEOUT_RANDOM, NULL, &file));
    what_is_synced_is_on_disk(file, argv[1]);
    what_is_written_back_is_in_the_file(file, argv[1]);
    more_than_fits_is_written(file, argv[1]);
    others_writes_are_read_after_a_reload(file, argv[1]);
    FINE(pageout_pwrite(file, "the last", 8, 0));
    FINE(pageout_sync(file, PAGEOUT_SYNC_DATA));
    FINE(pageout_forget(file));
    CHECK(pageout_pwrite(file, "x", 1, 0) == -ESTALE);
    pageout_close(file);
    pageout_free(cache);
    CHECK(unlink(argv[1]) == 0);
    printf("%s: %d checks hold\n", argv[0], checks);
    return 0;
}
