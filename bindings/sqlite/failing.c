/* SQLite's own VFS with fault injection. `fail_wal_sync(1)` makes each sync of a WAL fail; `limit_files(BYTES)` limits the length of
 * files; 0 ends either. An extension for ci/slow/sqlite.sh, loaded before the VFS above it. */
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>

#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1

static sqlite3_vfs *below, failing;
static const sqlite3_io_methods *wal;
static sqlite3_io_methods failing_wal;
static int fails;

static int sync_of_wal(sqlite3_file *file, int flags) {
    return fails ? SQLITE_IOERR_FSYNC : wal->xSync(file, flags);
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out) {
    (void)vfs;
    int rc = below->xOpen(below, name, file, flags, out);
    if (rc == SQLITE_OK && flags & SQLITE_OPEN_WAL) {
        wal = file->pMethods;
        failing_wal = *wal;
        failing_wal.xSync = sync_of_wal;
        file->pMethods = &failing_wal;
    }
    return rc;
}

static void fail_wal_sync(sqlite3_context *context, int count, sqlite3_value **values) {
    (void)count;
    fails = sqlite3_value_int(values[0]);
    sqlite3_result_int(context, fails);
}

static void limit_files(sqlite3_context *context, int count, sqlite3_value **values) {
    (void)count;
    sqlite3_int64 bytes = sqlite3_value_int64(values[0]);
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes ? (rlim_t)bytes : limit.rlim_max;
    if (setrlimit(RLIMIT_FSIZE, &limit) == 0)
        sqlite3_result_int64(context, bytes);
    else
        sqlite3_result_error(context, "setrlimit fails", -1);
}

static int functions(sqlite3 *db, char **error, const sqlite3_api_routines *api) {
    (void)error, (void)api;
    int rc = sqlite3_create_function(db, "fail_wal_sync", 1, SQLITE_UTF8, NULL, fail_wal_sync, NULL, NULL);
    return rc ? rc : sqlite3_create_function(db, "limit_files", 1, SQLITE_UTF8, NULL, limit_files, NULL, NULL);
}

int sqlite3_failing_init(sqlite3 *db, char **error, const sqlite3_api_routines *api) {
    (void)db, (void)error;
    SQLITE_EXTENSION_INIT2(api);
    signal(SIGXFSZ, SIG_IGN);
    below = sqlite3_vfs_find(NULL);
    failing = *below;
    failing.zName = "failing";
    failing.pNext = NULL;
    failing.xOpen = open_file;
    int rc = sqlite3_auto_extension((void (*)(void))functions);
    rc = rc ? rc : sqlite3_vfs_register(&failing, 1);
    return rc ? rc : SQLITE_OK_LOAD_PERMANENTLY;
}
