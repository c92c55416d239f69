"""Tests SQLite through the page cache on a full disk, in each journal mode. Statements fail only with "database or disk is full", the database
stays intact, no commit is lost, and the connection continues once there is space.

    sqlite-full.py VFS_EXTENSION DIR KIND...

Kinds: `limit` (RLIMIT_FSIZE), `files` (the cache's limit), `disk` and `buffered` (the script fills the small file system of DIR, with direct I/O
or through the kernel's page cache). Each case is a process of its own, and fails if it takes longer than two minutes.
"""

import ctypes
import itertools
import os
import resource
import signal
import sqlite3
import subprocess
import sys

MODES = ["delete", "truncate", "persist", "memory", "off", "wal", "delete exclusive", "wal exclusive"]
FULL = "database or disk is full"
LIMIT = 600 << 10
FILES = 2 << 20
LEFT = 400 << 10
SECONDS_MAX = 120
ROWS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < {}) "


def load(extension):
    """Loads the VFS into the SQLite of this process, which Python's module uses as well."""
    sqlite = ctypes.CDLL("libsqlite3.so.0")
    memory = ctypes.c_void_p()
    assert sqlite.sqlite3_open(b":memory:", ctypes.byref(memory)) == 0
    assert sqlite.sqlite3_enable_load_extension(memory, 1) == 0
    assert sqlite.sqlite3_load_extension(memory, extension.encode(), None, None) == 0


class Case:
    def __init__(self, folder, kind, mode):
        self.kind = kind
        self.mode, *self.exclusive = mode.split()
        self.folder = folder
        self.path = f"{folder}/full.db"
        self.filler = f"{folder}/filler"
        self.is_limited = not (kind == "files" and self.mode == "wal")
        self.other = None
        self.told = 0
        self.rows = 0
        self.db = self.connect("full")

    def connect(self, name):
        buffered = "&buffered=1" if self.kind == "buffered" else ""
        return sqlite3.connect(f"file:{self.folder}/{name}.db?vfs=pageout{buffered}", uri=True, isolation_level=None)

    def constrict(self):
        if self.kind == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, resource.RLIM_INFINITY))
        elif self.kind == "files":
            self.other = self.connect("other")
            self.other.execute("CREATE TABLE t(text)")
            self.other.execute("INSERT INTO t VALUES(hex(randomblob(800000)))")
        else:
            space = os.statvfs(self.path)
            with open(self.filler, "wb") as filler:
                os.posix_fallocate(filler.fileno(), 0, space.f_bavail * space.f_frsize - LEFT)

    def relieve(self):
        if self.kind == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        elif self.kind == "files":
            self.other.close()
        else:
            os.unlink(self.filler)

    def run(self, statement):
        """Whether the statement succeeds. An error other than a full disk ends the case."""
        try:
            self.db.execute(statement).fetchall()
            return True
        except sqlite3.Error as error:
            if str(error) != FULL:
                raise SystemExit(f"{statement}: {error}") from None
            self.told += 1
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")
        return False

    def insert(self, rows=1, size=1000):
        done = self.run(f"{ROWS.format(rows)} INSERT INTO t(text) SELECT hex(randomblob({size})) FROM n")
        self.rows += rows if done else 0
        return done

    def check(self, db=None):
        told = [row[0] for row in (db or self.db).execute("PRAGMA integrity_check")]
        assert told == ["ok"], told
        (rows,) = (db or self.db).execute("SELECT count(*) FROM t").fetchone()
        assert rows == self.rows, f"{rows} rows, expected {self.rows}"

    def check_as_another(self):
        """Another process, without the VFS."""
        if not self.exclusive:
            check = ["sqlite3", self.path, "PRAGMA integrity_check; SELECT count(*) FROM t;"]
            told = subprocess.run(check, capture_output=True, text=True).stdout.split()
            assert told == ["ok", str(self.rows)], f"another process: {told}, expected {self.rows} rows"

    def fill(self):
        """Commits row by row until the disk is full. A WAL is not the cache's, and has no limit of it: there a checkpoint finds the limit."""
        if not self.is_limited:
            assert self.insert(rows=300) and not self.run("PRAGMA wal_checkpoint(TRUNCATE)"), "the database is longer than `files`"
        while self.is_limited and self.insert():
            assert self.rows < 10000, "the disk is never full"
        self.check()

    def gives_space_back(self):
        """What was reserved for a transaction that fails is there for others."""
        if self.kind not in ("disk", "buffered") or self.mode == "wal" or self.exclusive:
            return
        free = lambda: (space := os.statvfs(self.path)).f_bfree * space.f_frsize
        self.db.execute("PRAGMA cache_size=-64000")
        before = free()
        assert not self.insert(rows=2000), "a transaction is larger than the disk"
        assert free() > before - LEFT // 4, f"{before - free()} bytes stay reserved for a transaction that has failed"
        self.db.execute("PRAGMA cache_size=-2000")

    def is_undone(self):
        """Larger transactions fail, and leave the old contents."""
        if self.mode in ("memory", "off"):
            # Without a journal on disk SQLite 3.40 can't undo the pages that did not fit into its own cache.
            self.db.execute("PRAGMA cache_size=-64000")
            assert not self.insert(rows=2000), "a transaction is larger than the disk"
            self.check()
            return
        self.run("DELETE FROM t WHERE id % 2 = 0")
        (self.rows,) = self.db.execute("SELECT count(*) FROM t").fetchone()
        assert not self.insert(rows=2000), "a transaction is larger than the disk"
        self.check()
        self.db.execute("PRAGMA cache_size=10")
        assert not self.insert(rows=2000), "a transaction is larger than the disk"
        self.check()
        self.run("UPDATE t SET text = hex(randomblob(1000))")
        self.check()
        self.run("BEGIN IMMEDIATE")
        while self.db.in_transaction and self.run("INSERT INTO t(text) VALUES(hex(randomblob(1000)))"):
            pass
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")
        self.check()
        self.run("VACUUM")
        self.check()

    def temporary(self):
        """Files of SQLite's own VFS."""
        self.db.execute("PRAGMA temp_store=file")
        before = self.told
        self.run(f"CREATE TEMP TABLE large AS {ROWS.format(3000)} SELECT hex(randomblob(1000)) FROM n")
        self.run(f"{ROWS.format(20000)} SELECT hex(randomblob(1000)) AS text FROM n ORDER BY text LIMIT 1 OFFSET 10000")
        self.run("DROP TABLE IF EXISTS temp.large")
        assert self.kind == "files" or self.told == before + 2, "temporary files have no limit"
        self.check()

    def others(self):
        """No byte is left, as another program has taken what there was: databases that are opened now say so."""
        if self.kind not in ("disk", "buffered"):
            return
        with open(f"{self.filler}.more", "wb", buffering=0) as filler:
            for size in (4096, 512, 1):
                try:
                    while True:
                        filler.write(bytes(size))
                except OSError:
                    pass
        for name, statements in [("new", ["CREATE TABLE t(text)"]), ("closed", ["SELECT * FROM t", "INSERT INTO t VALUES('x')"])]:
            # A closed database needs a new index of its WAL.
            try:
                db = self.connect(name)
                for statement in statements:
                    db.execute(statement).fetchall()
                raise SystemExit(f"{name}: a full disk is not noticed")
            except sqlite3.Error as error:
                assert str(error) == FULL, f"{name}: {error}"
        self.check()
        os.unlink(f"{self.filler}.more")

    def play(self):
        for locking in self.exclusive:
            self.db.execute(f"PRAGMA locking_mode={locking}")
        mode = self.db.execute(f"PRAGMA journal_mode={self.mode}").fetchone()
        assert mode == (self.mode,), mode
        self.db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, text)")
        self.insert(rows=50)
        closed = self.connect("closed")
        closed.executescript("PRAGMA journal_mode=wal; CREATE TABLE t(text);")
        closed.close()
        self.constrict()
        self.gives_space_back()
        for _ in range(3 if self.is_limited else 1):
            self.fill()
            self.check_as_another()
            if self.mode == "wal":
                self.run("PRAGMA wal_checkpoint(TRUNCATE)")
                self.check()
                self.check_as_another()
        if self.is_limited:
            self.is_undone()
            self.check_as_another()
        self.temporary()
        self.others()
        self.relieve()
        for _ in range(2):
            assert self.insert() and self.insert(rows=300), "there is space again"
            self.check()
            self.check_as_another()
        if self.mode == "wal":
            assert self.run("PRAGMA wal_checkpoint(TRUNCATE)"), "there is space again"
        self.db.close()
        self.check(sqlite3.connect(self.path))
        self.exclusive = []
        self.check_as_another()


def main():
    extension, folder, *kinds = sys.argv[1:]
    if os.environ.get("SQLITE_FULL_CASE"):
        kind, mode = os.environ["SQLITE_FULL_CASE"].split(":")
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        load(extension)
        case = Case(folder, kind, mode)
        case.play()
        return
    failed = 0
    for kind, mode in itertools.product(kinds, MODES):
        for name in os.listdir(folder):
            if name.startswith(("full.db", "other.db", "closed.db", "new.db", "filler")):
                os.unlink(f"{folder}/{name}")
        setup = f'{{"budget": 8388608, "files": {FILES}}}' if kind == "files" else '{"budget": 16777216}'
        env = {**os.environ, "SQLITE_FULL_CASE": f"{kind}:{mode}", "PAGEOUT_SQLITE": setup, "SQLITE_TMPDIR": folder}
        try:
            run = subprocess.run([sys.executable, __file__, extension, folder], env=env, timeout=SECONDS_MAX, capture_output=True, text=True)
            said = run.stderr.strip().splitlines()[-1:] if run.returncode else None
        except subprocess.TimeoutExpired:
            said = [f"still running after {SECONDS_MAX} s"]
        if said is not None:
            failed += 1
            print(f"full disk: {kind}, journal_mode={mode}: {' '.join(said)}", flush=True)
    print(f"full disk: {len(kinds) * len(MODES) - failed} passed, {failed} failed ({', '.join(kinds)})")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
