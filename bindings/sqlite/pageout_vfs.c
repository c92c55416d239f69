/*
 * A VFS of SQLite whose databases are read and written through a page cache with a budget: pageout.
 *
 *   connection ──► pager ──► this VFS ──► main database: pageout, direct I/O       the VFS below: its locks and shared memory
 *                                     ├─► its WAL: pageout, the same budget, until another process writes the WAL
 *                                     └─► journals, temporary files: the VFS below, all of it
 *
 * All connections of a process share one cache, and all connections to a database share one handle (`struct database`) and one of
 * its WAL (`struct log`). The VFS below opens both files as well, for the locks of the database and the syncs of the WAL.
 *
 * DURABILITY. A write is in the cache until xSync. SQLITE_FCNTL_SYNC and SQLITE_FCNTL_CKPT_DONE are syncs, too: SQLite sends them
 * at each sync, even if `PRAGMA synchronous=OFF` skips it. It deletes the journal or restarts the WAL only after that. So the
 * journal can repair the database of a killed process, whatever `synchronous` is.
 *
 * OTHER PROCESSES. As SQLite's own cache does, this one checks at the start of a read transaction whether the file has changed. It
 * uses the header's change counter, or the time and length of the file. With a WAL these don't change, so it uses the number of
 * pages that the index reports as copied (`struct copied`). After a foreign change all pages are read again. When a connection of
 * this process releases its write lock, no page is dirty. All connections of a process must use this VFS: closing a file releases
 * all POSIX locks of the process on it.
 *
 * A FULL DISK is SQLITE_FULL, whichever call finds it: ENOSPC, EDQUOT, EFBIG, and a database beyond the cache's `files`. The space
 * that a transaction needs is reserved before its first page is written (SQLITE_FCNTL_SIZE_HINT), so even `journal_mode=OFF` has
 * nothing to undo. Journals and temporary files are the files of the VFS below, with that one change (`other_said`).
 *
 * Not supported: memory maps (`PRAGMA mmap_size` has no effect: pages are copied) and batch atomic writes.
 */
#define _GNU_SOURCE /* fallocate */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "pageout.h"
#include "sqlite3ext.h"
SQLITE_EXTENSION_INIT1

/* Tries to drop unwritten pages: one of them may be held for a moment. */
enum { DROPS_MAX = 16 };

/* Which bytes of a database say that it has changed: the change counter, and the version that it is valid for. */
enum { HEADER = 100 };

/*
 * How much of the WAL is in the database: which WAL it is, and how many of its frames are copied. Frames of a WAL never change once they
 * may be copied. So pages that were read in this state are at least as new as the state, whenever the database is in it again.
 */
struct copied {
    uint32_t salts[2];
    uint32_t frames;
    int is_known; /* no connection was about to change it */
};

/* The words of a WAL's index, from https://www.sqlite.org/walformat.html: a header that is there twice, and how much is copied. */
enum { HEADER_WORDS = 12, LAST_FRAME = 4, SALTS = 8, COPIED = 2 * HEADER_WORDS };

/* The WAL of a database in the cache, shared by the connections of this process. Under the database's `lock`, except `is_left`. */
struct log {
    struct pageout_file *pages;
    int connections;
    int writers;                 /* connections of this process with a lock that excludes other writers of the WAL */
    int is_seen;                 /* `seen` is valid */
    uint32_t seen[HEADER_WORDS]; /* header of the WAL's index, when this process last wrote the WAL, or first read it */
    atomic_int is_left;          /* to the VFS below: another process has written the WAL. Changes only if there are no writers */
};

/* An open database, shared by its connections. */
struct database {
    struct database *next;
    struct pageout_file *pages;
    dev_t device;
    ino_t inode;
    int connections;      /* under `databases_lock` */
    int fd;               /* to check the file and to reserve space. Closed when no lock on the file is left */
    pthread_mutex_t lock; /* of the fields below, and held while pages are dropped */
    int writers;          /* connections of this process with a lock that excludes other writers */
    int indexes;          /* mapped by connections of this process */
    struct timespec seen_time; /* the file after the last sync or check of this process */
    off_t seen_size;
    struct copied seen_copied; /* state of the WAL in the oldest cached page */
    struct log log;
};

struct file {
    sqlite3_file base;
    struct database *database;
    sqlite3_int64 chunk; /* growth step of the file in bytes, 0: none */
    int level;           /* of SQLite's lock */
    int is_read_only;
    int has_written;   /* since the last sync */
    int is_writer;     /* by SQLite's lock */
    int is_copying;    /* a writer by the WAL's lock */
    int is_restarting; /* the WAL, and the cached pages include all copied frames */
    int is_beginning;  /* writes a WAL without copied frames, and the cached pages include the previous one */
    int is_unsure;     /* could not drop old pages */
    int failed;        /* why a checkpoint has failed, until SQLite gets the error: it ignores the outcome of the call that finds it */
    int has_no_room;   /* for SQLite's next write, which fails */
    int has_left_room; /* reserved beyond the end of the file, and unused */
    off_t room;        /* byte up to which a checkpoint has reserved space on disk */
    off_t grows_to;    /* the database, by a checkpoint */
    uint32_t was_copied;      /* before a checkpoint that has failed */
    volatile uint32_t *index; /* the WAL's, where it is mapped */
    char *name; /* of the database, for messages: SQLite's, as long as it is open */
    struct file *wal; /* of a database whose WAL was opened in the cache */
    struct file *next_main; /* of all databases that are open, under `databases_lock` */
    int keeps_wal_below;  /* as asked: `wal=kernel` */
    int is_logging;       /* a writer of the WAL, by the WAL's lock */
    int is_logging_alone; /* the same, by SQLite's lock of the database */
    /* Of a WAL only: */
    struct file *main;    /* its database, if the WAL was opened in the cache; NULL: the VFS below reads and writes it */
    sqlite3_int64 next;   /* end of the last frame that was written by this connection, -1: none since it got the lock */
    sqlite3_int64 header; /* place of the last frame header that was written */
    int is_commit;        /* which ends a transaction */
};

static sqlite3_vfs *below;
static struct pageout *cache;
static struct database *databases;
static struct file *mains; /* databases that connections have open */
static pthread_mutex_t databases_lock = PTHREAD_MUTEX_INITIALIZER;

static sqlite3_file *under(sqlite3_file *file) {
    return (sqlite3_file *)((char *)file + (sizeof(struct file) + 7) / 8 * 8);
}

static struct file *of(sqlite3_file *file) { return (struct file *)file; }

/* Errors of a device, a quota or a limit that has no space left. */
static int is_full(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

/* Converts an error of the cache to SQLite's, and writes its text to SQLite's log. */
static int told(const char *name, int64_t error, int as) {
    sqlite3_log(as, "pageout: %s: %s", name, pageout_strerror(error));
    switch (-error) {
    case ENOMEM: return SQLITE_IOERR_NOMEM;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENFILE: return SQLITE_FULL; /* ENFILE: the database would exceed the cache's `files` */
    case EBADF:
    case EROFS: return SQLITE_READONLY;
    default: return as;
    }
}

/* Converts a result of the VFS below to SQLITE_FULL if there was no space: it does so for ENOSPC of a write only. `errno` was 0 before. */
static int full_or(int said) { return (said & 0xff) == SQLITE_IOERR && is_full(errno) ? SQLITE_FULL : said; }

/* Whether a file can't be created in a folder because there is no space. The VFS below returns that it can't be opened, with the errno of its last try. */
static int has_no_space_for(const char *name) {
    char folder[4096];
    const char *end = name ? strrchr(name, '/') : NULL;
    struct statvfs space;
    int fd;
    if (!name || access(name, F_OK) == 0 || (end && (size_t)(end - name) >= sizeof folder - 1))
        return 0;
    sqlite3_snprintf((int)sizeof folder, folder, "%.*s", end ? (int)(end - name + 1) : 1, end ? name : ".");
    if (statvfs(folder, &space) == 0 && (space.f_bavail == 0 || (space.f_files > 0 && space.f_favail == 0)))
        return 1;
    fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd < 0 && is_full(errno);
}

static int opened_or_full(int opened, const char *name, int flags) {
    return (opened & 0xff) == SQLITE_CANTOPEN && (flags & SQLITE_OPEN_CREATE) && has_no_space_for(name) ? SQLITE_FULL : opened;
}

/* ---- Hooks for SQLite's tests ---- */

#ifdef SQLITE_TEST
/* They count down to an error, and count syncs, in SQLite's own VFS. This VFS does so in the same places, or they would not cover the database. */
extern int sqlite3_io_error_pending, sqlite3_io_error_persist, sqlite3_io_error_hit, sqlite3_io_error_hardhit, sqlite3_io_error_benign;
extern int sqlite3_diskfull_pending, sqlite3_diskfull, sqlite3_sync_count, sqlite3_fullsync_count;

static void has_failed(void) {
    sqlite3_io_error_hit++;
    if (!sqlite3_io_error_benign)
        sqlite3_io_error_hardhit++;
}

static int is_to_fail(void) {
    if (!(sqlite3_io_error_persist && sqlite3_io_error_hit) && sqlite3_io_error_pending-- != 1)
        return 0;
    has_failed();
    return 1;
}

static int is_to_be_full(void) {
    if (!sqlite3_diskfull_pending)
        return 0;
    if (sqlite3_diskfull_pending != 1) {
        sqlite3_diskfull_pending--;
        return 0;
    }
    has_failed();
    sqlite3_diskfull = sqlite3_io_error_hit = 1;
    return 1;
}

static void count_sync(int flags) {
    sqlite3_sync_count++;
    sqlite3_fullsync_count += (flags & 0x0F) == SQLITE_SYNC_FULL;
}
#else
static int is_to_fail(void) { return 0; }
static int is_to_be_full(void) { return 0; }
static void count_sync(int flags) { (void)flags; }
#endif

/* ---- Changes by other processes ---- */

/* Notes the state of the file on disk: a later difference is a change by another process. */
static void look(struct database *database) {
    struct stat now;
    if (fstat(database->fd, &now) != 0)
        return;
    database->seen_time = now.st_mtim;
    database->seen_size = now.st_size;
}

/* Whether another process has written the file since. The caller has a lock, so none is writing it now. */
static int has_changed(struct database *database) {
    struct stat now;
    unsigned char disk[HEADER], here[HEADER];
    ssize_t on_disk;
    if (fstat(database->fd, &now) != 0)
        return 0;
    if (database->seen_time.tv_sec != now.st_mtim.tv_sec || database->seen_time.tv_nsec != now.st_mtim.tv_nsec ||
        database->seen_size != now.st_size)
        return 1;
    /* Two writes within a tick of the kernel's clock have the same time. */
    on_disk = pread(database->fd, disk, sizeof disk, 0);
    return on_disk >= 0 && (pageout_pread(database->pages, here, sizeof here, 0) != on_disk || memcmp(disk, here, (size_t)on_disk) != 0);
}

/* Reads both headers of a WAL's index. */
static void read_headers(struct file *file, uint32_t headers[2][HEADER_WORDS]) {
    int word;
    for (word = 0; word < 2 * HEADER_WORDS; word++)
        headers[word / HEADER_WORDS][word % HEADER_WORDS] = file->index[word];
    atomic_thread_fence(memory_order_acquire);
}

static struct copied copied_as(struct file *file) {
    struct copied now = {{0, 0}, 0, 0};
    uint32_t headers[2][HEADER_WORDS];
    if (!file->index)
        return now;
    read_headers(file, headers);
    now.frames = file->index[COPIED];
    memcpy(now.salts, headers[0] + SALTS, sizeof now.salts);
    /* A restart of the WAL writes the second header, the first, and then 0 copied frames. A commit changes neither the salts nor that number. */
    now.is_known = memcmp(headers[0] + SALTS, headers[1] + SALTS, sizeof now.salts) == 0 && now.frames <= headers[0][LAST_FRAME] &&
                   now.frames <= headers[1][LAST_FRAME];
    return now;
}

static int is_copied_as_seen(const struct copied *seen, const struct copied *now) {
    return seen->is_known && now->is_known && memcmp(seen->salts, now->salts, sizeof now->salts) == 0 && seen->frames == now->frames;
}

/* The sign for a change by another process: in the WAL's index if it is mapped, or in the file; either; or none. */
enum sign { SIGN_OF_INDEX, ANY_SIGN, NO_SIGN };

static int is_old(struct file *file, const struct copied *now, enum sign sign) {
    struct database *database = file->database;
    /* All empty WALs are equal. */
    int is_empty = now->salts[0] == 0 && now->salts[1] == 0;
    if (sign == NO_SIGN || (file->index && !is_copied_as_seen(&database->seen_copied, now)))
        return 1;
    return (!file->index || is_empty || sign == ANY_SIGN) && has_changed(database);
}

/* Drops the pages if another process has written the file. `lock` is held. */
static int revalidate_locked(struct file *file, enum sign sign) {
    struct database *database = file->database;
    struct copied now = copied_as(file);
    int64_t said;
    if (database->writers || !is_old(file, &now, sign))
        return SQLITE_OK;
    /* Before pages are read: the next check finds writes from now on. */
    look(database);
    said = pageout_reload(database->pages);
    if (said < 0) {
        database->seen_size = -1;
        database->seen_copied.is_known = 0;
        return told(file->name, said, SQLITE_IOERR_READ);
    }
    if (file->index)
        database->seen_copied = now;
    return SQLITE_OK;
}

static int revalidate(struct file *file, enum sign sign) {
    int done;
    pthread_mutex_lock(&file->database->lock);
    done = revalidate_locked(file, sign);
    pthread_mutex_unlock(&file->database->lock);
    return done;
}

/* Syncs all writes of this connection. */
static int settle(struct file *file, int as) {
    struct database *database = file->database;
    int64_t said;
    if (!file->has_written)
        return SQLITE_OK;
    said = pageout_sync(database->pages, PAGEOUT_SYNC_DATA);
    if (said < 0) {
        /* SQLite rolls back after this error, and writes again: the next sync must report only new failures. */
        int failed = told(file->name, said, as);
        pageout_acknowledge(database->pages);
        return failed;
    }
    file->has_written = 0;
    pthread_mutex_lock(&database->lock);
    look(database);
    pthread_mutex_unlock(&database->lock);
    return SQLITE_OK;
}

/* ---- Who writes the WAL: see "The WAL" below ---- */

/* Leaves the WAL to the VFS below, for all connections of this process. No page of it is dirty. `lock` is held. */
static void leave_log(struct log *log) {
    int drops = 0;
    log->is_left = 1;
    while (pageout_forget_and_discard(log->pages) == -EBUSY && ++drops < DROPS_MAX)
        sched_yield();
}

/* Before a connection reads or writes the WAL: has another process written it? No page is dirty, as no connection is a writer. `lock` is held. */
static void check_log(struct file *file) {
    struct log *log = &file->database->log;
    uint32_t headers[2][HEADER_WORDS];
    int is_whole;
    if (!file->index || !log->pages || log->writers || log->is_left)
        return;
    read_headers(file, headers);
    is_whole = memcmp(headers[0], headers[1], sizeof headers[0]) == 0;
    if (log->is_seen && is_whole && memcmp(log->seen, headers[0], sizeof log->seen) == 0)
        return;
    /* The first check of a WAL: nothing has been read, but the file may be longer than when it was opened. */
    if (!log->is_seen && is_whole && pageout_reload(log->pages) == 0) {
        memcpy(log->seen, headers[0], sizeof log->seen);
        log->is_seen = 1;
    } else {
        leave_log(log);
    }
}

/* The WAL counts towards `files`. Leaves it to the VFS below if this connection needs more; returns whether it has. */
static int has_left_log(struct file *file) {
    struct database *database = file->database;
    struct log *log = &database->log;
    int is_so;
    pthread_mutex_lock(&database->lock);
    is_so = log->pages && !log->is_left && log->writers == file->is_logging + file->is_logging_alone &&
            pageout_sync(log->pages, PAGEOUT_SYNC_WRITE) == 0;
    if (is_so)
        leave_log(log);
    pthread_mutex_unlock(&database->lock);
    return is_so;
}

/* A write of this connection has failed, and SQLite rolls the transaction back. Drops its dirty pages: they would be written later. */
static void drop_transaction(struct database *database) {
    int drops = 0;
    pthread_mutex_lock(&database->lock);
    while (pageout_reload(database->log.pages) < 0 && ++drops < DROPS_MAX)
        sched_yield();
    pthread_mutex_unlock(&database->lock);
    /* The next write must report only new failures. */
    pageout_acknowledge(database->log.pages);
}

/* This connection has just got a lock that excludes other writers of the WAL. `lock` is held. */
static void begin_logging(struct file *file, int *is_so) {
    if (!file->wal || *is_so)
        return;
    check_log(file);
    file->database->log.writers++;
    file->wal->next = -1;
    *is_so = 1;
}

/* The connection is about to release one. A transaction that was rolled back can leave dirty pages, which must not be written later. */
static int end_logging(struct file *file, int *is_so) {
    struct database *database = file->database;
    struct log *log = &database->log;
    uint32_t headers[2][HEADER_WORDS];
    int64_t said;
    if (!*is_so)
        return SQLITE_OK;
    said = log->is_left ? 0 : pageout_sync(log->pages, PAGEOUT_SYNC_WRITE);
    if (said < 0)
        drop_transaction(database);
    pthread_mutex_lock(&database->lock);
    log->is_seen = 0;
    if (file->index && !log->is_left) {
        read_headers(file, headers);
        memcpy(log->seen, headers[0], sizeof log->seen);
        log->is_seen = memcmp(headers[0], headers[1], sizeof headers[0]) == 0;
    }
    *is_so = 0;
    log->writers--;
    pthread_mutex_unlock(&database->lock);
    return said < 0 ? told(file->wal->name, said, SQLITE_IOERR_WRITE) : SQLITE_OK;
}

/* ---- Space on disk ---- */

/* Writes the database, and gives the WAL to the VFS below if both together exceed `files`. */
static int64_t write_database(struct file *file, const void *buf, size_t size, sqlite3_int64 offset) {
    int64_t said = pageout_pwrite(file->database->pages, buf, size, (uint64_t)offset);
    if (said == -ENFILE && has_left_log(file))
        said = pageout_pwrite(file->database->pages, buf, size, (uint64_t)offset);
    return said;
}

static int has_room(struct file *file, off_t offset, off_t size) {
    int said;
    do
        said = fallocate(file->database->fd, FALLOC_FL_KEEP_SIZE, offset, size);
    while (said != 0 && errno == EINTR);
    if (said == 0 || !is_full(errno))
        return 1;
    /* It may have got a part of it. */
    file->has_left_room = 1;
    return 0;
}

/* Releases unused reserved space. All writes are on disk, and no other process may write. */
static void give_room_back(struct file *file) {
    struct stat now;
    if (fstat(file->database->fd, &now) == 0 && now.st_size == (off_t)pageout_size(file->database->pages) && ftruncate(file->database->fd, now.st_size) == 0)
        file->has_left_room = 0;
}

/*
 * Whether a database may grow to `size`, by RLIMIT_FSIZE, the disk, and the cache. SQLite asks this before a transaction writes its first
 * page, and the space is reserved. The byte is the place of SQLite's next last page.
 */
static int may_become(struct file *file, sqlite3_int64 size) {
    struct pageout_file *pages = file->database->pages;
    sqlite3_int64 now = pageout_size(pages);
    off_t from = now / PAGEOUT_PAGE_SIZE * PAGEOUT_PAGE_SIZE, end = (size + PAGEOUT_PAGE_SIZE - 1) / PAGEOUT_PAGE_SIZE * PAGEOUT_PAGE_SIZE;
    struct rlimit limit;
    int64_t said;
    if (now < 0 || size <= now)
        return SQLITE_OK;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && (rlim_t)end > limit.rlim_cur)
        return SQLITE_FULL;
    if (!has_room(file, from, end - from))
        return SQLITE_FULL;
    said = write_database(file, "", 1, size - 1);
    if (said < 0)
        return told(file->name, said, SQLITE_IOERR_WRITE);
    file->has_written = 1;
    return SQLITE_OK;
}

/* ---- Write locks ---- */

/* This connection has just got one of the two locks that exclude other writers. */
static void begin_writing(struct file *file, int *is_so) {
    file->database->writers += !*is_so;
    *is_so = 1;
}

/*
 * The connection is about to release one. Pages that could not be written are dropped: later they would overwrite other processes'
 * writes. A journal has their contents, or a WAL in which they don't count as copied.
 */
static int end_writing(struct file *file, int *is_so) {
    struct database *database = file->database;
    int settled, drops = 0;
    if (!*is_so)
        return SQLITE_OK;
    file->failed = SQLITE_OK;
    file->has_no_room = 0;
    settled = settle(file, SQLITE_IOERR_UNLOCK);
    pthread_mutex_lock(&database->lock);
    *is_so = 0;
    database->writers--;
    if (settled != SQLITE_OK) {
        file->has_written = 0;
        while (revalidate_locked(file, NO_SIGN) != SQLITE_OK && ++drops < DROPS_MAX)
            sched_yield();
    }
    if (file->has_left_room && database->writers == 0)
        give_room_back(file);
    pthread_mutex_unlock(&database->lock);
    return settled;
}

/* The cached pages include all copied frames. */
static void note_copied(struct file *file) {
    pthread_mutex_lock(&file->database->lock);
    file->database->seen_copied = copied_as(file);
    pthread_mutex_unlock(&file->database->lock);
}

/* Another WAL has begun, without copied frames. The cached pages include all of the previous one, unless they could not be dropped since. */
static void note_begun(struct file *file) {
    struct database *database = file->database;
    struct copied now;
    pthread_mutex_lock(&database->lock);
    now = copied_as(file);
    if (database->seen_copied.is_known && now.is_known && now.frames == 0)
        database->seen_copied = now;
    pthread_mutex_unlock(&database->lock);
}

/* Runs at exit, for programs that don't close their databases. */
static void settle_all(void) {
    struct database *database;
    pthread_mutex_lock(&databases_lock);
    for (database = databases; database; database = database->next)
        pageout_sync(database->pages, PAGEOUT_SYNC_DATA);
    pthread_mutex_unlock(&databases_lock);
}

/*
 * ---- A checkpoint that fails ----
 *
 * SQLite writes a WAL's pages and sends SQLITE_FCNTL_CKPT_DONE, whose outcome it ignores. If all of the WAL is copied, it then truncates
 * and syncs the database: one of these calls returns the error. It copies only a part if there are older readers or a commit meanwhile.
 * Then SQLite counts that part as copied immediately, and releases the lock that excludes readers of the database alone. The VFS
 * corrects the count there. A transaction that starts in between can miss unwritten pages until the next commit. Only a broken device can
 * cause this, and not a full one: space for a page is reserved before it is written.
 */

static void begin_checkpoint(struct file *file) {
    file->failed = SQLITE_OK;
    file->grows_to = file->room = 0;
}

static void end_checkpoint(struct file *file, int settled) {
    file->failed = settled;
    file->was_copied = file->index ? file->index[COPIED] : 0;
}

/* Returns the error once: SQLite gives up then. */
static int take_failure(struct file *file) {
    int failed = file->failed;
    file->failed = SQLITE_OK;
    return failed;
}

/* SQLite did not get the error: frames that it has counted as copied since are not. */
static void put_back_copied(struct file *file) {
    if (take_failure(file) != SQLITE_OK && file->index)
        file->index[COPIED] = file->was_copied;
}

/* Bytes reserved at a time. */
enum { ROOM_STEP = 1 << 20 };

/*
 * Reserves space for a page that is copied, if the file system supports it. It reserves complete cache pages, because these are written,
 * and ahead of the page, because SQLite copies pages in order.
 */
static int make_room(struct file *file, int size, off_t offset) {
    int fd = file->database->fd;
    off_t from = offset / PAGEOUT_PAGE_SIZE * PAGEOUT_PAGE_SIZE;
    off_t end = (offset + size + PAGEOUT_PAGE_SIZE - 1) / PAGEOUT_PAGE_SIZE * PAGEOUT_PAGE_SIZE;
    off_t ahead = file->grows_to < from + ROOM_STEP ? file->grows_to : from + ROOM_STEP;
    if (!file->is_copying || end <= file->room)
        return SQLITE_OK;
    /* Up to the next hole, or the end of the file: beyond the last hole, space may be reserved already. */
    file->room = lseek(fd, from, SEEK_HOLE);
    if (end <= file->room)
        return SQLITE_OK;
    if (ahead > end && has_room(file, from, ahead - from))
        file->room = ahead;
    else if (has_room(file, from, end - from))
        file->room = end;
    else
        return SQLITE_FULL;
    return SQLITE_OK;
}

/* ---- A main database ---- */

/*
 * The setup of the cache: PAGEOUT_SQLITE, and threads as backend. A killed process ends, and loses its locks, after the writes of its
 * threads. A write that io_uring has accepted can reach the disk later, over newer data of the next process.
 */
static char *setup_of_cache(void) {
    const char *asked = getenv("PAGEOUT_SQLITE"), *keys;
    if (!asked)
        asked = "{\"budget\": 67108864}";
    keys = asked + strspn(asked, " \t\r\n");
    if (*keys != '{' || strstr(keys, "\"backend\""))
        return sqlite3_mprintf("%s", asked);
    keys += 1 + strspn(keys + 1, " \t\r\n");
    return sqlite3_mprintf("{\"backend\": \"threads\"%s%s", *keys == '}' ? "" : ", ", keys);
}

/* The cache of the process, which is built for the first database. */
static int cache_of_all(struct pageout **to) {
    int64_t said = 0;
    if (!cache) {
        char *setup = setup_of_cache();
        said = setup ? pageout_new(setup, &cache) : -ENOMEM;
        if (said == 0)
            atexit(settle_all);
        /* A transaction that does not fit into SQLite's own cache writes the same pages many times, and its end writes all dirty pages. So most
         * earlier writes by the flusher are in vain, and only the next reads need clean pages. The kernel's ratios are of all memory, which many programs
         * share, and limit a loss of data; here they would be a fifth of the budget. */
        if (said == 0 && !strstr(setup, "vm.dirty_")) {
            pageout_text_write(cache, "/proc/sys/vm/dirty_ratio", "90");
            pageout_text_write(cache, "/proc/sys/vm/dirty_background_ratio", "80");
        }
        sqlite3_free(setup);
    }
    *to = cache;
    return (int)said;
}

static int acquire(const char *name, int is_buffered, struct database **to) {
    struct stat now;
    struct database *database;
    struct pageout *built;
    /* SQLite's locks, in the VFS below, regulate writers. */
    int flags = PAGEOUT_RDWR | PAGEOUT_OWN_LOCKS | (is_buffered ? PAGEOUT_BUFFERED : 0);
    int64_t said;
    if (stat(name, &now) != 0)
        return SQLITE_CANTOPEN;
    for (database = databases; database; database = database->next) {
        if (database->device == now.st_dev && database->inode == now.st_ino) {
            database->connections++;
            *to = database;
            return SQLITE_OK;
        }
    }
    if ((said = cache_of_all(&built)) != 0)
        return told("the cache (PAGEOUT_SQLITE)", said, SQLITE_CANTOPEN);
    database = (struct database *)calloc(1, sizeof *database);
    if (!database)
        return SQLITE_NOMEM;
    said = pageout_open(built, name, flags, NULL, &database->pages);
    if (said == -EACCES || said == -EROFS || said == -EPERM)
        said = pageout_open(built, name, flags & ~(PAGEOUT_RDWR | PAGEOUT_OWN_LOCKS), NULL, &database->pages);
    database->fd = said < 0 ? -1 : open(name, O_RDWR | O_CLOEXEC);
    if (said == 0 && database->fd < 0)
        database->fd = open(name, O_RDONLY | O_CLOEXEC);
    if (said < 0 || database->fd < 0) {
        int failed = said < 0 ? told(name, said, SQLITE_CANTOPEN) : SQLITE_CANTOPEN;
        pageout_close(database->pages);
        free(database);
        return failed == SQLITE_CANTOPEN || failed == SQLITE_IOERR_NOMEM ? failed : SQLITE_CANTOPEN;
    }
    /* The header only: other pages should not fill the system's page cache. */
    posix_fadvise(database->fd, 0, 0, POSIX_FADV_RANDOM);
    database->device = now.st_dev;
    database->inode = now.st_ino;
    database->connections = 1;
    pthread_mutex_init(&database->lock, NULL);
    /* The first lock checks the file: it may have been replaced since its length was read. */
    database->seen_size = -1;
    database->next = databases;
    databases = database;
    *to = database;
    return SQLITE_OK;
}

/* The last connection drops the pages: closing their descriptor later would release locks. */
static void release(struct database *database) {
    struct database **link = &databases;
    if (--database->connections > 0)
        return;
    while (*link != database)
        link = &(*link)->next;
    *link = database->next;
    /* Unwritten pages were reported, and a journal or a WAL has them. If they stayed, they would be written later, over other processes' writes. */
    if (pageout_forget(database->pages) < 0)
        pageout_forget_and_discard(database->pages);
    pageout_close(database->pages);
    close(database->fd);
    pthread_mutex_destroy(&database->lock);
    free(database);
}

static void unmap_index(struct file *file) {
    pthread_mutex_lock(&file->database->lock);
    file->database->indexes -= file->index != NULL;
    file->index = NULL;
    pthread_mutex_unlock(&file->database->lock);
}

static int file_close(sqlite3_file *file) {
    int settled = settle(of(file), SQLITE_IOERR_CLOSE);
    struct file **one;
    int closed;
    end_writing(of(file), &of(file)->is_copying);
    end_writing(of(file), &of(file)->is_writer);
    unmap_index(of(file));
    pthread_mutex_lock(&databases_lock);
    for (one = &mains; *one != of(file); one = &(*one)->next_main)
        ;
    *one = of(file)->next_main;
    pthread_mutex_unlock(&databases_lock);
    closed = under(file)->pMethods->xClose(under(file));
    pthread_mutex_lock(&databases_lock);
    release(of(file)->database);
    pthread_mutex_unlock(&databases_lock);
    return settled ? settled : closed;
}

/* How often a file may be truncated during a read of a page. */
enum { CUTS_MAX = 16 };

static int file_read(sqlite3_file *file, void *buf, int size, sqlite3_int64 offset) {
    struct file *our = of(file);
    int64_t there;
    int cuts = 0, seen = our->is_unsure ? revalidate(our, SIGN_OF_INDEX) : SQLITE_OK;
    if (seen != SQLITE_OK)
        return seen;
    our->is_unsure = 0;
    /* A checkpoint of another process writes complete cache pages, and then truncates the file: the length seen may be one in between. */
    do
        there = pageout_pread(our->database->pages, buf, (size_t)size, (uint64_t)offset);
    while (there == -ESTALE && cuts++ < CUTS_MAX && revalidate(our, NO_SIGN) == SQLITE_OK);
    if (is_to_fail())
        return SQLITE_IOERR_READ;
    if (there < 0)
        return told(our->name, there, SQLITE_IOERR_READ);
    if (there == size)
        return SQLITE_OK;
    memset((char *)buf + there, 0, (size_t)(size - there));
    return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *buf, int size, sqlite3_int64 offset) {
    int64_t said;
    if (of(file)->is_read_only)
        return SQLITE_READONLY;
    /* Returned once: SQLite's next writes undo the failed ones. */
    if (of(file)->has_no_room) {
        of(file)->has_no_room = 0;
        return SQLITE_FULL;
    }
    of(file)->has_written = 1;
    of(file)->failed = SQLITE_OK; /* of an earlier checkpoint */
    if (make_room(of(file), size, offset) != SQLITE_OK)
        return SQLITE_FULL;
    said = write_database(of(file), buf, (size_t)size, offset);
    if (is_to_fail())
        return SQLITE_IOERR_WRITE;
    if (is_to_be_full())
        return SQLITE_FULL;
    return said < 0 ? told(of(file)->name, said, SQLITE_IOERR_WRITE) : SQLITE_OK;
}

static sqlite3_int64 in_chunks(struct file *file, sqlite3_int64 size) {
    return file->chunk > 0 ? (size + file->chunk - 1) / file->chunk * file->chunk : size;
}

static int resize(struct file *file, sqlite3_int64 size) {
    int64_t said;
    if (file->is_read_only)
        return SQLITE_READONLY;
    file->has_written = 1;
    said = pageout_truncate(file->database->pages, (uint64_t)size);
    if (said == -ENFILE && has_left_log(file))
        said = pageout_truncate(file->database->pages, (uint64_t)size);
    return said < 0 ? told(file->name, said, SQLITE_IOERR_TRUNCATE) : SQLITE_OK;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size) {
    if (of(file)->failed != SQLITE_OK)
        return take_failure(of(file));
    return is_to_fail() ? SQLITE_IOERR_TRUNCATE : resize(of(file), in_chunks(of(file), size));
}

static int file_sync(sqlite3_file *file, int flags) {
    int settled;
    if (is_to_be_full())
        return SQLITE_FULL;
    count_sync(flags);
    if (of(file)->failed != SQLITE_OK)
        return take_failure(of(file));
    /* With any flags: the metadata needed to read the data is synced, and no other matters. */
    settled = settle(of(file), SQLITE_IOERR_FSYNC);
    return is_to_fail() ? SQLITE_IOERR_FSYNC : settled;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size) {
    int64_t said = pageout_size(of(file)->database->pages);
    if (is_to_fail())
        return SQLITE_IOERR_FSTAT;
    if (said < 0)
        return told(of(file)->name, said, SQLITE_IOERR_FSTAT);
    *size = said;
    return SQLITE_OK;
}

static int file_lock(sqlite3_file *file, int level) {
    struct file *our = of(file);
    int locked = under(file)->pMethods->xLock(under(file), level);
    int done = SQLITE_OK;
    if (locked != SQLITE_OK)
        return locked;
    pthread_mutex_lock(&our->database->lock);
    if (our->level == SQLITE_LOCK_NONE && level >= SQLITE_LOCK_SHARED)
        done = revalidate_locked(our, SIGN_OF_INDEX);
    else if (our->level == SQLITE_LOCK_SHARED && level == SQLITE_LOCK_EXCLUSIVE)
        /* From now on a WAL without index and locks. Without a mapped index, there is no other sign of frames that others copied since the read began. */
        done = revalidate_locked(our, our->index ? SIGN_OF_INDEX : NO_SIGN);
    /* A writer of a WAL does not change the database, and others may copy meanwhile. */
    if (done == SQLITE_OK && (our->index ? level == SQLITE_LOCK_EXCLUSIVE : level > SQLITE_LOCK_SHARED))
        begin_writing(our, &our->is_writer);
    if (done == SQLITE_OK && level == SQLITE_LOCK_EXCLUSIVE)
        begin_logging(our, &our->is_logging_alone);
    pthread_mutex_unlock(&our->database->lock);
    if (done != SQLITE_OK)
        under(file)->pMethods->xUnlock(under(file), our->level);
    else if (level > our->level)
        our->level = level;
    return done;
}

static int file_unlock(sqlite3_file *file, int level) {
    int logged = SQLITE_OK, settled = SQLITE_OK, unlocked;
    if (level < SQLITE_LOCK_EXCLUSIVE)
        logged = end_logging(of(file), &of(file)->is_logging_alone);
    /* Other processes may check the file from now on. */
    if (level <= SQLITE_LOCK_SHARED)
        settled = end_writing(of(file), &of(file)->is_writer);
    if (settled == SQLITE_OK)
        settled = logged;
    unlocked = under(file)->pMethods->xUnlock(under(file), level);
    /* Whatever the result: SQLite continues as if it had succeeded, and one check too many does no harm. */
    if (level < of(file)->level)
        of(file)->level = level;
    return unlocked ? unlocked : settled;
}

static int file_check_reserved_lock(sqlite3_file *file, int *is_reserved) {
    return under(file)->pMethods->xCheckReservedLock(under(file), is_reserved);
}

static int file_control(sqlite3_file *file, int op, void *arg) {
    struct file *our = of(file);
    sqlite3_int64 size;
    int said = SQLITE_OK;
    switch (op) {
    /* These write the file, or make the VFS below write it: this VFS handles them alone. */
    case SQLITE_FCNTL_CHUNK_SIZE: our->chunk = *(int *)arg; return SQLITE_OK;
    case SQLITE_FCNTL_SIZE_HINT:
        size = in_chunks(our, *(sqlite3_int64 *)arg);
        /* An application may send it, too, while another process extends the file. */
        if (!our->is_writer && !our->is_copying)
            return SQLITE_OK;
        our->grows_to = *(sqlite3_int64 *)arg;
        if (!our->is_copying) {
            /* SQLite ignores the outcome, and writes next. */
            said = may_become(our, our->grows_to);
            our->has_no_room = said == SQLITE_FULL;
            /* Without space there is no chunk: it would be a hole. */
            if (said != SQLITE_OK || our->chunk <= 0 || may_become(our, size) != SQLITE_OK)
                return said;
        }
        return our->chunk > 0 && size > pageout_size(our->database->pages) ? resize(our, size) : SQLITE_OK;
    case SQLITE_FCNTL_BEGIN_ATOMIC_WRITE:
    case SQLITE_FCNTL_COMMIT_ATOMIC_WRITE:
    case SQLITE_FCNTL_ROLLBACK_ATOMIC_WRITE: return SQLITE_NOTFOUND;
    case SQLITE_FCNTL_SYNC: said = settle(our, SQLITE_IOERR_FSYNC); break;
    case SQLITE_FCNTL_CKPT_START: begin_checkpoint(our); break;
    case SQLITE_FCNTL_CKPT_DONE:
        said = settle(our, SQLITE_IOERR_FSYNC);
        end_checkpoint(our, said);
        break;
    case SQLITE_FCNTL_VFSNAME:
        said = under(file)->pMethods->xFileControl(under(file), op, arg);
        if (said == SQLITE_OK)
            *(char **)arg = sqlite3_mprintf("pageout/%z", *(char **)arg);
        return said;
    default: break;
    }
    return said ? said : under(file)->pMethods->xFileControl(under(file), op, arg);
}

static int file_sector_size(sqlite3_file *file) { return under(file)->pMethods->xSectorSize(under(file)); }

static int file_device_characteristics(sqlite3_file *file) {
    return under(file)->pMethods->xDeviceCharacteristics(under(file)) & ~SQLITE_IOCAP_BATCH_ATOMIC;
}

static int file_shm_map(sqlite3_file *file, int region, int size, int may_extend, void volatile **at) {
    struct file *our = of(file);
    int mapped;
    errno = 0;
    mapped = full_or(under(file)->pMethods->xShmMap(under(file), region, size, may_extend, at));
    if ((mapped != SQLITE_OK && mapped != SQLITE_READONLY) || region != 0 || !*at || our->index)
        return mapped;
    pthread_mutex_lock(&our->database->lock);
    our->index = (volatile uint32_t *)*at;
    /* While no connection of this process had it, it may have been deleted and replaced. */
    if (our->database->indexes++ == 0)
        our->database->seen_copied.is_known = our->database->log.is_seen = 0;
    pthread_mutex_unlock(&our->database->lock);
    return mapped;
}

/* Locks of a WAL, from https://www.sqlite.org/walformat.html: its writer; its checkpoint; readers of the database alone, or a checkpoint; the first of its readers. */
enum { WRITER_LOCK = 0, COPIER_LOCK = 1, DATABASE_LOCK = 3, FIRST_READER_LOCK = 4 };

/* `lock` of the database is held. Under the new exclusive lock, the connection changes the state that others left. */
static int has_shm_locked(struct file *our, int offset, int n) {
    struct copied now = copied_as(our);
    int is_as_seen = is_copied_as_seen(&our->database->seen_copied, &now);
    if (offset <= COPIER_LOCK && COPIER_LOCK < offset + n) {
        /* Frames that others have copied are read again before this copy: a page of SQLite may be smaller than a cache page. A process that died or failed in a copy has left
         * another length. */
        int done = revalidate_locked(our, our->index ? ANY_SIGN : NO_SIGN);
        if (done == SQLITE_OK)
            begin_writing(our, &our->is_copying);
        return done;
    }
    if (offset == WRITER_LOCK) {
        our->is_beginning = is_as_seen && now.frames == 0;
        begin_logging(our, &our->is_logging);
    } else if (offset == DATABASE_LOCK)
        our->failed = SQLITE_OK; /* of an interrupted checkpoint in exclusive mode, where nothing was asked or unlocked after it */
    else if (offset == FIRST_READER_LOCK && n > 1)
        our->is_restarting = is_as_seen;
    return SQLITE_OK;
}

/* The same locks are about to be released. */
static int before_shm_unlock(struct file *our, int offset, int n) {
    if (offset <= COPIER_LOCK && COPIER_LOCK < offset + n) {
        if (our->is_copying)
            note_copied(our);
        return end_writing(our, &our->is_copying);
    }
    if (offset == WRITER_LOCK) {
        if (our->is_beginning)
            note_begun(our);
        our->is_beginning = 0;
        return end_logging(our, &our->is_logging);
    }
    if (offset == DATABASE_LOCK) {
        put_back_copied(our);
    } else if (offset == FIRST_READER_LOCK && n > 1 && our->is_restarting) {
        note_begun(our);
        our->is_restarting = 0;
    }
    return SQLITE_OK;
}

static int file_shm_lock(sqlite3_file *file, int offset, int n, int flags) {
    struct file *our = of(file);
    int is_exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
    int locked, done = SQLITE_OK;
    if (flags & SQLITE_SHM_UNLOCK) {
        if (is_exclusive)
            done = before_shm_unlock(our, offset, n);
        locked = under(file)->pMethods->xShmLock(under(file), offset, n, flags);
        return locked ? locked : done;
    }
    locked = under(file)->pMethods->xShmLock(under(file), offset, n, flags);
    if (locked != SQLITE_OK)
        return locked;
    pthread_mutex_lock(&our->database->lock);
    if (is_exclusive)
        done = has_shm_locked(our, offset, n);
    else if (!our->index)
        done = revalidate_locked(our, SIGN_OF_INDEX);
    pthread_mutex_unlock(&our->database->lock);
    if (done != SQLITE_OK)
        under(file)->pMethods->xShmLock(under(file), offset, n, (flags & ~SQLITE_SHM_LOCK) | SQLITE_SHM_UNLOCK);
    return done;
}

/* A reader of the WAL now has its lock, and has read the number of copied frames. It will not read those from the WAL, so the cached pages must include them. At the lock it is too early to check: more may be copied since. */
static void file_shm_barrier(sqlite3_file *file) {
    struct file *our = of(file);
    under(file)->pMethods->xShmBarrier(under(file));
    /* The header is half written while this connection starts or restarts a WAL. */
    if (our->index && !our->is_restarting && !(our->is_beginning && our->index[COPIED] == 0))
        our->is_unsure = revalidate(our, SIGN_OF_INDEX) != SQLITE_OK;
    pthread_mutex_lock(&our->database->lock);
    check_log(our);
    pthread_mutex_unlock(&our->database->lock);
}

static int file_shm_unmap(sqlite3_file *file, int is_deleted) {
    unmap_index(of(file));
    return under(file)->pMethods->xShmUnmap(under(file), is_deleted);
}

static int file_fetch(sqlite3_file *file, sqlite3_int64 offset, int size, void **at) {
    (void)file, (void)offset, (void)size;
    *at = NULL; /* SQLite reads then */
    return SQLITE_OK;
}

static int file_unfetch(sqlite3_file *file, sqlite3_int64 offset, void *at) {
    (void)file, (void)offset, (void)at;
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
    3,
    file_close,
    file_read,
    file_write,
    file_truncate,
    file_sync,
    file_size,
    file_lock,
    file_unlock,
    file_check_reserved_lock,
    file_control,
    file_sector_size,
    file_device_characteristics,
    file_shm_map,
    file_shm_lock,
    file_shm_barrier,
    file_shm_unmap,
    file_fetch,
    file_unfetch,
};

/* The same below a VFS that has no shared memory. */
static const sqlite3_io_methods methods_without_wal = {
    1,
    file_close,
    file_read,
    file_write,
    file_truncate,
    file_sync,
    file_size,
    file_lock,
    file_unlock,
    file_check_reserved_lock,
    file_control,
    file_sector_size,
    file_device_characteristics,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
};

/*
 * ---- The WAL ----
 *
 * A connection reads and writes it in the cache, in the budget of the database. This is invisible to other processes:
 *
 * - Their reads find each commit. The last frame of a transaction has the size of the database in its header, and SQLite publishes a
 *   transaction in the index after its last frame. When that frame is written, it and all earlier ones go to the device before the write
 *   returns. So a commit also survives the process.
 * - Their writes are noticed. Each commit and each restart changes the index's header. A reader reads the header, with a barrier, before it
 *   reads frames; a writer has the lock, too. There this VFS compares the header with that of the last write of this process
 *   (`check_log`). If it differs, the VFS below takes over: processes that share a WAL need one cache, which is the kernel's. Frames
 *   up to those in a reader's header never change while it reads, so it does not matter which cache has them.
 * - Nothing is written late. When a connection releases its lock on writes, no page of the WAL is dirty.
 *
 * In exclusive mode there may be no index. The lock of the database excludes others then. The VFS below also takes over if the database and
 * the WAL together exceed the cache's `files`.
 */

/* Sizes of a WAL's headers, and the place of a frame's size of the database: https://www.sqlite.org/fileformat.html. */
enum { WAL_HEADER = 32, FRAME_HEADER = 24, FRAME_COMMIT = 4 };

/*
 * Returns true if SQLite itself has passed both names. They are in one block then: the database, its parameters, its journal, its WAL. A VFS
 * above this one may pass copies, to which sqlite3_database_file_object() must not be applied. Reads only between the two names.
 */
static int are_of_sqlite(const char *database, const char *wal) {
    const uintptr_t block_max = 65536, from = (uintptr_t)database, to = (uintptr_t)wal;
    const size_t length = strlen(database), journal = length + sizeof "-journal";
    if (to <= from || to - from > block_max || to - from <= length + journal)
        return 0;
    if (strncmp(wal, database, length) != 0 || strcmp(wal + length, "-wal") != 0)
        return 0;
    return memcmp(wal - journal, database, length) == 0 && memcmp(wal - sizeof "-journal", "-journal", sizeof "-journal") == 0;
}

/* Returns the database of a WAL that the cache can have, or NULL. */
static struct file *main_of(const char *name, int flags) {
    struct file *one, *main = NULL;
    if (!(flags & SQLITE_OPEN_WAL) || sqlite3_libversion_number() < 3032000)
        return NULL;
    pthread_mutex_lock(&databases_lock);
    for (one = mains; one; one = one->next_main)
        if (are_of_sqlite(one->name, name) && (!main || (uintptr_t)one->name > (uintptr_t)main->name))
            main = one;
    pthread_mutex_unlock(&databases_lock);
    if (!main || sqlite3_database_file_object(name) != &main->base)
        return NULL;
    return !main->wal && !main->is_read_only && !main->keeps_wal_below ? main : NULL;
}

/* Opens it in the cache, if its file system allows direct I/O; else the VFS below keeps it. */
static void begin_wal(const char *name, struct file *wal, struct file *main) {
    struct database *database = main->database;
    struct log *log = &database->log;
    pthread_mutex_lock(&database->lock);
    if (!log->pages && pageout_open(cache, name, PAGEOUT_RDWR | PAGEOUT_OWN_LOCKS, NULL, &log->pages) < 0)
        log->pages = NULL;
    if (log->pages) {
        log->connections++;
        wal->name = (char *)name;
        wal->main = main;
        wal->header = -1;
        main->wal = wal;
        if (main->level == SQLITE_LOCK_EXCLUSIVE)
            begin_logging(main, &main->is_logging_alone);
    }
    pthread_mutex_unlock(&database->lock);
}

/* The connection closes it, whatever its writes have come to: SQLite has the error. */
static void close_wal(struct file *wal) {
    struct file *main = wal->main;
    struct log *log;
    if (!main)
        return;
    end_logging(main, &main->is_logging);
    end_logging(main, &main->is_logging_alone);
    log = &main->database->log;
    pthread_mutex_lock(&main->database->lock);
    if (--log->connections == 0) {
        if (pageout_forget(log->pages) < 0)
            pageout_forget_and_discard(log->pages);
        pageout_close(log->pages);
        memset(log, 0, sizeof *log);
    }
    main->wal = wal->main = NULL;
    pthread_mutex_unlock(&main->database->lock);
}

/* Returns the WAL in the cache, or NULL: the VFS below reads and writes this file. */
static struct pageout_file *pages_of(struct file *other) {
    struct file *main = other->main;
    /* A connection with `readonly_shm=1` may have neither an index nor the lock: nothing tells it what others write. */
    if (!main || (!main->index && main->level != SQLITE_LOCK_EXCLUSIVE))
        return NULL;
    return main->database->log.is_left ? NULL : main->database->log.pages;
}

/* Whether the VFS below has taken over since `pages_of`. */
static int is_left_since(struct file *wal, int64_t said) { return said == -ESTALE && wal->main->database->log.is_left; }

/* Returns what a read came to. The bytes beyond the end are 0. */
static int wal_was_read(struct file *wal, int64_t there, void *buf, int size) {
    if (is_to_fail())
        return SQLITE_IOERR_READ;
    if (there < 0)
        return told(wal->name, there, SQLITE_IOERR_READ);
    if (there == size)
        return SQLITE_OK;
    memset((char *)buf + there, 0, (size_t)(size - there));
    return SQLITE_IOERR_SHORT_READ;
}

/* Whether a commit is complete with this write, or a new WAL begins. SQLite writes a frame's header, then its page; or, at the end of a transaction, headers of frames again. */
static int ends_commit(struct file *wal, const unsigned char *buf, int size, sqlite3_int64 offset) {
    int is_frame = wal->header >= 0 && offset == wal->header + FRAME_HEADER && size != FRAME_HEADER;
    if (size == FRAME_HEADER && offset >= WAL_HEADER) {
        int is_again = wal->next >= 0 && offset != wal->next;
        wal->header = offset;
        wal->is_commit = buf[FRAME_COMMIT] || buf[FRAME_COMMIT + 1] || buf[FRAME_COMMIT + 2] || buf[FRAME_COMMIT + 3];
        return is_again && wal->is_commit;
    }
    if (is_frame || offset == 0)
        wal->next = offset + size;
    /* A header that starts the WAL again is written before any of its frames: behind the old header, they would leave some of the old ones valid. */
    return offset == 0 || (is_frame && wal->is_commit);
}

/* Returns what a write came to, after the commit that it may end. */
static int wal_was_written(struct file *wal, struct pageout_file *pages, int64_t said, const void *buf, int size, sqlite3_int64 offset) {
    if (is_to_fail())
        return SQLITE_IOERR_WRITE;
    if (is_to_be_full())
        return SQLITE_FULL;
    if (said >= 0 && ends_commit(wal, (const unsigned char *)buf, size, offset))
        said = pageout_sync(pages, PAGEOUT_SYNC_WRITE);
    if (said >= 0)
        return SQLITE_OK;
    drop_transaction(wal->main->database);
    return told(wal->name, said, SQLITE_IOERR_WRITE);
}

/* ---- Journals, WAL and temporary files ---- */

/* Converts a result of the VFS below for such a file: it keeps the errno. */
static int other_said(sqlite3_file *file, int said) {
    int error = 0;
    if ((said & 0xff) != SQLITE_IOERR || under(file)->pMethods->xFileControl(under(file), SQLITE_FCNTL_LAST_ERRNO, &error) != SQLITE_OK)
        return said;
    return is_full(error) ? SQLITE_FULL : said;
}

static int other_close(sqlite3_file *file) {
    close_wal(of(file));
    return under(file)->pMethods->xClose(under(file));
}
static int other_read(sqlite3_file *file, void *buf, int size, sqlite3_int64 offset) {
    struct pageout_file *pages = pages_of(of(file));
    if (pages) {
        int64_t there = pageout_pread(pages, buf, (size_t)size, (uint64_t)offset);
        if (!is_left_since(of(file), there))
            return wal_was_read(of(file), there, buf, size);
    }
    return under(file)->pMethods->xRead(under(file), buf, size, offset);
}
static int other_write(sqlite3_file *file, const void *buf, int size, sqlite3_int64 offset) {
    struct pageout_file *pages = pages_of(of(file));
    if (pages) {
        int64_t said = pageout_pwrite(pages, buf, (size_t)size, (uint64_t)offset);
        if (said != -ENFILE || !has_left_log(of(file)->main))
            return wal_was_written(of(file), pages, said, buf, size, offset);
    }
    return other_said(file, under(file)->pMethods->xWrite(under(file), buf, size, offset));
}
static int other_truncate(sqlite3_file *file, sqlite3_int64 size) {
    struct pageout_file *pages = pages_of(of(file));
    if (pages) {
        int64_t said = pageout_truncate(pages, (uint64_t)size);
        return said < 0 ? told(of(file)->name, said, SQLITE_IOERR_TRUNCATE) : SQLITE_OK;
    }
    return other_said(file, under(file)->pMethods->xTruncate(under(file), size));
}
static int other_sync(sqlite3_file *file, int flags) {
    /* The commits of a WAL in the cache are on the device. Those of other processes are in the kernel's cache. */
    return other_said(file, under(file)->pMethods->xSync(under(file), flags));
}
static int other_size(sqlite3_file *file, sqlite3_int64 *size) {
    struct pageout_file *pages = pages_of(of(file));
    int64_t said = pages ? pageout_size(pages) : 0;
    if (!pages || is_left_since(of(file), said))
        return under(file)->pMethods->xFileSize(under(file), size);
    if (said < 0)
        return told(of(file)->name, said, SQLITE_IOERR_FSTAT);
    *size = said;
    return SQLITE_OK;
}
static int other_lock(sqlite3_file *file, int level) { return under(file)->pMethods->xLock(under(file), level); }
static int other_unlock(sqlite3_file *file, int level) { return under(file)->pMethods->xUnlock(under(file), level); }
static int other_control(sqlite3_file *file, int op, void *arg) {
    int said;
    /* The VFS below would write the file. */
    if (pages_of(of(file)) && (op == SQLITE_FCNTL_SIZE_HINT || op == SQLITE_FCNTL_CHUNK_SIZE))
        return SQLITE_OK;
    said = under(file)->pMethods->xFileControl(under(file), op, arg);
    return op == SQLITE_FCNTL_LAST_ERRNO ? said : other_said(file, said);
}
static int other_device_characteristics(sqlite3_file *file) { return under(file)->pMethods->xDeviceCharacteristics(under(file)); }
static int other_fetch(sqlite3_file *file, sqlite3_int64 offset, int size, void **at) {
    if (of(file)->main)
        return file_fetch(file, offset, size, at);
    return under(file)->pMethods->xFetch(under(file), offset, size, at);
}
static int other_unfetch(sqlite3_file *file, sqlite3_int64 offset, void *at) {
    if (of(file)->main)
        return SQLITE_OK;
    return under(file)->pMethods->xUnfetch(under(file), offset, at);
}
static int other_shm_map(sqlite3_file *file, int region, int size, int may_extend, void volatile **at) {
    return under(file)->pMethods->xShmMap(under(file), region, size, may_extend, at);
}
static int other_shm_lock(sqlite3_file *file, int offset, int n, int flags) {
    return under(file)->pMethods->xShmLock(under(file), offset, n, flags);
}
static void other_shm_barrier(sqlite3_file *file) { under(file)->pMethods->xShmBarrier(under(file)); }
static int other_shm_unmap(sqlite3_file *file, int is_deleted) { return under(file)->pMethods->xShmUnmap(under(file), is_deleted); }

static const sqlite3_io_methods methods_of_others = {
    3,
    other_close,
    other_read,
    other_write,
    other_truncate,
    other_sync,
    other_size,
    other_lock,
    other_unlock,
    file_check_reserved_lock,
    other_control,
    file_sector_size,
    other_device_characteristics,
    other_shm_map,
    other_shm_lock,
    other_shm_barrier,
    other_shm_unmap,
    other_fetch,
    other_unfetch,
};

/* The same below a VFS that has no maps. */
static const sqlite3_io_methods methods_of_others_without_maps = {
    1,
    other_close,
    other_read,
    other_write,
    other_truncate,
    other_sync,
    other_size,
    other_lock,
    other_unlock,
    file_check_reserved_lock,
    other_control,
    file_sector_size,
    other_device_characteristics,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
};

static int open_other(const char *name, sqlite3_file *file, int flags, int *out_flags) {
    struct file *main = main_of(name, flags);
    int opened;
    memset(of(file), 0, sizeof *of(file));
    file->pMethods = under(file)->pMethods = NULL;
    opened = below->xOpen(below, name, under(file), flags, out_flags);
    if (opened != SQLITE_OK) {
        if (under(file)->pMethods)
            under(file)->pMethods->xClose(under(file));
        return opened_or_full(opened, name, flags);
    }
    if (main)
        begin_wal(name, of(file), main);
    file->pMethods = under(file)->pMethods->iVersion >= 3 ? &methods_of_others : &methods_of_others_without_maps;
    return SQLITE_OK;
}

/* ---- The VFS ---- */

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags) {
    struct file *our = of(file);
    struct stat now;
    const char *wal;
    int opened, has_moved = 0, got = 0;
    (void)vfs;
    if (!(flags & SQLITE_OPEN_MAIN_DB) || !name)
        return open_other(name, file, flags, out_flags);
    memset(our, 0, sizeof *our);
    wal = sqlite3_uri_parameter(name, "wal");
    if (wal && strcmp(wal, "budget") != 0 && strcmp(wal, "kernel") != 0) {
        sqlite3_log(SQLITE_CANTOPEN, "pageout: %s: found wal=%s, expected wal=budget or wal=kernel", name, wal);
        return SQLITE_CANTOPEN;
    }
    /* A folder or a device can't be cached in pages. */
    if (stat(name, &now) == 0 && !S_ISREG(now.st_mode))
        return below->xOpen(below, name, file, flags, out_flags);
    opened = below->xOpen(below, name, under(file), flags, &got);
    if (opened == SQLITE_OK) {
        pthread_mutex_lock(&databases_lock);
        opened = acquire(name, sqlite3_uri_boolean(name, "buffered", 0), &our->database);
        /* Another file may have its name now: its pages would be under locks of the old one. */
        if (opened == SQLITE_OK && under(file)->pMethods->xFileControl(under(file), SQLITE_FCNTL_HAS_MOVED, &has_moved) == SQLITE_OK && has_moved) {
            release(our->database);
            opened = SQLITE_CANTOPEN;
        }
        pthread_mutex_unlock(&databases_lock);
        if (opened != SQLITE_OK)
            under(file)->pMethods->xClose(under(file));
    }
    if (opened != SQLITE_OK)
        return opened_or_full(opened, name, flags);
    our->name = (char *)name;
    our->is_read_only = (got & SQLITE_OPEN_READONLY) != 0;
    our->keeps_wal_below = wal && strcmp(wal, "kernel") == 0;
    our->base.pMethods = under(file)->pMethods->iVersion >= 2 ? &methods : &methods_without_wal;
    pthread_mutex_lock(&databases_lock);
    our->next_main = mains;
    mains = our;
    pthread_mutex_unlock(&databases_lock);
    if (out_flags)
        *out_flags = got;
    return SQLITE_OK;
}

/* The VFS below handles all other calls, and expects its own object. */
static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_folder) {
    (void)vfs;
    errno = 0;
    return full_or(below->xDelete(below, name, sync_folder));
}
static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *is_so) {
    (void)vfs;
    return below->xAccess(below, name, flags, is_so);
}
static int vfs_full_pathname(sqlite3_vfs *vfs, const char *name, int size, char *full) {
    (void)vfs;
    return below->xFullPathname(below, name, size, full);
}
static void *vfs_dl_open(sqlite3_vfs *vfs, const char *name) {
    (void)vfs;
    return below->xDlOpen(below, name);
}
static void vfs_dl_error(sqlite3_vfs *vfs, int size, char *text) {
    (void)vfs;
    below->xDlError(below, size, text);
}
static void (*vfs_dl_sym(sqlite3_vfs *vfs, void *library, const char *name))(void) {
    (void)vfs;
    return below->xDlSym(below, library, name);
}
static void vfs_dl_close(sqlite3_vfs *vfs, void *library) {
    (void)vfs;
    below->xDlClose(below, library);
}
static int vfs_randomness(sqlite3_vfs *vfs, int size, char *to) {
    (void)vfs;
    return below->xRandomness(below, size, to);
}
static int vfs_sleep(sqlite3_vfs *vfs, int us) {
    (void)vfs;
    return below->xSleep(below, us);
}
static int vfs_current_time(sqlite3_vfs *vfs, double *now) {
    (void)vfs;
    return below->xCurrentTime(below, now);
}
static int vfs_get_last_error(sqlite3_vfs *vfs, int size, char *text) {
    (void)vfs;
    return below->xGetLastError(below, size, text);
}
static int vfs_current_time_int64(sqlite3_vfs *vfs, sqlite3_int64 *now) {
    (void)vfs;
    return below->xCurrentTimeInt64(below, now);
}
static int vfs_set_system_call(sqlite3_vfs *vfs, const char *name, sqlite3_syscall_ptr call) {
    (void)vfs;
    return below->xSetSystemCall(below, name, call);
}
static sqlite3_syscall_ptr vfs_get_system_call(sqlite3_vfs *vfs, const char *name) {
    (void)vfs;
    return below->xGetSystemCall(below, name);
}
static const char *vfs_next_system_call(sqlite3_vfs *vfs, const char *name) {
    (void)vfs;
    return below->xNextSystemCall(below, name);
}

static sqlite3_vfs pageout_vfs = {
    3,
    0,
    0,
    NULL,
    "pageout",
    NULL,
    vfs_open,
    vfs_delete,
    vfs_access,
    vfs_full_pathname,
    vfs_dl_open,
    vfs_dl_error,
    vfs_dl_sym,
    vfs_dl_close,
    vfs_randomness,
    vfs_sleep,
    vfs_current_time,
    vfs_get_last_error,
    vfs_current_time_int64,
    vfs_set_system_call,
    vfs_get_system_call,
    vfs_next_system_call,
};

static int register_vfs(int is_default) {
    /* After sqlite3_shutdown() and sqlite3_initialize() it is still registered, but not the default. */
    if (sqlite3_vfs_find(pageout_vfs.zName) == &pageout_vfs)
        return is_default ? sqlite3_vfs_register(&pageout_vfs, 1) : SQLITE_OK;
    below = sqlite3_vfs_find(NULL);
    if (!below || below->iVersion < 3)
        return SQLITE_ERROR;
    pageout_vfs.szOsFile = (int)((sizeof(struct file) + 7) / 8 * 8) + below->szOsFile;
    pageout_vfs.mxPathname = below->mxPathname;
    return sqlite3_vfs_register(&pageout_vfs, is_default);
}

/* pageout_text(PATH): a kernel file of the cache as text, "stats", or "describe"; NULL if there is no cache yet. */
static void sql_text(sqlite3_context *context, int n, sqlite3_value **values) {
    const char *path = (const char *)sqlite3_value_text(values[0]);
    struct pageout *built;
    int64_t size;
    char *text;
    (void)n;
    pthread_mutex_lock(&databases_lock);
    built = cache;
    pthread_mutex_unlock(&databases_lock);
    if (!built || !path)
        return;
    size = pageout_text(built, path, NULL, 0);
    if (size < 0) {
        sqlite3_result_error(context, pageout_strerror(size), -1);
        return;
    }
    /* It may have grown meanwhile. */
    size += 4096;
    text = (char *)sqlite3_malloc64((sqlite3_uint64)size);
    if (!text) {
        sqlite3_result_error_nomem(context);
        return;
    }
    size = pageout_text(built, path, text, (size_t)size);
    if (size < 0)
        sqlite3_result_error(context, pageout_strerror(size), -1);
    else
        sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
    sqlite3_free(text);
}

/* Each new connection has the function. */
static int on_connect(sqlite3 *connection, char **error, const sqlite3_api_routines *api) {
    (void)error, (void)api;
    return sqlite3_create_function(connection, "pageout_text", 1, SQLITE_UTF8, NULL, sql_text, NULL, NULL);
}

#ifdef SQLITE_CORE
/* Within a program: SQLITE_EXTRA_INIT. It is the default VFS if PAGEOUT_SQLITE is set. */
int pageout_vfs_init(const char *unused) {
    (void)unused;
    return getenv("PAGEOUT_SQLITE") ? register_vfs(1) : SQLITE_OK;
}
#endif

/* `.load vfspageout`, then `.open 'file:data.db?vfs=pageout'`. It is the default VFS from then on if PAGEOUT_SQLITE_DEFAULT is set. */
int sqlite3_vfspageout_init(sqlite3 *connection, char **error, const sqlite3_api_routines *api) {
    int done;
    SQLITE_EXTENSION_INIT2(api);
    done = register_vfs(getenv("PAGEOUT_SQLITE_DEFAULT") != NULL);
    if (done == SQLITE_OK)
        done = sqlite3_auto_extension((void (*)(void))on_connect);
    if (done == SQLITE_OK)
        done = on_connect(connection, error, api);
    if (done != SQLITE_OK) {
        *error = sqlite3_mprintf("the VFS `pageout` could not be registered");
        return done;
    }
    return SQLITE_OK_LOAD_PERMANENTLY; /* its threads keep running */
}
