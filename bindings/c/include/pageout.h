/*
 * pageout.h: a page cache that you link, for C.
 *
 * One budget for the process, the reclaim policies of Linux by their names, direct I/O, no runtime and no callbacks.
 * README.md beside this folder has an example. What the cache is and does, crates/live/README.md tells.
 *
 * RESULTS. A function returns 0 or a count where it has done what was asked, and a negative number where it has not: an errno
 * value, negated, as io_uring does. pageout_strerror() says in words what was wrong and what to do. Outputs (`struct ... **`)
 * are written only where the call succeeds. Nothing here sets errno.
 *
 *   -EINVAL           an argument, setting or name that can't be: a null pointer, an unknown key, a budget that is too small
 *   -ENOENT, -EACCES  no such file, kernel file or group; not allowed. What else the system answers is passed on as it is
 *   -EOPNOTSUPP       the file system has no direct I/O (PAGEOUT_BUFFERED reads without), or io_uring was demanded and is refused
 *   -ENFILE           more files, or bytes of files, are open than the cache was built for
 *   -EBADF            a write to a file that is open for reading only
 *   -EIO              the device has failed; and every sync of a file with pages that could not be written, until they are
 *                     written or pageout_acknowledge() is called. Such pages stay in memory, dirty and readable
 *   -ENOMEM           no memory for a page, and none to be had: the group's limit is too small, or guards hold too much
 *   -EBUSY            guards (pageout_page_get) hold a quarter of all frames, or the page that has to go
 *   -ESTALE           the file was forgotten, or somebody else has made it shorter
 *   -ENOTRECOVERABLE  the cache can't be used any more: it has panicked inside, or this is the child of a fork
 *
 * UNITS. Sizes and offsets are bytes. A page is 4096 bytes, and page N begins at byte N * 4096.
 *
 * THREADS. Any thread may call any function with any handle, at the same time as others, but for these: a batch is used by one
 * thread at a time, and so are the structs and buffers that are given to a call. A handle is not used while or after it is
 * freed. A child of fork() may use none of them (-ENOTRECOVERABLE), but may free them.
 *
 * No panic of the library crosses this boundary where it is built so that panics unwind (README.md has the command).
 */
#ifndef PAGEOUT_H
#define PAGEOUT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAGEOUT_PAGE_SIZE 4096

struct pageout;       /* a cache */
struct pageout_file;  /* an open file */
struct pageout_page;  /* a page that is held */
struct pageout_batch; /* reads that are under way */

/* ---- A cache ---- */

/*
 * Builds a cache. `json` is an object, or NULL for `{}`; a key that is not known is an error. With the defaults:
 *
 *   {"budget": 268435456,            bytes that the process grows by at most: frames, records, threads
 *    "files": 4294967296,            bytes of files that are open at once at most; 16 times the budget
 *    "policy": "mglru@6.12",         the kernel whose reclaim decides
 *    "sysctl": {},                   {"vm.swappiness": 60}: sysctls by their names
 *    "backend": "any",               "uring", "threads": by what is read that no thread waits for alone
 *    "io_threads": 8,                how many of the second
 *    "groups": {},                   {"tenant": {"max": BYTES, "high": BYTES, "low": BYTES, "min": BYTES}}, each of them optional
 *    "nodes": []}                    [{"numa_node": 0}, {"slow": BYTES, "numa_node": 1}] or [{"slow": BYTES, "delay_ns": 60}]
 *
 * Errors: -EINVAL, -EOPNOTSUPP, and what the system answers where it gives no memory or threads.
 */
int pageout_new(const char *json, struct pageout **cache);

/*
 * Lets go of a cache; NULL is none. Its memory goes with the last of its files, pages and batches, which work until they are
 * closed. What is dirty by then and was not synced is lost: pageout_sync() first.
 */
void pageout_free(struct pageout *cache);

/*
 * The text of a kernel file into `text`, with a NUL at its end: "/proc/vmstat", "/sys/kernel/debug/lru_gen",
 * "/sys/fs/cgroup/TENANT/memory.stat" ...; and two of our own, "describe", a line that says what the cache is, and "stats", what
 * it counts beside the kernel's counters. At most `size` bytes are written, the NUL among them, and the rest is left out.
 * Returns the length of the whole text without the NUL, as snprintf(3): it was all of it if that is less than `size`.
 * `text` may be NULL where `size` is 0.
 * Errors: -ENOENT, -EACCES.
 */
int64_t pageout_text(struct pageout *cache, const char *path, char *text, size_t size);

/*
 * Writes a kernel file, as a shell's `echo` does, and waits until that is done.
 * Errors: -ENOENT, -EACCES, -EINVAL.
 */
int pageout_text_write(struct pageout *cache, const char *path, const char *value);

/*
 * What was wrong, in words, given what a call has returned. Where that was this thread's last call that failed, the text names
 * the file, the page, and what to do; else it is general. Never NULL. The text lasts until the next call by this thread that
 * fails.
 */
const char *pageout_strerror(int64_t error);

/* ---- Files ---- */

#define PAGEOUT_READ 0     /* for reading: nobody may write it meanwhile */
#define PAGEOUT_RDWR 1     /* for reading and writing: the file is this cache's until it is forgotten */
#define PAGEOUT_BUFFERED 2 /* through the system's page cache: for file systems without direct I/O */
#define PAGEOUT_RANDOM 4   /* reads follow no order: nothing is read ahead */
#define PAGEOUT_CREATE 8   /* with PAGEOUT_RDWR: made if there is none */
#define PAGEOUT_STABLE 16  /* with PAGEOUT_RDWR: who writes to a page waits while its device has it: on btrfs it does anyway */

/*
 * Opens a file. `flags` are of PAGEOUT_READ ...; `group` is the name of the group that pays for pages brought in
 * through this handle, NULL for none. Handles of one file share its pages.
 * Errors: -ENOENT, -EACCES, -EOPNOTSUPP, -ENFILE, -EINVAL (no such group), and what open(2) answers.
 */
int pageout_open(struct pageout *cache, const char *path, int flags, const char *group, struct pageout_file **file);

/*
 * Closes a handle; NULL is none. Pages stay in memory as long as they are worth it, and dirty ones are written in time, but
 * nobody is told whether they were: pageout_sync() first.
 */
void pageout_close(struct pageout_file *file);

/*
 * Drops all pages of the file, after what is dirty was written. All handles of it answer -ESTALE from then on, but for its size and
 * for reads of nothing, as at its end; and they have to be closed, this one too.
 * Errors: -EBUSY where a page of it is held, -EIO where a page could not be written: nothing is dropped then.
 */
int pageout_forget(struct pageout_file *file);

/*
 * Takes the file as it is on disk: somebody else has written it. All its pages are dropped and read again when they are wanted,
 * and its length is that on disk. What was written here and not synced is lost. Handles go on; the descriptor stays open, so
 * that POSIX locks of the process on the file stay, too, which a close would end.
 * Errors: -EBUSY where a page of it is held, -EIO, -ENFILE, -ESTALE.
 */
int pageout_reload(struct pageout_file *file);

/* Bytes of the file as it is now, writes and truncation included. Errors: -EINVAL. */
int64_t pageout_size(struct pageout_file *file);

/*
 * Reads `size` bytes from `offset` on. Returns how many there were: fewer only where the file ends, as pread(2) on a file.
 * Errors: -EIO, -ENOMEM, -ESTALE.
 */
int64_t pageout_pread(struct pageout_file *file, void *buf, size_t size, uint64_t offset);

/*
 * Writes `size` bytes from `offset` on: all of them, or an error. Beyond the end the file grows, and what lies between reads as
 * zeroes. The bytes are in memory then, and on disk after pageout_sync(). It waits while too much is dirty, and does not fail
 * for that.
 * Errors: -EBADF, -EIO (a page that is written in part could not be read), -ENOMEM, -ESTALE.
 */
int64_t pageout_pwrite(struct pageout_file *file, const void *buf, size_t size, uint64_t offset);

#define PAGEOUT_SYNC_ALL 0  /* as fsync(2): data and all that is known of the file */
#define PAGEOUT_SYNC_DATA 1 /* as fdatasync(2): data, and what is needed to read it */

/*
 * Has all written that was written to the file before, by whichever handle, and the device flush its cache. After 0 it survives
 * the process, and a power cut as far as the device tells the truth. `how` is PAGEOUT_SYNC_ALL or PAGEOUT_SYNC_DATA.
 * Errors: -EIO while any page could not be written (see above), -EBADF, -ESTALE.
 */
int pageout_sync(struct pageout_file *file, int how);

/*
 * The caller knows that pages could not be written: syncs that find no other such page succeed again. The pages stay dirty and
 * are tried again. So are those that the device had taken and failed to keep, but for pages that had left memory by then, which
 * pageout_strerror() counts as lost: only who wrote them can write them again.
 * Errors: -ESTALE.
 */
int pageout_acknowledge(struct pageout_file *file);

/*
 * Makes the file so many bytes long, with zeroes where it grows.
 * Errors: -EBADF, -EBUSY where a page beyond is held, -EIO, -ESTALE.
 */
int pageout_truncate(struct pageout_file *file, uint64_t size);

/* ---- Pages in place ---- */

/*
 * Holds a page: it stays in memory, at `*data`, until it is put back, and must not be written to. Returns how many bytes of it
 * belong to the file: 4096, fewer for the last page. Pages are held for a look: a quarter of all frames may be, and whoever
 * writes to one waits.
 * Errors: -EINVAL beyond the end, -EBUSY, -EIO, -ENOMEM, -ESTALE.
 */
int64_t pageout_page_get(struct pageout_file *file, uint64_t page, const void **data, struct pageout_page **held);

/* Puts a page back; NULL is none. Any thread may. Its file may have been closed before. */
void pageout_page_put(struct pageout_page *held);

/* ---- Many reads at a time ---- */

struct pageout_read {
    void *buf;       /* where to */
    uint64_t size;   /* how much */
    uint64_t offset; /* from which byte of the file on */
    uint64_t done;   /* written by pageout_submit(): how much that is, less than `size` only where the file ends */
};

/*
 * Begins `n` reads and waits for none: what is in memory is copied at once, and the rest is in flight together, 32 pages at a
 * time. The buffers belong to the batch until pageout_poll() says that it is over, or it is cancelled; `reads` itself only until
 * this returns. Submit reads one by one where the order in which they end matters.
 * Errors: -EINVAL, -ESTALE; what else goes wrong pageout_poll() tells.
 */
int pageout_submit(struct pageout_file *file, struct pageout_read *reads, size_t n, struct pageout_batch **batch);

/*
 * Whether all reads of a batch are made, waiting so many milliseconds for that at most: 0 does not wait, -1 as long as it takes.
 * 1: they are, and the batch is freed. 0: not yet.
 * Errors, of any of its reads, after which it is freed, too, and the other reads are made: -EIO, -ENOMEM, -ESTALE.
 * -EINVAL (`batch` is NULL) frees nothing.
 */
int pageout_poll(struct pageout_batch *batch, int timeout_ms);

/* Gives the reads of a batch up, and frees it; NULL is none. Its buffers are left as they are then, and are the caller's. */
void pageout_cancel(struct pageout_batch *batch);

#ifdef __cplusplus
}
#endif

#endif
