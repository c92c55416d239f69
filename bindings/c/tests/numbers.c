/*
 * The header's promises on numbers and pointers that can't be, as C11 and as C++: each is an error, and changes nothing.
 * numbers FILE: a file that it may make, of a file system with direct I/O.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "pageout.h"

#define PAGE ((uint64_t)PAGEOUT_PAGE_SIZE)
#define PAGES 1000
#define BYTES (PAGES * PAGE)
#define END ((uint64_t)INT64_MAX) /* of the longest file */

static int says(int64_t error, const char *what) { return strstr(pageout_strerror(error), what) != NULL; }

static void bad_json_is_refused(void) {
    static const char *const BAD[] = {
        "", "{\"budget\":", "{} {}", "[]", "null", "7",
        "{\"budget\": -1}", "{\"budget\": 0}", "{\"budget\": 1e300}", "{\"budget\": 1.5e7}", "{\"budget\": NaN}", "{\"budget\": Infinity}",
        "{\"budget\": \"16777216\"}", "{\"budget\": 18446744073709551615}", "{\"budget\": 18446744073709551616}", "{\"budget\": 70368744177664}",
        "{\"files\": 18446744073709551615}", "{\"files\": -1}",
        "{\"budget\": 16777216, \"budget\": 16777216}", "{\"nodes\": [], \"nodes\": []}",
        "{\"io_threads\": -1}", "{\"io_threads\": 1025}", "{\"io_threads\": 1000000}", "{\"io_threads\": 18446744073709551616}",
        "{\"nodes\": [{\"slow\": 18446744073709551615, \"delay_ns\": 1}]}", "{\"nodes\": [{\"slow\": 0, \"delay_ns\": 1}]}",
        "{\"nodes\": [{\"slow\": 8388608, \"delay_ns\": 1, \"delay_ns\": 2}]}", "{\"nodes\": [{\"slow\": 8388608, \"delay_ns\": 18446744073709551615}]}",
        "{\"nodes\": [{\"numa_node\": 4294967295}]}", "{\"nodes\": [{\"numa_node\": -1}]}", "{\"nodes\": [{}, {}]}",
        "{\"groups\": {\"a\": {\"max\": -1}}}", "{\"groups\": {\"a\": {\"max\": 1e300}}}", "{\"groups\": {\"a\": {\"max\": 8388608, \"max\": 1}}}",
        "{\"groups\": {\"a\": {}, \"a\": {}}}", "{\"groups\": {\"\": {}}}", "{\"groups\": {\"a/b\": {}}}", "{\"groups\": {\"..\": {}}}",
        "{\"sysctl\": {\"vm.swappiness\": -5}}", "{\"sysctl\": {\"vm.swappiness\": 1e300}}", "{\"sysctl\": {\"vm.swappiness\": null}}",
        "{\"sysctl\": {\"vm.swappiness\": 1, \"vm.swappiness\": 1}}", "{\"sysctl\": {\"vm.min_free_kbytes\": 18446744073709551615}}",
        "{\"policy\": \"\\u0000\"}", "{\"policy\": \"\xff\"}",
    };
    static const char *const DEEP[] = {"[", "{\"budget\": [", "{\"sysctl\": {\"a\": [", "{\"nodes\": [[", "{\"groups\": [", "{\"a\":"};
    enum { DEPTH = 2000000 };
    struct pageout *cache = NULL;
    char *json = (char *)malloc(DEPTH + 100);
    size_t at;
    CHECK(json != NULL);
    for (at = 0; at < sizeof BAD / sizeof *BAD; at++) {
        int said = pageout_new(BAD[at], &cache);
        if (said != -EINVAL)
            fprintf(stderr, "%s: %d\n", BAD[at], said);
        CHECK(said == -EINVAL && cache == NULL && strlen(pageout_strerror(said)) > 10);
    }
    for (at = 0; at < sizeof DEEP / sizeof *DEEP; at++) {
        strcpy(json, DEEP[at]);
        memset(json + strlen(DEEP[at]), '[', DEPTH);
        json[strlen(DEEP[at]) + DEPTH] = 0;
        CHECK(pageout_new(json, &cache) == -EINVAL && cache == NULL);
    }
    free(json);
    CHECK(pageout_new(NULL, NULL) == -EINVAL);
}

static void bad_arguments_of_open_are_refused(struct pageout *cache, const char *path) {
    struct pageout_file *file = NULL;
    char fifo[4096];
    CHECK(pageout_open(cache, path, -1, NULL, &file) == -EINVAL);
    CHECK(pageout_open(cache, path, INT32_MIN, NULL, &file) == -EINVAL);
    CHECK(pageout_open(cache, NULL, PAGEOUT_READ, NULL, &file) == -EINVAL);
    CHECK(pageout_open(cache, path, PAGEOUT_READ, NULL, NULL) == -EINVAL);
    CHECK(pageout_open(cache, path, PAGEOUT_READ, "no such group", &file) == -EINVAL);
    CHECK(pageout_open(cache, path, PAGEOUT_READ, "\xff", &file) == -EINVAL);
    CHECK(pageout_open(cache, "", PAGEOUT_READ, NULL, &file) == -ENOENT);
    CHECK(pageout_open(cache, "/tmp/\xff\xfe/none", PAGEOUT_READ, NULL, &file) == -ENOENT);
    CHECK(pageout_open(cache, "/", PAGEOUT_READ, NULL, &file) == -EINVAL);
    snprintf(fifo, sizeof fifo, "%s.fifo", path);
    CHECK(mkfifo(fifo, 0600) == 0);
    CHECK(pageout_open(cache, fifo, PAGEOUT_READ, NULL, &file) == -EINVAL);
    CHECK(unlink(fifo) == 0);
    CHECK(file == NULL);
}

static void bad_sizes_and_offsets_are_refused(struct pageout_file *file) {
    static unsigned char buf[4 * PAGEOUT_PAGE_SIZE];
    struct pageout_page *held = NULL;
    const void *data = NULL;
    unsigned char before = buf[0];
    uint64_t offset;
    /* Larger than any buffer. */
    CHECK(pageout_pread(file, buf, (size_t)-1, BYTES - 100) == -EINVAL);
    CHECK(pageout_pread(file, buf, (size_t)PTRDIFF_MAX + 1, 0) == -EINVAL && says(-EINVAL, "size"));
    CHECK(pageout_pwrite(file, buf, (size_t)-1, 0) == -EINVAL);
    CHECK(pageout_pwrite(file, buf, (size_t)PTRDIFF_MAX + 1, 0) == -EINVAL && says(-EINVAL, "size"));
    CHECK(buf[0] == before);
    /* No buffer. */
    CHECK(pageout_pread(file, NULL, 10, 0) == -EINVAL);
    CHECK(pageout_pread(file, NULL, 10, UINT64_MAX) == -EINVAL);
    CHECK(pageout_pwrite(file, NULL, 10, 0) == -EINVAL);
    /* Behind the end. */
    CHECK(pageout_pread(file, buf, 10, UINT64_MAX) == 0);
    CHECK(pageout_pread(file, buf, 10, END) == 0);
    CHECK(pageout_pread(file, buf, sizeof buf, BYTES - 10) == 10);
    CHECK(pageout_page_get(file, UINT64_MAX, &data, &held) == -EINVAL);
    CHECK(pageout_page_get(file, UINT64_MAX / PAGE, &data, &held) == -EINVAL);
    CHECK(pageout_page_get(file, UINT64_MAX / PAGE + 1, &data, &held) == -EINVAL);
    CHECK(pageout_page_get(file, PAGES, &data, &held) == -EINVAL);
    CHECK(pageout_page_get(file, 0, NULL, &held) == -EINVAL);
    CHECK(pageout_page_get(file, 0, &data, NULL) == -EINVAL);
    CHECK(data == NULL && held == NULL);
    /* Behind the end of any file, and beyond the last number. */
    for (offset = UINT64_MAX - 20; offset != 1; offset = offset == UINT64_MAX ? 1 : offset + 1)
        CHECK(pageout_pwrite(file, buf, 10, offset) == -EFBIG);
    CHECK(pageout_pwrite(file, buf, 10, END - 9) == -EFBIG && says(-EFBIG, "9223372036854775807"));
    CHECK(pageout_pwrite(file, buf, sizeof buf, END) == -EFBIG);
    CHECK(pageout_truncate(file, UINT64_MAX) == -EFBIG);
    CHECK(pageout_truncate(file, (uint64_t)-1) == -EFBIG);
    CHECK(pageout_truncate(file, END + 1) == -EFBIG);
    /* Nothing, wherever it is. */
    CHECK(pageout_pwrite(file, buf, 0, UINT64_MAX) == 0);
    CHECK(pageout_pread(file, buf, 0, UINT64_MAX) == 0);
    CHECK(pageout_size(file) == (int64_t)BYTES);
    CHECK(pageout_sync(file, 77) == -EINVAL && pageout_sync(file, -1) == -EINVAL);
}

/* A length that can't be leaves the limit of `files` as it is: it was gone once. */
static void limit_of_files_survives_bad_lengths(struct pageout *cache, struct pageout_file *file, const char *path) {
    struct pageout_file *other = NULL;
    char name[4096];
    int64_t said;
    snprintf(name, sizeof name, "%s.other", path);
    FINE(pageout_open(cache, name, PAGEOUT_RDWR | PAGEOUT_CREATE, NULL, &other));
    FINE(pageout_pwrite(other, "x", 1, 0));
    CHECK(pageout_truncate(file, UINT64_MAX) == -EFBIG);
    CHECK(pageout_pwrite(file, "x", 1, UINT64_MAX - 5000) == -EFBIG);
    said = pageout_truncate(file, END);
    CHECK(said == -ENFILE || said == -EFBIG);
    said = pageout_pwrite(file, "x", 1, END - 1);
    CHECK(said == -ENFILE || said == -EFBIG);
    CHECK(pageout_pwrite(file, "x", 1, (uint64_t)1 << 34) == -ENFILE && says(-ENFILE, "128 MiB"));
    CHECK(pageout_truncate(file, (uint64_t)1 << 34) == -ENFILE);
    CHECK(pageout_size(file) == (int64_t)BYTES && pageout_size(other) == 1);
    FINE(pageout_sync(other, PAGEOUT_SYNC_ALL));
    pageout_close(other);
    CHECK(unlink(name) == 0);
}

static void set(struct pageout_read *read, void *buf, uint64_t size, uint64_t offset) {
    read->buf = buf;
    read->size = size;
    read->offset = offset;
    read->done = 77;
}

static void bad_batches_are_refused(struct pageout_file *file) {
    static unsigned char bufs[8][PAGEOUT_PAGE_SIZE];
    struct pageout_read reads[8];
    struct pageout_batch *batch = NULL;
    int n;
    CHECK(pageout_submit(file, NULL, 3, &batch) == -EINVAL);
    for (n = 0; n < 8; n++)
        set(&reads[n], bufs[n], PAGE, (uint64_t)n * 37 * PAGE);
    CHECK(pageout_submit(file, reads, 8, NULL) == -EINVAL);
    CHECK(pageout_submit(file, reads, (size_t)-1, &batch) == -EINVAL && says(-EINVAL, "`n`"));
    CHECK(pageout_submit(file, reads, (size_t)-1 / sizeof *reads + 1, &batch) == -EINVAL);
    CHECK(pageout_submit(file, reads, (size_t)PTRDIFF_MAX / sizeof *reads + 1, &batch) == -EINVAL);
    reads[5].buf = NULL;
    CHECK(pageout_submit(file, reads, 8, &batch) == -EINVAL && says(-EINVAL, "read 5"));
    reads[5].offset = UINT64_MAX; /* no byte of the file is there, and the buffer is checked all the same */
    CHECK(pageout_submit(file, reads, 8, &batch) == -EINVAL);
    set(&reads[5], bufs[5], UINT64_MAX, 0);
    CHECK(pageout_submit(file, reads, 8, &batch) == -EINVAL && says(-EINVAL, "read 5"));
    set(&reads[5], bufs[5], (uint64_t)PTRDIFF_MAX + 1, 0);
    CHECK(pageout_submit(file, reads, 8, &batch) == -EINVAL && says(-EINVAL, "read 5"));
    CHECK(pageout_submit(file, reads + 5, 1, &batch) == -EINVAL);
    /* It ends behind the last address. */
    set(&reads[5], (void *)(UINTPTR_MAX - 10), 100, 0);
    CHECK(pageout_submit(file, reads, 8, &batch) == -EINVAL && says(-EINVAL, "read 5"));
    CHECK(batch == NULL);
    for (n = 0; n < 8; n++)
        CHECK(reads[n].done == 77 && bufs[n][0] == 0);
    /* Where it is behind the end, wherever that is, there is nothing to read. */
    set(&reads[5], bufs[5], PAGE, UINT64_MAX);
    set(&reads[6], bufs[6], PAGE, BYTES - 1);
    set(&reads[7], NULL, 0, 0);
    FINE(pageout_submit(file, reads, 8, &batch));
    CHECK(pageout_poll(batch, -1) == 1);
    CHECK(reads[4].done == PAGE && reads[5].done == 0 && reads[6].done == 1 && reads[7].done == 0);
    CHECK(bufs[4][0] == 7 && bufs[5][0] == 0 && bufs[6][0] == 7 && bufs[6][1] == 0);
    CHECK(pageout_poll(NULL, -1) == -EINVAL);
}

static void overlapping_buffers_are_refused(struct pageout_file *file) {
    enum { MANY = 50000 };
    static unsigned char buf[8 * PAGEOUT_PAGE_SIZE];
    static unsigned char many[MANY];
    static struct pageout_read of_many[MANY];
    struct pageout_read reads[3];
    struct pageout_batch *batch = NULL;
    int n;
    memset(buf, 9, sizeof buf);
    set(&reads[0], buf + 2 * PAGE, PAGE, 0);
    set(&reads[1], buf, PAGE, PAGE);
    set(&reads[2], buf + PAGE - 1, 1, 2 * PAGE);
    CHECK(pageout_submit(file, reads, 3, &batch) == -EINVAL && says(-EINVAL, "reads 1 and 2"));
    set(&reads[2], buf + 3 * PAGE - 1, PAGE, 2 * PAGE);
    CHECK(pageout_submit(file, reads, 3, &batch) == -EINVAL && says(-EINVAL, "reads 0 and 2"));
    set(&reads[2], buf, PAGE, 2 * PAGE); /* the same one twice */
    CHECK(pageout_submit(file, reads, 3, &batch) == -EINVAL && says(-EINVAL, "reads 1 and 2"));
    set(&reads[2], buf, sizeof buf, 2 * PAGE); /* around another one */
    CHECK(pageout_submit(file, reads, 3, &batch) == -EINVAL);
    set(&reads[2], buf + PAGE / 2, 1, UINT64_MAX); /* whatever the file has there */
    CHECK(pageout_submit(file, reads, 3, &batch) == -EINVAL);
    set(&reads[2], &reads[1].done, 8, 0);
    CHECK(pageout_submit(file, reads, 3, &batch) == -EINVAL && says(-EINVAL, "`reads`"));
    CHECK(batch == NULL && reads[0].done == 77 && reads[1].done == 77);
    for (n = 0; n < (int)sizeof buf; n++)
        CHECK(buf[n] == 9);
    /* One behind the other, in any order, is none; nor is what has no byte. */
    set(&reads[2], buf + PAGE, PAGE, 2 * PAGE);
    FINE(pageout_submit(file, reads, 3, &batch));
    CHECK(pageout_poll(batch, -1) == 1 && buf[0] == 7 && buf[PAGE] == 7 && buf[3 * PAGE - 1] == 7 && buf[3 * PAGE] == 9);
    set(&reads[2], buf + 1, 0, 0);
    FINE(pageout_submit(file, reads, 3, &batch));
    CHECK(pageout_poll(batch, -1) == 1);
    /* However many there are. */
    for (n = 0; n < MANY; n++)
        set(&of_many[n], many + (uint64_t)n * 7919 % MANY, 1, (uint64_t)n % BYTES);
    FINE(pageout_submit(file, of_many, MANY, &batch));
    CHECK(pageout_poll(batch, -1) == 1 && many[0] == 7 && many[MANY - 1] == 7);
    of_many[MANY - 3].buf = of_many[11].buf;
    CHECK(pageout_submit(file, of_many, MANY, &batch) == -EINVAL && says(-EINVAL, "reads 11 and 49997"));
}

static void bad_texts_are_refused(struct pageout *cache) {
    char text[16] = "unchanged";
    CHECK(pageout_text(cache, "describe", text, (size_t)-1) == -EINVAL);
    CHECK(pageout_text(cache, "describe", NULL, 5) == -EINVAL);
    CHECK(pageout_text(cache, NULL, text, sizeof text) == -EINVAL);
    CHECK(pageout_text(cache, "\xff", text, sizeof text) == -EINVAL);
    CHECK(pageout_text(cache, "", text, sizeof text) == -ENOENT);
    CHECK(strcmp(text, "unchanged") == 0);
    CHECK(FINE(pageout_text(cache, "describe", text, 1)) > 10 && text[0] == 0);
    CHECK(pageout_text_write(cache, NULL, "1") == -EINVAL);
    CHECK(pageout_text_write(cache, "/proc/sys/vm/swappiness", NULL) == -EINVAL);
    CHECK(pageout_text_write(cache, "/proc/sys/vm/swappiness", "18446744073709551616") == -EINVAL);
    CHECK(pageout_text_write(cache, "/sys/fs/cgroup/a/memory.high", "-1") == -EINVAL);
    CHECK(strlen(pageout_strerror(INT64_MIN)) > 0 && strlen(pageout_strerror(INT64_MAX)) > 0 && strlen(pageout_strerror(-99999999999)) > 0);
}

/* However a batch, its file and other handles end, other files keep what was written. */
static void cancel_and_close_leave_other_files_alone(const char *path) {
    enum { ROUNDS = 50, READS = 32 };
    static char bufs[READS][PAGEOUT_PAGE_SIZE];
    char name[4096];
    int round, n;
    snprintf(name, sizeof name, "%s.other", path);
    for (round = 0; round < ROUNDS; round++) {
        struct pageout *cache = NULL;
        struct pageout_file *file = NULL, *written = NULL;
        struct pageout_read reads[READS];
        struct pageout_batch *batch = NULL;
        FINE(pageout_new("{\"budget\": 8388608}", &cache));
        FINE(pageout_open(cache, name, PAGEOUT_RDWR | PAGEOUT_CREATE, NULL, &written));
        FINE(pageout_pwrite(written, "hello", 5, 0));
        FINE(pageout_open(cache, path, PAGEOUT_RANDOM, NULL, &file));
        for (n = 0; n < READS; n++)
            set(&reads[n], bufs[n], PAGE, (uint64_t)((n * 61 + round) % PAGES) * PAGE);
        FINE(pageout_submit(file, reads, READS, &batch));
        pageout_cancel(batch);
        pageout_close(file);
        FINE(pageout_sync(written, PAGEOUT_SYNC_ALL));
        pageout_close(written);
        pageout_free(cache);
    }
    CHECK(unlink(name) == 0);
}

/* A page outlives its file's handle and the cache's. */
static void held_page_outlives_close_and_free(const char *path) {
    struct pageout *cache = NULL;
    struct pageout_file *file = NULL;
    struct pageout_page *held = NULL;
    const void *data = NULL;
    FINE(pageout_new("{\"budget\": 8388608}", &cache));
    FINE(pageout_open(cache, path, PAGEOUT_READ, NULL, &file));
    CHECK(FINE(pageout_page_get(file, 5, &data, &held)) == (int64_t)PAGE);
    pageout_close(file);
    pageout_free(cache);
    CHECK(((const char *)data)[0] == 7 && ((const char *)data)[PAGE - 1] == 7);
    pageout_page_put(held);
}

int main(int argc, char **argv) {
    static unsigned char page[PAGEOUT_PAGE_SIZE];
    struct pageout *cache = NULL;
    struct pageout_file *file = NULL;
    FILE *made;
    int n;
    if (argc != 2)
        return 2;
    memset(page, 7, sizeof page);
    made = fopen(argv[1], "wb");
    CHECK(made != NULL);
    for (n = 0; n < PAGES; n++)
        CHECK(fwrite(page, sizeof page, 1, made) == 1);
    CHECK(fclose(made) == 0);
    bad_json_is_refused();
    FINE(pageout_new("{\"budget\": 8388608, \"files\": 134217728, \"groups\": {\"a\": {}}}", &cache));
    bad_arguments_of_open_are_refused(cache, argv[1]);
    FINE(pageout_open(cache, argv[1], PAGEOUT_RDWR, NULL, &file));
    bad_sizes_and_offsets_are_refused(file);
    limit_of_files_survives_bad_lengths(cache, file, argv[1]);
    bad_batches_are_refused(file);
    overlapping_buffers_are_refused(file);
    bad_texts_are_refused(cache);
    pageout_close(file);
    pageout_free(cache);
    held_page_outlives_close_and_free(argv[1]);
    cancel_and_close_leave_other_files_alone(argv[1]);
    CHECK(unlink(argv[1]) == 0);
    printf("%s: %d checks hold\n", argv[0], checks);
    return 0;
}
