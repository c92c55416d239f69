/*
 * The header's promises on reading, as C11 and as C++: each check is a sentence of pageout.h.
 * reads FILE: a file that it may make, of a file system with direct I/O.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "pageout.h"

#define PAGES 2500
#define TAIL 700
#define BYTES (PAGES * (uint64_t)PAGEOUT_PAGE_SIZE + TAIL)

static unsigned char byte_at(uint64_t offset) { return (unsigned char)((offset * 2654435761u) >> 13); }

static int is_right(const void *bytes, uint64_t size, uint64_t offset) {
    const unsigned char *byte = (const unsigned char *)bytes;
    uint64_t at;
    for (at = 0; at < size; at++)
        if (byte[at] != byte_at(offset + at))
            return 0;
    return 1;
}

static void make_file(const char *path) {
    FILE *file = fopen(path, "wb");
    uint64_t at;
    CHECK(file != NULL);
    for (at = 0; at < BYTES; at++)
        putc(byte_at(at), file);
    CHECK(fclose(file) == 0);
}

static void builds_or_says_why(void) {
    struct pageout *cache = NULL;
    CHECK(pageout_new("{\"bugdet\": 1}", &cache) == -EINVAL);
    CHECK(strstr(pageout_strerror(-EINVAL), "bugdet") != NULL);
    CHECK(pageout_new("{\"budget\": 4096}", &cache) == -EINVAL);
    CHECK(strstr(pageout_strerror(-EINVAL), "the minimum is") != NULL);
    CHECK(pageout_new("not json", &cache) == -EINVAL);
    CHECK(pageout_new("{}", NULL) == -EINVAL);
    CHECK(cache == NULL);
    CHECK(strlen(pageout_strerror(-12345)) > 0 && strlen(pageout_strerror(0)) > 0);
}

static void null_is_an_error_or_nothing(void) {
    struct pageout_file *file = NULL;
    struct pageout_batch *batch = NULL;
    struct pageout_page *held = NULL;
    const void *data = NULL;
    char buf[8];
    CHECK(pageout_open(NULL, "x", PAGEOUT_READ, NULL, &file) == -EINVAL);
    CHECK(pageout_size(NULL) == -EINVAL);
    CHECK(pageout_pread(NULL, buf, sizeof buf, 0) == -EINVAL);
    CHECK(pageout_page_get(NULL, 0, &data, &held) == -EINVAL);
    CHECK(pageout_submit(NULL, NULL, 0, &batch) == -EINVAL);
    CHECK(pageout_poll(NULL, 0) == -EINVAL);
    CHECK(pageout_forget(NULL) == -EINVAL);
    CHECK(pageout_text(NULL, "describe", buf, sizeof buf) == -EINVAL);
    CHECK(pageout_text_write(NULL, "memory.high", "1") == -EINVAL);
    pageout_free(NULL);
    pageout_close(NULL);
    pageout_page_put(NULL);
    pageout_cancel(NULL);
}

static void reads_up_to_the_end(struct pageout *cache, struct pageout_file *file) {
    static unsigned char buf[3 * PAGEOUT_PAGE_SIZE];
    uint64_t at;
    CHECK(pageout_size(file) == (int64_t)BYTES);
    for (at = 0; at < BYTES; at += 5000)
        CHECK(FINE(pageout_pread(file, buf, 5000, at)) == (int64_t)(BYTES - at < 5000 ? BYTES - at : 5000) && is_right(buf, BYTES - at < 5000 ? BYTES - at : 5000, at));
    CHECK(pageout_pread(file, buf, sizeof buf, BYTES - 10) == 10 && is_right(buf, 10, BYTES - 10));
    CHECK(pageout_pread(file, buf, sizeof buf, BYTES) == 0);
    CHECK(pageout_pread(file, buf, sizeof buf, UINT64_MAX) == 0);
    CHECK(pageout_pread(file, NULL, 0, 0) == 0);
    CHECK(pageout_pread(file, NULL, 1, 0) == -EINVAL);
    CHECK(cache != NULL);
}

static void holds_pages_in_place(struct pageout_file *file) {
    struct pageout_page *held = NULL, *last = NULL;
    const void *data = NULL;
    CHECK(FINE(pageout_page_get(file, 17, &data, &held)) == PAGEOUT_PAGE_SIZE);
    CHECK(is_right(data, PAGEOUT_PAGE_SIZE, 17 * (uint64_t)PAGEOUT_PAGE_SIZE));
    CHECK(FINE(pageout_page_get(file, PAGES, &data, &last)) == TAIL);
    CHECK(is_right(data, TAIL, PAGES * (uint64_t)PAGEOUT_PAGE_SIZE));
    CHECK(pageout_forget(file) == -EBUSY);
    pageout_page_put(held);
    pageout_page_put(last);
    last = NULL;
    CHECK(pageout_page_get(file, PAGES + 1, &data, &last) == -EINVAL);
    CHECK(last == NULL);
}

static void too_many_held_pages_are_refused(struct pageout *cache, struct pageout_file *file) {
    static struct pageout_page *held[PAGES];
    const void *data;
    int64_t got = 0;
    int n = 0;
    CHECK(cache != NULL);
    while (n < PAGES && (got = pageout_page_get(file, (uint64_t)n, &data, &held[n])) > 0)
        n++;
    CHECK(got == -EBUSY && n > 100);
    while (n > 0)
        pageout_page_put(held[--n]);
    CHECK(FINE(pageout_page_get(file, 0, &data, &held[0])) == PAGEOUT_PAGE_SIZE);
    pageout_page_put(held[0]);
}

static void submits_and_polls(struct pageout_file *file) {
    enum { READS = 100, SIZE = 6000 };
    static unsigned char bufs[READS][SIZE];
    struct pageout_read reads[READS];
    struct pageout_batch *batch = NULL;
    int n, said;
    for (n = 0; n < READS; n++) {
        reads[n].buf = bufs[n];
        reads[n].size = SIZE;
        reads[n].offset = (uint64_t)n * 7919 * 13 % BYTES;
        reads[n].done = 0;
    }
    reads[READS - 1].offset = BYTES - 5;
    FINE(pageout_submit(file, reads, READS, &batch));
    while ((said = pageout_poll(batch, 1)) == 0)
        ;
    CHECK(FINE(said) == 1);
    CHECK(reads[READS - 1].done == 5);
    for (n = 0; n < READS; n++)
        CHECK(is_right(bufs[n], reads[n].done, reads[n].offset));

    FINE(pageout_submit(file, reads, READS, &batch));
    CHECK(pageout_poll(batch, -1) == 1);
    FINE(pageout_submit(file, NULL, 0, &batch));
    CHECK(pageout_poll(batch, 0) == 1);
    reads[3].offset = BYTES + 1;
    FINE(pageout_submit(file, reads, READS, &batch));
    CHECK(reads[3].done == 0);
    pageout_cancel(batch);
    reads[4].buf = NULL;
    batch = NULL;
    CHECK(pageout_submit(file, reads, READS, &batch) == -EINVAL && batch == NULL);
}

static void tells_kernel_files(struct pageout *cache) {
    char text[64], whole[1 << 16];
    int64_t len = FINE(pageout_text(cache, "/sys/fs/cgroup/tenant/memory.stat", NULL, 0));
    CHECK(len > 100);
    CHECK(FINE(pageout_text(cache, "/sys/fs/cgroup/tenant/memory.stat", whole, sizeof whole)) < (int64_t)sizeof whole);
    CHECK(strncmp(whole, "anon ", 5) == 0);
    CHECK(FINE(pageout_text(cache, "/sys/fs/cgroup/tenant/memory.stat", text, 8)) >= 8 && strlen(text) == 7);
    FINE(pageout_text_write(cache, "/sys/fs/cgroup/tenant/memory.high", "5M"));
    FINE(pageout_text(cache, "/sys/fs/cgroup/tenant/memory.high", text, sizeof text));
    CHECK(strncmp(text, "5242880", 7) == 0);
    CHECK(pageout_text_write(cache, "/sys/fs/cgroup/tenant/memory.high", "much") == -EINVAL);
    CHECK(pageout_text(cache, "/proc/no-such-file", text, sizeof text) == -ENOENT);
    CHECK(strstr(pageout_strerror(-ENOENT), "no-such-file") != NULL);
    CHECK(FINE(pageout_text(cache, "stats", whole, sizeof whole)) > 0 && strncmp(whole, "hits ", 5) == 0);
    CHECK(FINE(pageout_text(cache, "describe", whole, sizeof whole)) > 0 && strstr(whole, "classic@6.12, ") == whole);
}

struct reader {
    struct pageout_file *file;
    uint64_t seed;
};

static void *read_here_and_there(void *of) {
    struct reader *reader = (struct reader *)of;
    unsigned char buf[512];
    int n;
    for (n = 0; n < 20000; n++) {
        uint64_t offset;
        reader->seed = reader->seed * 6364136223846793005u + 1442695040888963407u;
        offset = (reader->seed >> 20) % (BYTES - sizeof buf);
        if (pageout_pread(reader->file, buf, sizeof buf, offset) != (int64_t)sizeof buf || !is_right(buf, sizeof buf, offset))
            return of;
    }
    return NULL;
}

static void threads_share_handles(struct pageout_file *file) {
    pthread_t threads[3];
    struct reader readers[3];
    int n;
    for (n = 0; n < 3; n++) {
        readers[n].file = file;
        readers[n].seed = (uint64_t)n + 1;
        CHECK(pthread_create(&threads[n], NULL, read_here_and_there, &readers[n]) == 0);
    }
    for (n = 0; n < 3; n++) {
        void *wrong = NULL;
        CHECK(pthread_join(threads[n], &wrong) == 0 && wrong == NULL);
    }
}

int main(int argc, char **argv) {
    struct pageout *cache = NULL;
    struct pageout_file *file = NULL, *other = NULL;
    struct pageout_page *held = NULL;
    const void *data = NULL;
    char buf[8];
    if (argc != 2)
        return 2;
    builds_or_says_why();
    null_is_an_error_or_nothing();
    make_file(argv[1]);
    FINE(pageout_new("{\"budget\": 8388608, \"groups\": {\"tenant\": {\"max\": 6291456}}}", &cache));
    CHECK(pageout_open(cache, "/no/such/file", PAGEOUT_READ, NULL, &file) == -ENOENT);
    CHECK(pageout_open(cache, argv[1], 1 << 20, NULL, &file) == -EINVAL);
    CHECK(pageout_open(cache, argv[1], PAGEOUT_READ, "nobody", &file) == -EINVAL && file == NULL);
    FINE(pageout_open(cache, argv[1], PAGEOUT_READ | PAGEOUT_RANDOM, "tenant", &file));
    FINE(pageout_open(cache, argv[1], PAGEOUT_READ, NULL, &other));
    reads_up_to_the_end(cache, file);
    reads_up_to_the_end(cache, other);
    holds_pages_in_place(file);
    too_many_held_pages_are_refused(cache, other);
    submits_and_polls(file);
    tells_kernel_files(cache);
    threads_share_handles(file);

    /* A handle outlives the cache's own, and a held page its file's. */
    pageout_free(cache);
    CHECK(pageout_pread(file, buf, sizeof buf, 8192) == 8 && is_right(buf, 8, 8192));
    FINE(pageout_page_get(other, 3, &data, &held));
    pageout_page_put(held);
    FINE(pageout_forget(file));
    CHECK(pageout_pread(other, buf, sizeof buf, 0) == -ESTALE);
    CHECK(strstr(pageout_strerror(-ESTALE), argv[1]) != NULL);
    pageout_close(file);
    pageout_close(other);
    CHECK(unlink(argv[1]) == 0);
    printf("%s: %d checks hold\n", argv[0], checks);
    return 0;
}
