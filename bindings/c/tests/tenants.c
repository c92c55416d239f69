/*
 * The header's promises on groups, advice, writes in place and regions, as C11 and as C++: each check is a sentence of pageout.h.
 * tenants FILE: a file that it may make, of a file system with direct I/O.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "pageout.h"

#define PAGE ((uint64_t)PAGEOUT_PAGE_SIZE)
#define PAGES 64

static unsigned char page_bytes[PAGEOUT_PAGE_SIZE];

/* The value of a line "NAME VALUE" of a text of the cache. */
static long long value_of(struct pageout *cache, const char *path, const char *name) {
    static char text[65536];
    const char *line = text;
    CHECK(FINE(pageout_text(cache, path, text, sizeof text)) < (int64_t)sizeof text);
    while (line != NULL) {
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ' ')
            return atoll(line + strlen(name) + 1);
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    fprintf(stderr, "%s has no %s\n", path, name);
    exit(1);
}

static void version_is_that_of_the_header(void) {
    char parts[64];
    CHECK(strcmp(pageout_version(), PAGEOUT_VERSION) == 0);
    snprintf(parts, sizeof parts, "%d.%d.%d", PAGEOUT_VERSION_MAJOR, PAGEOUT_VERSION_MINOR, PAGEOUT_VERSION_PATCH);
    CHECK(strcmp(parts, PAGEOUT_VERSION) == 0);
}

/* In memory of the budget's size, less is kept. Beyond its maximum, nothing changes. */
static void budget_changes_within_its_bounds(const char *path) {
    const uint64_t SMALL = 12 << 20, LARGE = 24 << 20;
    struct pageout *cache = NULL;
    struct pageout_file *file = NULL;
    uint64_t page;
    CHECK(pageout_budget(NULL) == -EINVAL);
    CHECK(pageout_set_budget(NULL, SMALL) == -EINVAL);
    FINE(pageout_new("{\"budget\": 12582912, \"budget_max\": 25165824}", &cache));
    CHECK(pageout_budget(cache) == (int64_t)SMALL);
    FINE(pageout_set_budget(cache, LARGE));
    CHECK(pageout_budget(cache) == (int64_t)LARGE);
    FINE(pageout_open(cache, path, PAGEOUT_RDWR | PAGEOUT_RANDOM, NULL, &file));
    for (page = 0; page < 16 << 8; page++)
        CHECK(FINE(pageout_pwrite(file, &page, sizeof page, page * PAGE)) == sizeof page);
    FINE(pageout_sync(file, PAGEOUT_SYNC_WRITE));
    CHECK(value_of(cache, "/proc/vmstat", "nr_file_pages") > (long long)(SMALL / PAGE));
    FINE(pageout_set_budget(cache, SMALL));
    CHECK(value_of(cache, "/proc/vmstat", "nr_file_pages") < (long long)(SMALL / PAGE));
    CHECK(pageout_set_budget(cache, LARGE + PAGE) == -EINVAL);
    CHECK(strstr(pageout_strerror(-EINVAL), "budget_max") != NULL);
    CHECK(pageout_set_budget(cache, 1) == -EINVAL);
    CHECK(pageout_budget(cache) == (int64_t)SMALL);
    for (page = 0; page < 16 << 8; page += 7) {
        uint64_t found = 0;
        CHECK(FINE(pageout_pread(file, &found, sizeof found, page * PAGE)) == sizeof found && found == page);
    }
    FINE(pageout_truncate(file, PAGES * PAGE));
    pageout_close(file);
    pageout_free(cache);
}

/* A setting of zswap in a cache without it is the caller's error. */
static void zswap_without_a_compressor_is_refused(struct pageout *cache) {
    CHECK(pageout_text_write(cache, "/sys/module/zswap/parameters/enabled", "1") == -EINVAL);
    CHECK(strstr(pageout_strerror(-EINVAL), "compressor") != NULL);
}

static void groups_come_and_go(struct pageout *cache, const char *path) {
    struct pageout_file *file = NULL;
    struct pageout_region *region = NULL;
    char text[64];
    int turn;
    CHECK(pageout_open(cache, path, PAGEOUT_READ, "query", &file) == -EINVAL && file == NULL);
    CHECK(strstr(pageout_strerror(-EINVAL), "pageout_group_new") != NULL);
    CHECK(pageout_group_new(cache, "query", "{\"most\": 1}") == -EINVAL);
    CHECK(pageout_group_new(cache, NULL, NULL) == -EINVAL);
    CHECK(pageout_group_new(NULL, "query", NULL) == -EINVAL);
    CHECK(pageout_group_remove(NULL, "query") == -EINVAL);
    CHECK(pageout_group_remove(cache, "query") == -ENOENT);
    for (turn = 0; turn < 100; turn++) {
        FINE(pageout_group_new(cache, "query", turn % 2 == 0 ? "{\"max\": 1048576}" : NULL));
        CHECK(pageout_group_new(cache, "query", NULL) == -EEXIST);
        FINE(pageout_text(cache, "/sys/fs/cgroup/query/memory.max", text, sizeof text));
        CHECK(strcmp(text, turn % 2 == 0 ? "1048576\n" : "max\n") == 0);
        FINE(pageout_open(cache, path, PAGEOUT_READ | PAGEOUT_RANDOM, "query", &file));
        CHECK(FINE(pageout_pread(file, text, 8, (uint64_t)(turn % PAGES) * PAGE)) == 8);
        CHECK(pageout_group_remove(cache, "query") == -EBUSY);
        pageout_close(file);
        FINE(pageout_region_new(cache, PAGE, "query", &region));
        CHECK(pageout_group_remove(cache, "query") == -EBUSY);
        pageout_region_free(region);
        FINE(pageout_group_remove(cache, "query"));
        CHECK(pageout_group_remove(cache, "query") == -ENOENT);
        CHECK(pageout_text(cache, "/sys/fs/cgroup/query/memory.max", text, sizeof text) == -ENOENT);
    }
    /* One of the key "groups", too. */
    FINE(pageout_group_remove(cache, "tenant"));
    FINE(pageout_group_new(cache, "tenant", NULL));
}

static void advice_is_taken(const char *path) {
    struct pageout *cache = NULL;
    struct pageout_file *file = NULL;
    char byte[8];
    long long reads, resident;
    FINE(pageout_new("{\"budget\": 8388608, \"io_threads\": 0, \"read_ahead\": 131072}", &cache));
    FINE(pageout_open(cache, path, PAGEOUT_READ | PAGEOUT_RANDOM, NULL, &file));
    CHECK(pageout_advise(NULL, PAGEOUT_ADVICE_NORMAL, 0, 0) == -EINVAL);
    CHECK(pageout_prefetch(NULL, 0, 0) == -EINVAL);
    CHECK(pageout_advise(file, 77, 0, 0) == -EINVAL);
    CHECK(pageout_advise(file, PAGEOUT_ADVICE_COLD, 0, 0) == -EINVAL);
    FINE(pageout_prefetch(file, 8 * PAGE, 8 * PAGE));
    FINE(pageout_prefetch(file, 1000 * PAGE, 1));
    FINE(pageout_prefetch(file, UINT64_MAX, UINT64_MAX));
    CHECK(value_of(cache, "stats", "resident") == 8);
    FINE(pageout_advise(file, PAGEOUT_ADVICE_WILLNEED, 16 * PAGE, PAGE));
    CHECK(value_of(cache, "stats", "resident") == 9);
    FINE(pageout_advise(file, PAGEOUT_ADVICE_SEQUENTIAL, 0, 0));
    FINE(pageout_pread(file, byte, 1, 20 * PAGE));
    FINE(pageout_pread(file, byte, 1, 21 * PAGE));
    CHECK(value_of(cache, "stats", "resident") > 12);
    FINE(pageout_advise(file, PAGEOUT_ADVICE_RANDOM, 0, 0));
    FINE(pageout_advise(file, PAGEOUT_ADVICE_NOREUSE, 0, 0));
    FINE(pageout_advise(file, PAGEOUT_ADVICE_NORMAL, 0, 0));
    reads = value_of(cache, "stats", "device_reads");
    FINE(pageout_pread(file, byte, 8, 9 * PAGE));
    CHECK(value_of(cache, "stats", "device_reads") == reads);
    FINE(pageout_prefetch(file, 0, 0));
    CHECK((resident = value_of(cache, "stats", "resident")) == PAGES);
    FINE(pageout_advise(file, PAGEOUT_ADVICE_DONTNEED, 0, 0));
    CHECK(value_of(cache, "stats", "resident") < resident);
    pageout_close(file);
    pageout_free(cache);
}

static void writes_pages_in_place(struct pageout *cache, const char *path) {
    struct pageout_file *file = NULL;
    struct pageout_page *held = NULL, *other = NULL;
    void *data = NULL;
    const void *seen;
    char byte = 0;
    int fd;
    FINE(pageout_open(cache, path, PAGEOUT_READ, NULL, &file));
    CHECK(pageout_page_get_mut(file, 3, &data, &held) == -EBADF && held == NULL);
    pageout_close(file);
    CHECK(pageout_page_get_mut(NULL, 3, &data, &held) == -EINVAL);
    FINE(pageout_open(cache, path, PAGEOUT_RDWR, NULL, &file));
    CHECK(pageout_page_get_mut(file, 3, NULL, &held) == -EINVAL);
    CHECK(pageout_page_get_mut(file, 3, &data, NULL) == -EINVAL);
    CHECK(pageout_page_get_mut(file, PAGES, &data, &held) == -EINVAL && held == NULL);
    CHECK(FINE(pageout_page_get_mut(file, 3, &data, &held)) == (int64_t)PAGE);
    memset(data, 7, PAGE);
    /* A page that this thread holds. */
    CHECK(pageout_page_get(file, 3, &seen, &other) == -EBUSY && other == NULL);
    CHECK(value_of(cache, "stats", "pinned") == 1);
    pageout_page_put(held);
    CHECK(value_of(cache, "stats", "pinned") == 0);
    FINE(pageout_page_get(file, 3, &seen, &other));
    CHECK(((const char *)seen)[0] == 7 && ((const char *)seen)[PAGE - 1] == 7);
    pageout_page_put(other);
    FINE(pageout_sync(file, PAGEOUT_SYNC_DATA));
    CHECK((fd = open(path, O_RDONLY)) >= 0);
    CHECK(pread(fd, &byte, 1, (off_t)(3 * PAGE + 99)) == 1 && byte == 7);
    CHECK(close(fd) == 0);
    pageout_close(file);
}

static void regions_are_larger_than_memory(struct pageout *cache) {
    enum { LARGE = 6000 };
    struct pageout_region *region = NULL, *other = NULL;
    struct pageout_page *held = NULL;
    const void *seen = NULL;
    void *data = NULL;
    uint64_t at, word;
    CHECK(pageout_region_new(cache, PAGE, "nobody", &region) == -EINVAL && region == NULL);
    CHECK(pageout_region_new(cache, PAGE, NULL, NULL) == -EINVAL);
    CHECK(pageout_region_new(NULL, PAGE, NULL, &region) == -EINVAL);
    CHECK(pageout_region_new(cache, UINT64_MAX, NULL, &region) == -EFBIG);
    CHECK(pageout_region_size(NULL) == -EINVAL && pageout_region_resize(NULL, 1) == -EINVAL);
    CHECK(pageout_region_read(NULL, &word, 8, 0) == -EINVAL && pageout_region_write(NULL, &word, 8, 0) == -EINVAL);
    CHECK(pageout_region_advise(NULL, PAGEOUT_ADVICE_COLD, 0, 0) == -EINVAL);
    CHECK(pageout_region_page_get(NULL, 0, &seen, &held) == -EINVAL);
    CHECK(pageout_region_page_get_mut(NULL, 0, &data, &held) == -EINVAL);
    pageout_region_free(NULL);
    FINE(pageout_region_new(cache, LARGE * PAGE, "tenant", &region));
    CHECK(pageout_region_size(region) == (int64_t)(LARGE * PAGE));
    CHECK(pageout_region_read(region, NULL, 8, 0) == -EINVAL && pageout_region_write(region, NULL, 8, 0) == -EINVAL);
    CHECK(pageout_region_read(region, NULL, 0, 0) == 0);
    CHECK(pageout_region_read(region, &word, 8, LARGE * PAGE - 7) == -EINVAL);
    word = 1;
    CHECK(FINE(pageout_region_read(region, &word, 8, 99)) == 8 && word == 0);
    for (at = 0; at < LARGE; at++) {
        word = at + 1;
        CHECK(FINE(pageout_region_write(region, &word, 8, at * PAGE + 16)) == 8);
    }
    for (at = 0; at < LARGE; at++)
        CHECK(FINE(pageout_region_read(region, &word, 8, at * PAGE + 16)) == 8 && word == at + 1);
    CHECK(value_of(cache, "/proc/vmstat", "pswpout") > 0);
    CHECK(FINE(pageout_region_page_get(region, 17, &seen, &held)) == (int64_t)PAGE);
    memcpy(&word, (const char *)seen + 16, 8);
    CHECK(word == 18);
    CHECK(pageout_region_resize(region, PAGE) == -EBUSY);
    pageout_page_put(held);
    CHECK(FINE(pageout_region_page_get_mut(region, 17, &data, &held)) == (int64_t)PAGE);
    memset(data, 9, PAGE);
    pageout_page_put(held);
    FINE(pageout_region_advise(region, PAGEOUT_ADVICE_COLD, 0, 0));
    FINE(pageout_region_advise(region, PAGEOUT_ADVICE_PAGEOUT, 17 * PAGE, PAGE));
    FINE(pageout_region_advise(region, PAGEOUT_ADVICE_WILLNEED, 17 * PAGE, PAGE));
    FINE(pageout_region_read(region, page_bytes, PAGE, 17 * PAGE));
    CHECK(page_bytes[0] == 9 && page_bytes[PAGE - 1] == 9);
    FINE(pageout_region_advise(region, PAGEOUT_ADVICE_FREE, 18 * PAGE, PAGE));
    FINE(pageout_region_advise(region, PAGEOUT_ADVICE_DONTNEED, 0, 0));
    CHECK(pageout_region_advise(region, PAGEOUT_ADVICE_RANDOM, 0, 0) == -EINVAL);
    FINE(pageout_region_read(region, &word, 8, 16));
    CHECK(word == 0);
    FINE(pageout_region_resize(region, 3 * PAGE + 5));
    CHECK(pageout_region_size(region) == (int64_t)(3 * PAGE + 5));
    CHECK(FINE(pageout_region_page_get(region, 3, &seen, &held)) == 5);
    pageout_region_free(region);
    /* It is held still. */
    CHECK(((const char *)seen)[0] == 0);
    pageout_page_put(held);
    FINE(pageout_region_new(cache, PAGE, NULL, &other));
    pageout_region_free(other);
}

static void mapped_regions_are_plain_memory(struct pageout *cache) {
    const uint64_t pages = 6144;
    struct pageout_map *map = NULL;
    volatile uint64_t *words;
    uint64_t page;
    int made = pageout_map_new(cache, pages * PAGE, "tenant", 2, &map);
    if (made == -EOPNOTSUPP) {
        /* Containers permit none, mostly. The text says which call. */
        CHECK(map == NULL && strstr(pageout_strerror(made), "help: use `Memory::region`") != NULL);
        return;
    }
    FINE(made);
    CHECK((words = (volatile uint64_t *)pageout_map_address(map)) != NULL);
    for (page = 0; page < pages; page++)
        words[page * 512] = page + 1;
    for (page = 0; page < pages; page++)
        CHECK(words[page * 512] == page + 1);
    CHECK(value_of(cache, "/proc/vmstat", "pswpout") > 1000);
    FINE(pageout_map_advise(map, PAGEOUT_ADVICE_PAGEOUT, 0, PAGE));
    FINE(pageout_map_advise(map, PAGEOUT_ADVICE_DONTNEED, 0, 8 * PAGE));
    CHECK(words[0] == 0 && words[8 * 512] == 9);
    CHECK(pageout_map_advise(map, PAGEOUT_ADVICE_WILLNEED, 0, PAGE) == -EINVAL);
    CHECK(pageout_map_advise(NULL, PAGEOUT_ADVICE_COLD, 0, PAGE) == -EINVAL);
    CHECK(pageout_map_error(map) == 0);
    CHECK(pageout_map_retry_lost(map) == 0);
    CHECK(pageout_map_retry_lost(NULL) == -EINVAL);
    pageout_map_free(map);
    pageout_map_free(NULL);
    CHECK(pageout_map_address(NULL) == NULL);
    CHECK(pageout_map_new(cache, PAGE, NULL, 65, &map) == -EINVAL);
    CHECK(pageout_map_new(cache, PAGE, NULL, -1, &map) == -EINVAL);
}

static void prometheus_text_names_group_and_file(struct pageout *cache, const char *path) {
    static char text[65536];
    struct pageout_file *file = NULL;
    char label[512];
    FINE(pageout_open(cache, path, PAGEOUT_READ, "tenant", &file));
    CHECK(FINE(pageout_text(cache, "prometheus", text, sizeof text)) < (int64_t)sizeof text);
    CHECK(strstr(text, "# TYPE pageout_misses_total counter\n") != NULL);
    CHECK(strstr(text, "pageout_group_misses_total{group=\"tenant\"} ") != NULL);
    snprintf(label, sizeof label, "pageout_file_hits_total{file=\"%s\"", path);
    CHECK(strstr(text, label) != NULL);
    pageout_close(file);
}

int main(int argc, char **argv) {
    char json[1024];
    struct pageout *cache = NULL;
    FILE *made;
    int at;
    CHECK(argc == 2);
    CHECK((made = fopen(argv[1], "w")) != NULL);
    for (at = 0; at < PAGES; at++) {
        memset(page_bytes, at + 1, sizeof page_bytes);
        CHECK(fwrite(page_bytes, sizeof page_bytes, 1, made) == 1);
    }
    CHECK(fclose(made) == 0);
    version_is_that_of_the_header();
    snprintf(json, sizeof json,
             "{\"budget\": 16777216, \"io_threads\": 0, \"groups\": {\"tenant\": {}}, \"swap\": {\"folder\": \"%.*s\", "
             "\"bytes\": 67108864}}",
             (int)(strrchr(argv[1], '/') - argv[1]), argv[1]);
    FINE(pageout_new(json, &cache));
    zswap_without_a_compressor_is_refused(cache);
    groups_come_and_go(cache, argv[1]);
    advice_is_taken(argv[1]);
    writes_pages_in_place(cache, argv[1]);
    regions_are_larger_than_memory(cache);
    mapped_regions_are_plain_memory(cache);
    prometheus_text_names_group_and_file(cache, argv[1]);
    pageout_free(cache);
    budget_changes_within_its_bounds(argv[1]);
    CHECK(unlink(argv[1]) == 0);
    printf("%s: %d checks hold\n", argv[0], checks);
    return 0;
}
