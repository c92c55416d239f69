/*
 * pageout.h: a page cache that you link, for C.
 *
 * One memory budget for the process, the reclaim policies of Linux by name, direct I/O, no callbacks.
 * Example: README.md next to this directory. Background: crates/live/README.md.
 *
 * READ THIS FIRST
 *
 *   Use it for    Programs that read large files, and programs whose own format survives a crash (a log, checksums, copies).
 *                 The interface may change with each version. No release has been in production for long: keep backups.
 *   Full disk     A write or sync returns -ENOSPC, -EDQUOT or -EFBIG within a second (each page, if the disk
 *                 takes some pages and not others). Pages that were accepted stay in memory,
 *                 dirty and readable, and are written when there is space. FULL DISK below has what to do.
 *   Locks         PAGEOUT_RDWR takes an exclusive flock(2): no other cache or process opens the file for writing (-EAGAIN).
 *                 PAGEOUT_OWN_LOCKS is for programs with locks of their own.
 *   Torn reads    A read within one page (4 KiB) never sees half of a concurrent write. A read or write of several pages is
 *                 not atomic: a 16 KiB read next to a 16 KiB write may return pages of both versions. If that matters, hold
 *                 your own lock around both. For a record within one page pageout_page_get() is such a lock: writers wait.
 *   Protection    "low" of a group depends on the policy. classic@6.12 keeps the group's pages while other groups have
 *                 reclaimable ones. MGLRU, as in Linux, skips the group once and then reclaims from it: use "min" there.
 *   Waits         A call that waits for a page held by its own thread, or by a thread that waits for it, returns -EBUSY after
 *                 0.1 s; any other wait for a held page ends with -EBUSY after 10 s.
 *   fork()        A child may only free its handles. Other calls return -ENOTRECOVERABLE. A child that touches the bytes of
 *                 a page from pageout_page_get() gets SIGSEGV: the cache's memory is not mapped in the child.
 *   Batches       The buffers of one batch must not overlap: -EINVAL.
 *   tmpfs         Linux accepts O_DIRECT on tmpfs and keeps the file in memory all the same. Each page is in memory twice.
 *
 * RESULTS. A function returns 0 or a count on success, and a negated errno value on failure, as io_uring does. pageout_strerror()
 * has the text: what is wrong and what to do. Arguments are checked first; after -EINVAL and -EFBIG nothing has changed. Outputs
 * (`struct ... **`) are written only on success. No function sets errno.
 *
 *   -EINVAL           invalid argument, setting or name: a null pointer, an unknown key, overlapping buffers, a `size` larger
 *                     than PTRDIFF_MAX, a budget that is too small
 *   -ENOENT, -EACCES  no such file, kernel file or group; not permitted. Other answers of the system are passed on unchanged
 *   -EOPNOTSUPP       the file system has no direct I/O (PAGEOUT_BUFFERED works there), or io_uring is required and refused, or
 *                     the system permits no mapped regions
 *   -ENFILE           more files, or bytes of files, would be open than the cache was built for ("files")
 *   -EEXIST           there is a group of this name
 *   -EBADF            write to a file that is open for reading only
 *   -ENOSPC, -EDQUOT  the device is full, or the disk quota is used up
 *   -EFBIG            the file would exceed what the file system or RLIMIT_FSIZE allows, or 2^63 - 1 bytes. The system sends
 *                     SIGXFSZ, too, when RLIMIT_FSIZE is reached: ignore that signal, or it ends the process
 *   -EIO              the device failed
 *   -ENOMEM           no memory for a page: the group's limit is too small, or guards hold too much
 *   -EBUSY            pages are held (pageout_page_get): a quarter of all frames, or the page that has to be dropped
 *   -EAGAIN           another cache or process has the file open for writing
 *   -ESTALE           the file was forgotten; or another process changed it: made it shorter, or wrote it while it had unwritten
 *                     pages here; or it was made shorter during this call, which may be made again
 *   -ENOTRECOVERABLE  the cache can't be used any more: it panicked inside, or this is the child of a fork
 *
 * FULL DISK. Which call returns which error, and what to do:
 *
 *   call               full device        broken device   then
 *   pageout_pwrite     -ENOSPC, -EDQUOT,  -EIO            The bytes of this call are not all in the file: write them again
 *   pageout_truncate   or -EFBIG                          later, or give them up. Earlier writes are unaffected.
 *   pageout_sync       the same           -EIO            Some pages are not on disk. They stay dirty and readable. Each sync of
 *                                                         the file fails until they are written or acknowledged:
 *                                                           1. make space (or repair the device),
 *                                                           2. pageout_acknowledge(), 3. pageout_sync().
 *                                                         Or cut the pages off with pageout_truncate(), then 2 and 3.
 *   pageout_forget     the same           -EIO            Nothing was dropped: as for pageout_sync. Or give the unwritten pages
 *                                                         up with pageout_forget_and_discard().
 *
 * pageout_pwrite() fails this way only if it has to wait for dirty pages that can't be written. Otherwise it succeeds in memory, and
 * pageout_sync() reports the full device. So success of a write does not mean that the disk has space for it.
 *
 * UNITS. Sizes and offsets are in bytes. A page is 4096 bytes; page N begins at byte N * 4096.
 *
 * THREADS. Any thread may call any function with any handle, at the same time as other threads. Two exceptions: one thread at a
 * time uses a batch, and one thread at a time uses the structs and buffers of a call. Do not use a handle during or after the call
 * that frees it.
 *
 * PANICS. No panic of the library crosses this boundary if it is built with a profile that unwinds (README.md has the command).
 */
#ifndef PAGEOUT_H
#define PAGEOUT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The version of this header. The interface may change with each minor version as long as the major version is 0, and the name of the
 * shared library (soname) changes with it.
 */
#define PAGEOUT_VERSION_MAJOR 0
#define PAGEOUT_VERSION_MINOR 2
#define PAGEOUT_VERSION_PATCH 0
#define PAGEOUT_VERSION "0.2.0"

/* Returns the version of the library, in the form of PAGEOUT_VERSION. */
const char *pageout_version(void);

#define PAGEOUT_PAGE_SIZE 4096

struct pageout;        /* a cache */
struct pageout_file;   /* an open file */
struct pageout_region; /* anonymous memory */
struct pageout_map;    /* anonymous memory by plain pointers */
struct pageout_page;   /* a page that is held */
struct pageout_batch;  /* reads in flight */

/* ---- A cache ---- */

/*
 * Builds a cache. `json` is an object; NULL means `{}`. Unknown and duplicate keys are errors. Keys and defaults:
 *
 *   {"budget": 268435456,            max bytes that the process grows by: frames, records, threads
 *    "budget_max": 268435456,        largest budget of pageout_set_budget(); default: the budget
 *    "files": 4294967296,            max bytes of open files, whose tables are reserved; default: any size, and tables are
 *                                    paid from the budget as they are used
 *    "policy": "classic@6.12",       the kernel whose reclaim policy is used
 *    "sysctl": {},                   sysctls by name: {"vm.swappiness": 60}
 *    "backend": "any",               how batches and readahead are read: "uring", "threads" or "any"
 *    "io_threads": 8,                number of threads of the backend "threads", max 1024
 *    "read_ahead": 131072,           bytes read ahead of a file at a time; default: queue/read_ahead_kb of the device in
 *                                    /sys/block, and at most budget / 64 or 131072, whichever is more
 *    "groups": {},                   {"tenant": {"max": BYTES, "high": BYTES, "low": BYTES, "min": BYTES}}, each optional
 *    "swap": null,                   {"folder": PATH, "bytes": BYTES, "buffered": false}: a swap file for regions
 *    "nodes": []}                    [{"numa_node": 0}, {"slow": BYTES, "numa_node": 1}] or [{"slow": BYTES, "delay_ns": 60}]
 *
 * Errors: -EINVAL, -EOPNOTSUPP, and the system's answer if it has no memory or threads.
 */
int pageout_new(const char *json, struct pageout **cache);

/*
 * Frees a cache; NULL is allowed. Its memory is freed with the last of its files, pages and batches, which work until then. Dirty
 * pages are written back at that moment, as far as the devices accept them. No call returns an error for pages that can't be
 * written: the library reports files with unwritten pages on stderr. Call pageout_sync() first to get the error.
 */
void pageout_free(struct pageout *cache);

/*
 * Changes the budget to `bytes`, and returns when the process has the new one. With a smaller one, pages move or are evicted, and the
 * system gets the memory back. The maximum is the key "budget_max". After an error the budget is unchanged.
 * Errors: -EINVAL below the minimum or above the maximum, -EBUSY if too many pages are held, -ENOMEM if regions are larger and there is
 * no swap file, the system's answer.
 */
int pageout_set_budget(struct pageout *cache, uint64_t bytes);

/*
 * Returns the current budget in bytes.
 * Errors: -EINVAL.
 */
int64_t pageout_budget(struct pageout *cache);

/*
 * Copies a kernel file's text into `text`, with a NUL at its end: "/proc/vmstat", "/sys/kernel/debug/lru_gen",
 * "/sys/fs/cgroup/TENANT/memory.stat" and so on. Three names are pageout's. "describe" is one line about the cache. "stats" has
 * counters that the kernel does not have. "prometheus" has all counters in Prometheus' text format. At most `size`
 * bytes are written, including the NUL; the rest is cut off.
 * Returns the length of the complete text without the NUL, as snprintf(3). `text` may be NULL if `size` is 0.
 * Errors: -EINVAL, -ENOENT, -EACCES.
 */
int64_t pageout_text(struct pageout *cache, const char *path, char *text, size_t size);

/*
 * Writes a kernel file, as `echo` does in a shell, and waits for the effect.
 * Errors: -EINVAL, -ENOENT, -EACCES.
 */
int pageout_text_write(struct pageout *cache, const char *path, const char *value);

/*
 * Returns the text of an error code. If the code is from this thread's last failed call, the text names the file, the page and
 * what to do; otherwise it is general. Never NULL. The text is valid until this thread's next failed call.
 */
const char *pageout_strerror(int64_t error);

/* ---- Groups ---- */

/*
 * Creates a group: a tenant, whose pages are counted, limited and protected together. `limits` is a JSON object with the keys "max",
 * "high", "low" and "min" in bytes, each optional; NULL means `{}`. Its kernel files are "/sys/fs/cgroup/NAME/memory.max" and so on.
 * Errors: -EINVAL, -EEXIST.
 */
int pageout_group_new(struct pageout *cache, const char *name, const char *limits);

/*
 * Removes a group, as rmdir(2) removes a cgroup: also one of the key "groups". Its name is free for another group. Pages that are
 * charged to it stay in memory until they are evicted.
 * Errors: -EINVAL, -ENOENT, -EBUSY while a handle of a file, or a region, is in the group.
 */
int pageout_group_remove(struct pageout *cache, const char *name);

/* ---- Files ---- */

#define PAGEOUT_READ 0     /* read only: no other process may write the file while it is open */
#define PAGEOUT_RDWR 1     /* read and write: the file belongs to this cache until it is forgotten */
#define PAGEOUT_BUFFERED 2 /* through the system's page cache: for file systems without direct I/O */
#define PAGEOUT_RANDOM 4   /* reads are in random order: no readahead */
#define PAGEOUT_CREATE 8   /* with PAGEOUT_RDWR: create the file if it does not exist */
#define PAGEOUT_STABLE 16  /* with PAGEOUT_RDWR: a writer waits while the device has its page; always so on btrfs */
#define PAGEOUT_OWN_LOCKS 32 /* with PAGEOUT_RDWR: take no flock(2), because the caller locks the file itself */

/*
 * Opens a file. `flags` is a combination of PAGEOUT_READ and so on. `group` names the group that is charged for pages read
 * through this handle; NULL means none. Handles of one file share its pages.
 * Errors: -ENOENT, -EACCES, -EOPNOTSUPP, -ENFILE, -EINVAL (unknown group or flag), -EAGAIN (PAGEOUT_RDWR, and another cache or
 * process has the file open for writing), and those of open(2).
 */
int pageout_open(struct pageout *cache, const char *path, int flags, const char *group, struct pageout_file **file);

/*
 * Closes a handle; NULL is allowed. Its pages stay in memory as long as the policy keeps them. Dirty pages are written later; no
 * call returns an error if that fails. Call pageout_sync() first to get the error.
 */
void pageout_close(struct pageout_file *file);

/*
 * Writes the dirty pages of a file, then drops all its pages. From then on all its handles return -ESTALE, except for the file's
 * size and reads at its end. Close the handles, this one too.
 * Errors: -EBUSY if a page is held; -EIO, -ENOSPC, -EDQUOT, -EFBIG if a page can't be written. Nothing is dropped then.
 */
int pageout_forget(struct pageout_file *file);

/*
 * The same, and gives up dirty pages that can't be written: they are lost.
 * Errors: -EBUSY if a page is held: nothing is dropped then.
 */
int pageout_forget_and_discard(struct pageout_file *file);

/*
 * Reads the file again because another process has written it: drops all its pages and takes its length from disk. Writes that
 * were not synced are lost. Handles stay valid. The file descriptor stays open, because closing it would release the process's
 * POSIX locks on the file.
 * Errors: -EBUSY if a page is held, -EIO, -ENFILE, -ESTALE.
 */
int pageout_reload(struct pageout_file *file);

/* Returns the file's length in bytes, including writes and truncations that are not synced. Errors: -EINVAL. */
int64_t pageout_size(struct pageout_file *file);

/*
 * Reads `size` bytes at `offset`. Returns the number of bytes read: less than `size` only at the end of the file, as pread(2).
 * Errors: -EINVAL, -EIO, -ENOMEM, -ESTALE.
 */
int64_t pageout_pread(struct pageout_file *file, void *buf, size_t size, uint64_t offset);

/*
 * Writes `size` bytes at `offset`: all of them, or an error, after which some of them may be written. A write beyond the end makes
 * the file longer, and the gap reads as zeroes. The bytes are in memory, and on disk after pageout_sync(). If too many pages are
 * dirty, the call waits until some are written.
 * Errors: -EINVAL, -EBADF, -EFBIG, -ENFILE, -ENOSPC, -EDQUOT, -EIO (also if the rest of a page can't be read), -ENOMEM, -ESTALE.
 */
int64_t pageout_pwrite(struct pageout_file *file, const void *buf, size_t size, uint64_t offset);

#define PAGEOUT_SYNC_ALL 0  /* as fsync(2): data and all metadata */
#define PAGEOUT_SYNC_DATA 1 /* as fdatasync(2): data, and the metadata needed to read it */
#define PAGEOUT_SYNC_WRITE 2 /* writes only, without a flush of the device's cache: the data survives the process */

/*
 * Writes all data that was written to the file before this call, through any handle, and flushes the device's cache. After 0 the
 * data survives the process, and a power loss if the device's flush works. `how` is one of the three above.
 * Errors: -ENOSPC, -EDQUOT, -EFBIG or -EIO while a page could not be written (FULL DISK above), -EINVAL, -EBADF, -ESTALE.
 */
int pageout_sync(struct pageout_file *file, int how);

/*
 * Acknowledges that pages could not be written: later syncs fail only for new failures. The pages stay dirty, and each sync tries
 * them again. If the device's flush failed, pages that the device had accepted are dirty again. Those that had left memory by then
 * may be lost: pageout_strerror() has their number, and only their writer can write them again.
 * Errors: -ESTALE.
 */
int pageout_acknowledge(struct pageout_file *file);

/*
 * Sets the file's length. Added bytes are zeroes. Dirty pages beyond a new end are dropped.
 * Errors: -EBADF, -EFBIG, -ENFILE, -EBUSY if a page beyond the end is held, -ENOSPC, -EDQUOT, -EIO, -ESTALE.
 */
int pageout_truncate(struct pageout_file *file, uint64_t size);

/* ---- Advice ---- */

#define PAGEOUT_ADVICE_NORMAL 0     /* of a file's handle: no order; pages are read ahead if reads follow each other */
#define PAGEOUT_ADVICE_SEQUENTIAL 1 /* of a file's handle: from front to back; readahead goes twice as far */
#define PAGEOUT_ADVICE_RANDOM 2     /* of a file's handle: random order; no readahead */
#define PAGEOUT_ADVICE_NOREUSE 3    /* of a file's handle: a read does not count as a use */
#define PAGEOUT_ADVICE_WILLNEED 4   /* of a range: pages are needed soon, and begin to be read */
#define PAGEOUT_ADVICE_DONTNEED 5   /* of a range: clean pages of a file are dropped; the contents of a region are freed */
#define PAGEOUT_ADVICE_COLD 6       /* of a region's range: pages are evicted before others */
#define PAGEOUT_ADVICE_PAGEOUT 7    /* of a region's range: pages are swapped out now */
#define PAGEOUT_ADVICE_FREE 8       /* of a region's range: contents may be lost when memory is short; a write keeps its page */

/*
 * States how a file will be used, as posix_fadvise(2). Advice of a handle ignores the range. A range of size 0 ends with the file; what
 * is beyond the end is ignored. WILLNEED reads as much as the kernel does, which is one request.
 * Errors: -EINVAL (also advice of regions), -ESTALE.
 */
int pageout_advise(struct pageout_file *file, int advice, uint64_t offset, uint64_t size);

/*
 * Starts to read a range completely, as far as memory is free, and does not wait. A range of size 0 ends with the file.
 * Errors: -EINVAL, -ESTALE.
 */
int pageout_prefetch(struct pageout_file *file, uint64_t offset, uint64_t size);

/* ---- Pages in place ---- */

/*
 * Holds a page for reading: it stays in memory at `*data` until pageout_page_put(). Do not write to it. Writers of the page wait.
 * Returns how many of its bytes belong to the file: 4096, or less for the last page. Hold pages briefly: at most a quarter of all
 * frames may be held.
 * Errors: -EINVAL beyond the end, -EBUSY, -EIO, -ENOMEM, -ESTALE.
 */
int64_t pageout_page_get(struct pageout_file *file, uint64_t page, const void **data, struct pageout_page **held);

/*
 * Holds a page for reading and writing in place until pageout_page_put(). It is dirty from now on. Readers and writers of the page wait,
 * and so does a sync of its file. The call waits for other holders. The page must be within the file: pageout_truncate() makes it longer.
 * Errors: those of pageout_page_get() and pageout_pwrite().
 */
int64_t pageout_page_get_mut(struct pageout_file *file, uint64_t page, void **data, struct pageout_page **held);

/* Releases a page; NULL is allowed. Any thread may do this, also after the file and the cache were closed. */
void pageout_page_put(struct pageout_page *held);

/* ---- Many reads at a time ---- */

struct pageout_read {
    void *buf;       /* destination; NULL only if `size` is 0 */
    uint64_t size;   /* bytes to read */
    uint64_t offset; /* first byte in the file */
    uint64_t done;   /* set by pageout_submit(): bytes that will be read, less than `size` only at the end of the file */
};

/*
 * Starts `n` reads without waiting. Pages in memory are copied immediately; the others are read with up to 32 pages in flight. The
 * buffers belong to the batch until pageout_poll() returns 1 or an error, or pageout_cancel(). They must not overlap each other or
 * `reads`. `reads` itself may be reused after the call. Submit reads one by one if the order of their completion matters.
 * Errors: -EINVAL (names the read, or the two reads that overlap), -ESTALE. Other errors are returned by pageout_poll().
 */
int pageout_submit(struct pageout_file *file, struct pageout_read *reads, size_t n, struct pageout_batch **batch);

/*
 * Checks whether all reads of a batch are complete, and waits up to `timeout_ms` milliseconds: 0 does not wait, a negative number
 * waits without limit. Returns 1 if they are complete (the batch is freed), 0 if not.
 * Errors of any read: -EIO, -ENOMEM, -ESTALE. The other reads are complete then, and the batch is freed. -EINVAL (`batch` is NULL)
 * frees nothing.
 */
int pageout_poll(struct pageout_batch *batch, int timeout_ms);

/* Cancels the reads of a batch and frees it; NULL is allowed. The buffers are the caller's again, and may be partly filled. */
void pageout_cancel(struct pageout_batch *batch);

/* ---- Regions ---- */

/*
 * Creates a region: anonymous memory of `size` bytes, which is reserved, not resident, and reads as zeroes until it is written. Its pages
 * are evicted to the swap file (key "swap" of pageout_new). Without one, all regions together must fit into memory. `group` names the
 * group that is charged; NULL means none. Nothing of a region outlives the process.
 * Errors: -EINVAL (unknown group), -ENOMEM (larger than memory, and no swap file), -ENFILE, -EFBIG.
 */
int pageout_region_new(struct pageout *cache, uint64_t size, const char *group, struct pageout_region **region);

/* Frees a region; NULL is allowed. Its memory and its slots are free when the last held page is put back. */
void pageout_region_free(struct pageout_region *region);

/* Returns the region's length in bytes. Errors: -EINVAL. */
int64_t pageout_region_size(struct pageout_region *region);

/*
 * Sets the region's length. Bytes beyond a new end are discarded; added bytes are zeroes.
 * Errors: -EINVAL, -EFBIG, -EBUSY if a page beyond the end is held, -ENOMEM, -ENFILE. Nothing has changed then.
 */
int pageout_region_resize(struct pageout_region *region, uint64_t size);

/*
 * Reads or writes `size` bytes at `offset`: all of them, or an error, after which some may be read or written. Returns `size`.
 * Errors: -EINVAL (also beyond the end), -ENOMEM (no memory, and swap is full), -EBUSY. If a page in swap can't be read, each access
 * returns the device's answer until the page is written completely or discarded.
 */
int64_t pageout_region_read(struct pageout_region *region, void *buf, size_t size, uint64_t offset);
int64_t pageout_region_write(struct pageout_region *region, const void *buf, size_t size, uint64_t offset);

/*
 * States how a range of a region will be used, as madvise(2): WILLNEED, DONTNEED, COLD, PAGEOUT or FREE. DONTNEED and FREE apply to the
 * pages that are completely in the range. A range of size 0 ends with the region.
 * Errors: -EINVAL (also advice of files), -EBUSY if a page of DONTNEED is held.
 */
int pageout_region_advise(struct pageout_region *region, int advice, uint64_t offset, uint64_t size);

/* Holds a page of a region, for reading and for writing, as pageout_page_get() and pageout_page_get_mut(). */
int64_t pageout_region_page_get(struct pageout_region *region, uint64_t page, const void **data, struct pageout_page **held);
int64_t pageout_region_page_get_mut(struct pageout_region *region, uint64_t page, void **data, struct pageout_page **held);

/* ---- Mapped regions ---- */

/*
 * Creates a mapped region: anonymous memory of `size` bytes that any code accesses by plain pointers. Otherwise it is like a region: the
 * budget, groups and the swap file are the same. `handlers` threads serve its faults, 1 to 64; 0 means the default, 4.
 *
 * It needs userfaultfd(2) and PAGEMAP_SCAN (Linux 6.7), which the system may refuse. An access that can't be served gets SIGBUS: a page in
 * swap can't be read, or there is no memory and swap is full. Such a page stays lost until pageout_map_advise() with DONTNEED discards it, or
 * pageout_map_retry_lost() has the next access try again.
 *
 * The range must not be unmapped, remapped or advised by calls of the system. It must not be the target of direct I/O or a registered buffer: a
 * device may write to a page that has left the region, and these bytes are lost. A child of a fork that touches it gets SIGSEGV.
 * Errors: -EOPNOTSUPP (the system refuses a call: the text names it), -EINVAL, -ENOMEM, -ENFILE, -EFBIG.
 */
int pageout_map_new(struct pageout *cache, uint64_t size, const char *group, int handlers, struct pageout_map **map);

/* Returns the address of the first byte, which is fixed until the region is freed. NULL for NULL. */
void *pageout_map_address(struct pageout_map *map);

/*
 * States how a range will be used, as madvise(2): DONTNEED, COLD, PAGEOUT or FREE. As pageout_region_advise().
 * Errors: -EINVAL.
 */
int pageout_map_advise(struct pageout_map *map, int advice, uint64_t offset, uint64_t size);

/* Returns why the last access got SIGBUS, once; 0 if there is no such access. */
int pageout_map_error(struct pageout_map *map);

/* Has the next access to each lost page try again. Returns how many pages were lost. */
int64_t pageout_map_retry_lost(struct pageout_map *map);

/* Frees a mapped region; NULL is allowed. No pointer into it may be used any more. */
void pageout_map_free(struct pageout_map *map);

#ifdef __cplusplus
}
#endif

#endif
