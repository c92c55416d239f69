/*
 * A VFS of SQLite whose databases are read and written through a page cache with a budget: pageout.
 *
 *   connection ──► pager ──► this VFS ──► main database: pageout, direct I/O       the VFS below: its locks and shared memory
 *                                     └─► journals, WAL, temporary files: the VFS below, all of it
 *
 * All connections of a process share one cache, and all of one database one handle (`struct database`). The VFS below opens the
 * database as well, for its locks; it reads and writes none of it.
 *
 * WHAT IS ON DISK WHEN. A write is in the cache until xSync, and SQLITE_FCNTL_SYNC and SQLITE_FCNTL_CKPT_DONE are syncs, too:
 * SQLite sends them where it would sync, but for `PRAGMA synchronous=OFF`, and deletes the journal, or lets the WAL begin again,
 * after that. So a process that is killed leaves a database that its journal mends, whatever `synchronous` is.
 *
 * WHO ELSE MAY HAVE IT OPEN. As SQLite's own cache does, this one looks whether the file has changed when it begins to read: by
 * the header's change counter, or by the file's time and length. What others have written is read again then. Connections of
 * the same process must all go through this VFS: closing a file ends POSIX locks of the whole process on it.
 *
 * Not here: memory maps (`PRAGMA mmap_size` is taken, and pages are copied nevertheless), batches of atomic writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pageout.h"
#include "sqlite3ext.h"
SQLITE_EXTENSION_INIT1

/* Which bytes of a database say that it has changed: the change counter, and the version that it is valid for. */
enum { HEADER = 100 };

/* A database that is open, however often. */
struct database {
    struct database *next;
    struct pageout_file *pages;
    dev_t device;
    ino_t inode;
    int connections; /* under `databases_lock` */
    int fd;          /* looks at what is on disk. Closed when nobody has a lock on the file */
    atomic_ulong written;      /* writes so far, and how many of them are on disk: nobody else may write where they differ */
    atomic_ulong settled;
    atomic_int checkpoints;    /* that copy at this moment */
    pthread_mutex_t reload_lock;
    pthread_mutex_t seen_lock; /* of what follows: the file as it was after our last sync, or last look */
    struct timespec seen_time;
    off_t seen_size;
};

struct file {
    sqlite3_file base;
    struct database *database;
    sqlite3_int64 chunk; /* by which the file grows, 0: as it comes */
    int level;           /* of SQLite's lock */
    int is_read_only;
    int is_checkpointing;
    char *name; /* of the database, for messages: SQLite's, as long as it is open */
};

static sqlite3_vfs *below;
static struct pageout *cache;
static struct database *databases;
static pthread_mutex_t databases_lock = PTHREAD_MUTEX_INITIALIZER;

static sqlite3_file *under(sqlite3_file *file) {
    return (sqlite3_file *)((char *)file + (sizeof(struct file) + 7) / 8 * 8);
}

static struct file *of(sqlite3_file *file) { return (struct file *)file; }

/* An error of the cache as SQLite's, told in words where SQLite's log goes. */
static int told(const char *name, int64_t error, int as) {
    sqlite3_log(as, "pageout: %s: %s", name, pageout_strerror(error));
    switch (-error) {
    case ENOMEM: return SQLITE_IOERR_NOMEM;
    case ENOSPC:
    case EDQUOT: return SQLITE_FULL;
    case EBADF:
    case EROFS: return SQLITE_READONLY;
    default: return as;
    }
}

/* ---- What SQLite's tests ask of a VFS ---- */

#ifdef SQLITE_TEST
/* They count down to an error, and count syncs, in SQLite's own VFS: this one takes part, in the same places, or they would meet none of the database's. */
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

/* ---- What others have done ---- */

/* Notes the file as it is on disk: from now on whatever differs is somebody else's doing. */
static void look(struct database *database) {
    struct stat now;
    if (fstat(database->fd, &now) != 0)
        return;
    pthread_mutex_lock(&database->seen_lock);
    database->seen_time = now.st_mtim;
    database->seen_size = now.st_size;
    pthread_mutex_unlock(&database->seen_lock);
}

/* Whether somebody else has written it since. Nobody may be writing it: the caller has a lock. */
static int has_changed(struct database *database) {
    struct stat now;
    unsigned char disk[HEADER], here[HEADER];
    int is_as_seen;
    ssize_t on_disk;
    if (fstat(database->fd, &now) != 0)
        return 0;
    pthread_mutex_lock(&database->seen_lock);
    is_as_seen = database->seen_time.tv_sec == now.st_mtim.tv_sec && database->seen_time.tv_nsec == now.st_mtim.tv_nsec &&
                 database->seen_size == now.st_size;
    pthread_mutex_unlock(&database->seen_lock);
    if (!is_as_seen)
        return 1;
    /* Two writes within a tick of the kernel's clock leave the same time. */
    on_disk = pread(database->fd, disk, sizeof disk, 0);
    return on_disk >= 0 && (pageout_pread(database->pages, here, sizeof here, 0) != on_disk || memcmp(disk, here, (size_t)on_disk) != 0);
}

/* Before a transaction reads: pages that somebody else has written are read again. */
static int revalidate(struct file *file) {
    struct database *database = file->database;
    int64_t said = 0;
    /* What is not on disk yet is of a connection of ours, and then nobody else may write. */
    if (atomic_load(&database->checkpoints) || atomic_load(&database->written) != atomic_load(&database->settled))
        return SQLITE_OK;
    /* One looks at a time: who comes second finds it as it is. */
    pthread_mutex_lock(&database->reload_lock);
    if (has_changed(database)) {
        said = pageout_reload(database->pages);
        if (said == 0)
            look(database);
    }
    pthread_mutex_unlock(&database->reload_lock);
    return said < 0 ? told(file->name, said, SQLITE_IOERR_READ) : SQLITE_OK;
}

/* Has all on disk that connections of ours have written. */
static int settle(struct file *file, int as) {
    struct database *database = file->database;
    unsigned long written = atomic_load(&database->written);
    int64_t said;
    if (atomic_load(&database->settled) == written)
        return SQLITE_OK;
    said = pageout_sync(database->pages, PAGEOUT_SYNC_DATA);
    if (said < 0) {
        /* Whoever hears of it rolls back, and writes again: the next sync has to tell of that alone. */
        int failed = told(file->name, said, as);
        pageout_acknowledge(database->pages);
        return failed;
    }
    look(database);
    atomic_store(&database->settled, written);
    return SQLITE_OK;
}

/* What a program leaves that ends without closing its databases. */
static void settle_all(void) {
    struct database *database;
    pthread_mutex_lock(&databases_lock);
    for (database = databases; database; database = database->next)
        if (atomic_load(&database->written) != atomic_load(&database->settled))
            pageout_sync(database->pages, PAGEOUT_SYNC_DATA);
    pthread_mutex_unlock(&databases_lock);
}

/* ---- A main database ---- */

/* The cache of the process, which is built for the first database. */
static int cache_of_all(struct pageout **to) {
    int64_t said = 0;
    if (!cache) {
        const char *setup = getenv("PAGEOUT_SQLITE");
        if (!setup)
            setup = "{\"budget\": 67108864}";
        said = pageout_new(setup, &cache);
        if (said == 0)
            atexit(settle_all);
        /* A transaction that does not fit into SQLite's own cache writes the same pages again and again, and all that is dirty is on disk when it ends. So what
         * the flusher writes before that is mostly written in vain, and few pages need be clean beforehand: just those that reads take next. A kernel's shares
         * are of all memory, much of it others', and against a loss of power; here they would be a fifth of the budget. */
        if (said == 0 && !strstr(setup, "vm.dirty_")) {
            pageout_text_write(cache, "/proc/sys/vm/dirty_ratio", "90");
            pageout_text_write(cache, "/proc/sys/vm/dirty_background_ratio", "80");
        }
    }
    *to = cache;
    return (int)said;
}

static int acquire(const char *name, int is_buffered, struct database **to) {
    struct stat now;
    struct database *database;
    struct pageout *built;
    int flags = PAGEOUT_RDWR | (is_buffered ? PAGEOUT_BUFFERED : 0);
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
        said = pageout_open(built, name, flags & ~PAGEOUT_RDWR, NULL, &database->pages);
    database->fd = said < 0 ? -1 : open(name, O_RDONLY | O_CLOEXEC);
    if (said < 0 || database->fd < 0) {
        int failed = said < 0 ? told(name, said, SQLITE_CANTOPEN) : SQLITE_CANTOPEN;
        pageout_close(database->pages);
        free(database);
        return failed == SQLITE_CANTOPEN || failed == SQLITE_IOERR_NOMEM ? failed : SQLITE_CANTOPEN;
    }
    /* Of the header alone: what follows is none of the system's cache. */
    posix_fadvise(database->fd, 0, 0, POSIX_FADV_RANDOM);
    database->device = now.st_dev;
    database->inode = now.st_ino;
    database->connections = 1;
    pthread_mutex_init(&database->reload_lock, NULL);
    pthread_mutex_init(&database->seen_lock, NULL);
    look(database);
    database->next = databases;
    databases = database;
    *to = database;
    return SQLITE_OK;
}

/* The last connection forgets the pages: a descriptor of theirs that was closed later would take locks away. */
static int release(struct database *database) {
    struct database **link = &databases;
    if (--database->connections > 0)
        return SQLITE_OK;
    while (*link != database)
        link = &(*link)->next;
    *link = database->next;
    pageout_forget(database->pages);
    pageout_close(database->pages);
    close(database->fd);
    pthread_mutex_destroy(&database->reload_lock);
    pthread_mutex_destroy(&database->seen_lock);
    free(database);
    return SQLITE_OK;
}

static void set_checkpointing(struct file *file, int is_checkpointing) {
    atomic_fetch_add(&file->database->checkpoints, is_checkpointing - file->is_checkpointing);
    file->is_checkpointing = is_checkpointing;
}

static int file_close(sqlite3_file *file) {
    int settled = settle(of(file), SQLITE_IOERR_CLOSE);
    int closed;
    set_checkpointing(of(file), 0);
    closed = under(file)->pMethods->xClose(under(file));
    pthread_mutex_lock(&databases_lock);
    release(of(file)->database);
    pthread_mutex_unlock(&databases_lock);
    return settled ? settled : closed;
}

static int file_read(sqlite3_file *file, void *buf, int size, sqlite3_int64 offset) {
    int64_t there = pageout_pread(of(file)->database->pages, buf, (size_t)size, (uint64_t)offset);
    if (is_to_fail())
        return SQLITE_IOERR_READ;
    if (there < 0)
        return told(of(file)->name, there, SQLITE_IOERR_READ);
    if (there == size)
        return SQLITE_OK;
    memset((char *)buf + there, 0, (size_t)(size - there));
    return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *buf, int size, sqlite3_int64 offset) {
    int64_t said;
    if (of(file)->is_read_only)
        return SQLITE_READONLY;
    atomic_fetch_add(&of(file)->database->written, 1);
    said = pageout_pwrite(of(file)->database->pages, buf, (size_t)size, (uint64_t)offset);
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
    atomic_fetch_add(&file->database->written, 1);
    said = pageout_truncate(file->database->pages, (uint64_t)size);
    return said < 0 ? told(file->name, said, SQLITE_IOERR_TRUNCATE) : SQLITE_OK;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size) {
    return is_to_fail() ? SQLITE_IOERR_TRUNCATE : resize(of(file), in_chunks(of(file), size));
}

static int file_sync(sqlite3_file *file, int flags) {
    int settled;
    if (is_to_be_full())
        return SQLITE_FULL;
    count_sync(flags);
    /* Whatever the flags: what is needed to read the data goes with it, and nothing else is of use. */
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
    int locked = under(file)->pMethods->xLock(under(file), level);
    if (locked != SQLITE_OK)
        return locked;
    if (of(file)->level == SQLITE_LOCK_NONE && level >= SQLITE_LOCK_SHARED && (locked = revalidate(of(file))) != SQLITE_OK) {
        under(file)->pMethods->xUnlock(under(file), SQLITE_LOCK_NONE);
        return locked;
    }
    if (level > of(file)->level)
        of(file)->level = level;
    return SQLITE_OK;
}

static int file_unlock(sqlite3_file *file, int level) {
    int settled = SQLITE_OK, unlocked;
    /* Others may look from now on. */
    if (of(file)->level > SQLITE_LOCK_SHARED && level <= SQLITE_LOCK_SHARED)
        settled = settle(of(file), SQLITE_IOERR_UNLOCK);
    unlocked = under(file)->pMethods->xUnlock(under(file), level);
    if (unlocked == SQLITE_OK && level < of(file)->level)
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
    /* These write the file, or make the VFS below do so: they are ours alone. */
    case SQLITE_FCNTL_CHUNK_SIZE: our->chunk = *(int *)arg; return SQLITE_OK;
    case SQLITE_FCNTL_SIZE_HINT:
        size = in_chunks(our, *(sqlite3_int64 *)arg);
        return our->chunk > 0 && size > pageout_size(our->database->pages) ? resize(our, size) : SQLITE_OK;
    case SQLITE_FCNTL_BEGIN_ATOMIC_WRITE:
    case SQLITE_FCNTL_COMMIT_ATOMIC_WRITE:
    case SQLITE_FCNTL_ROLLBACK_ATOMIC_WRITE: return SQLITE_NOTFOUND;
    case SQLITE_FCNTL_SYNC: said = settle(our, SQLITE_IOERR_FSYNC); break;
    case SQLITE_FCNTL_CKPT_START: set_checkpointing(our, 1); break;
    case SQLITE_FCNTL_CKPT_DONE:
        said = settle(our, SQLITE_IOERR_FSYNC);
        set_checkpointing(our, 0);
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
    return under(file)->pMethods->xShmMap(under(file), region, size, may_extend, at);
}

/* The lock that whoever copies the WAL into the database holds alone: the second of the WAL's. */
enum { CHECKPOINT_LOCK = 1 };

static int file_shm_lock(sqlite3_file *file, int offset, int n, int flags) {
    int locked = under(file)->pMethods->xShmLock(under(file), offset, n, flags);
    int is_reader = (flags & SQLITE_SHM_SHARED) != 0;
    int is_to_copy = !is_reader && offset <= CHECKPOINT_LOCK && CHECKPOINT_LOCK < offset + n;
    if (locked != SQLITE_OK || !(flags & SQLITE_SHM_LOCK) || !(is_reader || is_to_copy))
        return locked;
    /* A reader of the WAL begins: what others have copied out of it is read again. And so it is before we copy: with our own sync the file is noted as it is
     * then, and what others had copied before that would count as ours. */
    locked = revalidate(of(file));
    if (locked != SQLITE_OK)
        under(file)->pMethods->xShmLock(under(file), offset, n, (flags & ~SQLITE_SHM_LOCK) | SQLITE_SHM_UNLOCK);
    return locked;
}

static void file_shm_barrier(sqlite3_file *file) { under(file)->pMethods->xShmBarrier(under(file)); }

static int file_shm_unmap(sqlite3_file *file, int is_deleted) { return under(file)->pMethods->xShmUnmap(under(file), is_deleted); }

static int file_fetch(sqlite3_file *file, sqlite3_int64 offset, int size, void **at) {
    (void)file, (void)offset, (void)size;
    *at = NULL; /* it is read then */
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

/* ---- The VFS ---- */

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags) {
    struct file *our = of(file);
    struct stat now;
    int opened, got = 0;
    (void)vfs;
    if (!(flags & SQLITE_OPEN_MAIN_DB) || !name)
        return below->xOpen(below, name, file, flags, out_flags);
    memset(our, 0, sizeof *our);
    /* What is no file of bytes, a folder or a device, is none for a cache of pages. */
    if (stat(name, &now) == 0 && !S_ISREG(now.st_mode))
        return below->xOpen(below, name, file, flags, out_flags);
    opened = below->xOpen(below, name, under(file), flags, &got);
    if (opened == SQLITE_OK) {
        pthread_mutex_lock(&databases_lock);
        opened = acquire(name, sqlite3_uri_boolean(name, "buffered", 0), &our->database);
        pthread_mutex_unlock(&databases_lock);
        if (opened != SQLITE_OK)
            under(file)->pMethods->xClose(under(file));
    }
    if (opened != SQLITE_OK)
        return opened;
    our->name = (char *)name;
    our->is_read_only = (got & SQLITE_OPEN_READONLY) != 0;
    our->base.pMethods = under(file)->pMethods->iVersion >= 2 ? &methods : &methods_without_wal;
    if (out_flags)
        *out_flags = got;
    return SQLITE_OK;
}

/* All else is the VFS's below, which expects to be called as itself. */
static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_folder) {
    (void)vfs;
    return below->xDelete(below, name, sync_folder);
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
    /* After sqlite3_shutdown() and sqlite3_initialize() it is still there, and not the default. */
    if (sqlite3_vfs_find(pageout_vfs.zName) == &pageout_vfs)
        return is_default ? sqlite3_vfs_register(&pageout_vfs, 1) : SQLITE_OK;
    below = sqlite3_vfs_find(NULL);
    if (!below || below->iVersion < 3)
        return SQLITE_ERROR;
    pageout_vfs.szOsFile = (int)((sizeof(struct file) + 7) / 8 * 8) + below->szOsFile;
    pageout_vfs.mxPathname = below->mxPathname;
    return sqlite3_vfs_register(&pageout_vfs, is_default);
}

/* pageout_text(PATH): a kernel file of the cache as text, "stats", or "describe"; NULL where there is no cache yet. */
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

/* Each connection from now on has the function. */
static int on_connect(sqlite3 *connection, char **error, const sqlite3_api_routines *api) {
    (void)error, (void)api;
    return sqlite3_create_function(connection, "pageout_text", 1, SQLITE_UTF8, NULL, sql_text, NULL, NULL);
}

#ifdef SQLITE_CORE
/* Within a program: SQLITE_EXTRA_INIT. It is the default VFS where PAGEOUT_SQLITE is set. */
int pageout_vfs_init(const char *unused) {
    (void)unused;
    return getenv("PAGEOUT_SQLITE") ? register_vfs(1) : SQLITE_OK;
}
#endif

/* `.load vfspageout`, then `.open 'file:data.db?vfs=pageout'`. It is the default VFS from then on where PAGEOUT_SQLITE_DEFAULT is set. */
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
    return SQLITE_OK_LOAD_PERMANENTLY; /* its threads go on */
}
