#!/usr/bin/env bash
# Tests SQLite through the page cache: its VFS as a loadable extension of the installed shell, then Debian's source package of the same version with
# the VFS as default and without it. ci/slow/sqlite.sh [DIR [PART...]]: DIR is a folder on a file system with direct I/O, default target/sqlite. Parts:
#   shell      the extension loads, other programs can read its databases, and neither a full or failing device nor a kill loses a commit
#   tests      SQLite's TCL tests, each file in a process of its own, with and without the VFS: the same results. TESTS: a pattern of names; EVERY:
#              run one file in EVERY. An interrupted run continues
#   full       a full disk in each journal mode: "database or disk is full" and no other error, no commit lost, and the connection continues once there
#              is space. By RLIMIT_FSIZE and the cache's limit; and on small file systems, tmpfs and ext4, if a mount namespace is available (root)
#   speed      speedtest1 at equal memory, in a memory cgroup (version 1, root): CELLS of "SIZE LIMIT_MIB BUDGET_MIB"
# Parts whose requirements are missing are skipped and reported. Not part of .ci/run: half an hour.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
work=${1:-target/sqlite}
shift || true
parts=("$@")
[[ ${#parts[@]} -gt 0 ]] || parts=(shell full tests speed)
mkdir -p "$work"
work=$(cd "$work" && pwd)
[[ -e /usr/include/sqlite3ext.h ]] && command -v sqlite3 > /dev/null ||
    { echo "LEFT OUT: no SQLite (apt-get install sqlite3 libsqlite3-dev)" >&2; exit 77; }
library=$root/$(ci/slow/bindings.sh --build)
vfs=bindings/sqlite/pageout_vfs.c
warnings=(-std=gnu11 -Wall -Wextra -Werror -O2 -Ibindings/c/include)
link=(-L"$library" -lpageout -Wl,-rpath,"$library" -lpthread -lm -ldl)
cc "${warnings[@]}" -fPIC -shared "$vfs" -o "$work/vfspageout.so" "${link[@]}"

# SQLite's own source, with the VFS within: where PAGEOUT_SQLITE is set it is the default.
built() { # PROGRAM: built out of Debian's source
    local source config
    source=$(ci/slow/debian-source.sh sqlite3 "$work/source")
    if [[ ! -e $work/sqlite3.c ]]; then
        config=$(ls -d /usr/lib/*/tcl8.6 2> /dev/null | head -n 1)
        [[ -n $config ]] || { echo "LEFT OUT: no tcl (apt-get install tcl-dev)" >&2; return 77; }
        (cd "$work" && "$source/configure" --enable-all --with-tcl="$config" > configure.log 2>&1 && make sqlite3.c > make.log 2>&1)
    fi
    # A library of its own, which finds SQLite in the program: so the programs, which take minutes, are compiled once. That of the tests has what they ask of a VFS.
    local with_vfs=libvfs.so tests=()
    if [[ $1 == testfixture ]]; then
        with_vfs=libvfs-tests.so tests=(-DSQLITE_TEST)
    fi
    cc "${warnings[@]}" -fPIC -shared -DSQLITE_CORE "${tests[@]}" -I"$work" "$vfs" -o "$work/$with_vfs" "${link[@]}"
    [[ -e $work/$1 ]] && return
    # What SQLite's own shell is built with, for the tests of it.
    local features=(-DSQLITE_ENABLE_{FTS4,FTS5,RTREE,SESSION,PREUPDATE_HOOK,EXPLAIN_COMMENTS,UNKNOWN_SQL_FUNCTION,STMTVTAB,DBPAGE_VTAB,DBSTAT_VTAB,BYTECODE_VTAB,OFFSET_SQL_FUNC,MATH_FUNCTIONS} -DSQLITE_HAVE_ZLIB=1)
    local within=("$work/$with_vfs" "-Wl,-rpath,$work" -rdynamic -ldl -lm -lpthread)
    case $1 in
        speedtest1) cc -O2 -I"$work" -DSQLITE_EXTRA_INIT=pageout_vfs_init "$source/test/speedtest1.c" "$work/sqlite3.c" -o "$work/speedtest1" "${within[@]}" ;;
        sqlite3) (cd "$work" && cc -O1 -I. "${features[@]}" -DSQLITE_EXTRA_INIT=pageout_vfs_init shell.c sqlite3.c -o sqlite3 "${within[@]}" -lz) ;;
        testfixture)
            (cd "$work" && make testfixture OPTS=-DSQLITE_EXTRA_INIT=pageout_vfs_init TLIBS="${within[*]} -lz" > make.log 2>&1) || { tail -5 "$work/make.log"; return 1; } ;;
    esac
}

shell_part() {
    local dir=$work/shell
    rm -rf "$dir"
    mkdir "$dir"
    cd "$dir"
    local load=".load $work/vfspageout"
    for mode in delete wal; do
        sqlite3 > said.txt <<SQL
$load
.open file:$mode.db?vfs=pageout
PRAGMA journal_mode=$mode;
CREATE TABLE t(id INTEGER PRIMARY KEY, text);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 60000) INSERT INTO t SELECT i, hex(randomblob(200)) FROM n;
CREATE INDEX by_text ON t(text);
DELETE FROM t WHERE id % 7 = 0;
PRAGMA integrity_check;
SELECT count(*) FROM t;
SELECT pageout_text('stats');
SELECT pageout_text('describe');
SELECT file FROM pragma_database_list;
.vfsname
SQL
        grep -qx ok said.txt && grep -qx 51429 said.txt && grep -qE '^hits [1-9]' said.txt && grep -q 'by 8 threads' said.txt && grep -q 'pageout/unix' said.txt || { cat said.txt; return 1; }
        # Others find a database, and what they write is found.
        [[ $(sqlite3 "$mode.db" 'PRAGMA integrity_check; SELECT count(*) FROM t;' | tr '\n' ' ') == "ok 51429 " ]]
    done
    # A page that a transaction writes many times is written to the device once, where the pages that it writes fit into the budget: 80 % of it may be dirty.
    sqlite3 > said.txt <<SQL
$load
.open file:twice.db?vfs=pageout
PRAGMA cache_size=20;
CREATE TABLE t(id INTEGER PRIMARY KEY, text);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 60000) INSERT INTO t SELECT i, hex(randomblob(100)) FROM n;
CREATE INDEX by_text ON t(text);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 60000) UPDATE t SET text = hex(randomblob(100)) WHERE id IN (SELECT i * 7919 % 60000 FROM n);
COMMIT;
SELECT pageout_text('stats');
SQL
    local bytes written
    bytes=$(stat -c %s twice.db) written=$(awk '$1 == "device_bytes_written" { print $2 }' said.txt)
    [[ $written -gt $bytes && $written -lt $((4 * bytes)) ]] || { echo "a database of $bytes bytes is written three times, and $written bytes went to the device"; return 1; }
    # Two processes take turns, one of them without us: each finds what the other has written, while both have it open.
    for mode in delete wal; do
        coproc OURS { sqlite3 2>&1; }
        ask() { echo "$1" >&"${OURS[1]}"; read -r -t 300 answer <&"${OURS[0]}"; }
        printf '%s\n' "$load" ".open file:$mode.db?vfs=pageout" >&"${OURS[1]}"
        for turn in 1 2 3 4 5 6; do
            ask "UPDATE t SET text = 'ours $turn' WHERE id % 500 = 1; SELECT changes();"
            [[ $(sqlite3 "$mode.db" "SELECT count(*) FROM t WHERE text = 'ours $turn'") == "$answer" && $answer -gt 50 ]] || { echo "$mode: another process does not see what is committed"; return 1; }
            sqlite3 "$mode.db" "UPDATE t SET text = 'theirs $turn' WHERE id % 500 = 2; PRAGMA wal_checkpoint(TRUNCATE);" > /dev/null
            ask "SELECT count(*) FROM t WHERE text = 'theirs $turn';"
            [[ $answer -gt 50 ]] || { echo "$mode: what another process commits is not seen: $answer"; return 1; }
        done
        eval "exec ${OURS[1]}>&-"
        wait "$OURS_PID"
        [[ $(sqlite3 "$mode.db" 'PRAGMA integrity_check') == ok ]]
    done
    # Another process copies a WAL into the database, and we the next one, without a look between: its pages are read again.
    local theirs
    coproc OURS { sqlite3 2>&1; }
    printf '%s\n' "$load" ".open file:wal.db?vfs=pageout" >&"${OURS[1]}"
    ask "SELECT sum(length(text)) > 0 FROM t;"
    theirs=$(sqlite3 wal.db "PRAGMA wal_autocheckpoint=0; UPDATE t SET text = 'copied by them' WHERE id % 500 = 3; SELECT 'changed', changes(); PRAGMA wal_checkpoint;
        UPDATE t SET text = 'copied by us' WHERE id % 500 = 250;" | sed -n 's/^changed|//p')
    ask "PRAGMA wal_checkpoint;"
    [[ $answer == 0\|* ]] || { echo "no checkpoint: $answer"; return 1; }
    ask "SELECT count(*) FROM t WHERE text = 'copied by them';"
    [[ $theirs -gt 50 && $answer == "$theirs" ]] || { echo "what another process has copied is seen in $answer of $theirs rows"; return 1; }
    eval "exec ${OURS[1]}>&-"
    wait "$OURS_PID"
    [[ $(sqlite3 wal.db 'PRAGMA integrity_check') == ok ]]
    # Several processes, one of them without us, write and copy the WAL at the same time, in pages smaller than a cache's: each finds the database whole, every time.
    sqlite3 several.db "PRAGMA page_size=1024; PRAGMA journal_mode=wal; CREATE TABLE t(id INTEGER PRIMARY KEY, text UNIQUE);" > /dev/null
    local writers=() writer
    for writer in 1 2 3 4; do
        {
            if [[ $writer == 1 ]]; then echo ".open several.db"; else printf '%s\n' "$load" ".open file:several.db?vfs=pageout"; fi
            printf '%s\n' ".timeout 60000" "PRAGMA synchronous=normal;" "PRAGMA wal_autocheckpoint=10;"
            for ((id = 0; id < 400; id++)); do
                echo "REPLACE INTO t VALUES($((id % 97 * 4 + writer)), hex(randomblob(150))); PRAGMA integrity_check;"
            done
        } | sqlite3 > "several-$writer.txt" 2>&1 &
        writers+=($!)
    done
    for writer in "${writers[@]}"; do wait "$writer"; done
    [[ $(cat several-*.txt | grep -cx ok) == 1600 ]] || { grep -vx 'ok\|10' several-*.txt | head -5; echo "several writers of a WAL: a database that is not whole"; return 1; }
    [[ $(sqlite3 several.db 'SELECT count(*) FROM t; PRAGMA integrity_check' | tr '\n' ' ') == "388 ok " ]]
    # Without another process that copies the WAL, no page is read again.
    {
        printf '%s\n' "$load" ".open file:alone.db?vfs=pageout" "PRAGMA journal_mode=wal;" "PRAGMA wal_autocheckpoint=50;" "PRAGMA cache_size=20;"
        echo "CREATE TABLE t(id INTEGER PRIMARY KEY, text);"
        for ((id = 1; id <= 2000; id++)); do echo "INSERT INTO t VALUES($id, hex(randomblob(1500)));"; done
        for id in 1 2 3; do echo "SELECT sum(length(text)) FROM t; INSERT INTO t(text) VALUES('another');"; done
        # Nor where one connection copies it and lets it begin again, and another writes next.
        for id in 1 2 3; do
            printf '%s\n' "PRAGMA wal_checkpoint(TRUNCATE);" ".connection 1" ".open file:alone.db?vfs=pageout" "PRAGMA cache_size=20;"
            echo "INSERT INTO t(text) VALUES('another'); SELECT sum(length(text)) FROM t;"
            echo ".connection 0"
        done
        echo "SELECT pageout_text('stats');"
    } | sqlite3 > said.txt
    local read
    bytes=$(stat -c %s alone.db) read=$(awk '$1 == "device_bytes" { print $2 }' said.txt)
    [[ $bytes -gt 6000000 && $read -lt $((bytes / 10)) ]] || { echo "of a WAL's database of $bytes bytes $read were read again"; return 1; }
    # A checkpoint whose pages can't be written, as on a full disk: SQLite ignores that where an old reader lets it copy a part alone, and counts them as copied.
    local synchronous reader
    for synchronous in off normal full; do
        for reader in "" "BEGIN; SELECT 'old', count(*) FROM t;"; do
            rm -f full.db*
            sqlite3 full.db "PRAGMA journal_mode=wal; CREATE TABLE t(id INTEGER PRIMARY KEY, text);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 160) INSERT INTO t SELECT i, hex(randomblob(2000)) FROM n;" > /dev/null
            (trap '' XFSZ && ulimit -f 900 && sqlite3) > said.txt 2>&1 <<SQL || true
$load
.open file:full.db?vfs=pageout
PRAGMA synchronous=$synchronous;
PRAGMA wal_autocheckpoint=0;
WITH RECURSIVE n(i) AS (SELECT 161 UNION ALL SELECT i+1 FROM n WHERE i < 280) INSERT INTO t SELECT i, hex(randomblob(2000)) FROM n;
.connection 1
.open file:full.db?vfs=pageout
$reader
.connection 0
INSERT INTO t VALUES(281, 'the last');
PRAGMA wal_checkpoint;
SELECT 'ours', count(*), sum(length(text)) FROM t;
.shell sqlite3 full.db "SELECT 'theirs', count(*), sum(length(text)) FROM t; PRAGMA integrity_check"
SQL
            local all='281|1120008'
            grep -qx "ours|$all" said.txt && grep -qx "theirs|$all" said.txt && grep -qx ok said.txt || { cat said.txt; echo "synchronous=$synchronous: a commit is lost that could not be copied"; return 1; }
            # If no reader gets the error, the caller of the checkpoint gets it.
            grep -qE '^0\|[0-9]+\|0$|disk' said.txt || { cat said.txt; echo "synchronous=$synchronous: nobody is told that nothing was copied"; return 1; }
            [[ $(sqlite3 full.db 'SELECT count(*), sum(length(text)) FROM t; PRAGMA integrity_check' | tr '\n' ' ') == "$all ok " ]] || { echo "synchronous=$synchronous: a commit is lost once all have closed"; return 1; }
        done
    done
    # On a full disk each checkpoint fails with that error, whatever it may copy and whether the file has holes. Once there is space it copies all pages.
    mkdir small
    if mount -t tmpfs -o size=4m tmpfs small 2> /dev/null; then
        local chunk said
        for chunk in 0 1048576; do
            for reader in "" "BEGIN; SELECT 'old', count(*) FROM t;"; do
                rm -f small/*
                sqlite3 small/full.db "PRAGMA journal_mode=wal; CREATE TABLE t(id INTEGER PRIMARY KEY, text); INSERT INTO t VALUES(0, hex(randomblob(100000)));" > /dev/null
                sqlite3 > said.txt 2>&1 <<SQL || true
$load
.open file:small/full.db?vfs=pageout&buffered=1
.filectrl chunk_size $chunk
PRAGMA wal_autocheckpoint=0;
INSERT INTO t VALUES(1, 'short'); PRAGMA wal_checkpoint;
WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i+1 FROM n WHERE i < 300) INSERT INTO t SELECT i, hex(randomblob(2000)) FROM n;
.connection 1
.open file:small/full.db?vfs=pageout&buffered=1
$reader
.connection 0
INSERT INTO t VALUES(301, 'the last');
.shell cat /dev/zero > small/fill 2> /dev/null
PRAGMA wal_checkpoint;
PRAGMA wal_checkpoint;
.shell sqlite3 small/full.db "SELECT 'theirs', count(*) FROM t; PRAGMA integrity_check"
.shell rm small/fill
.connection 1
COMMIT;
.connection 0
PRAGMA wal_checkpoint(TRUNCATE);
SQL
                said=$(grep -cE 'database or disk is full' said.txt || true)
                [[ $said == 2 ]] && grep -qx 'theirs|302' said.txt && grep -qx ok said.txt && [[ ! -s small/full.db-wal ]] && [[ $(sqlite3 small/full.db 'SELECT count(*) FROM t; PRAGMA integrity_check' | tr '\n' ' ') == "302 ok " ]] ||
                    { cat said.txt; umount small; echo "a full disk, chunks of $chunk bytes: is told $said times of 2, or commits are lost"; return 1; }
            done
        done
        umount small
    else
        echo "LEFT OUT: a full disk (mount)" >&2
    fi
    # A failed checkpoint does not affect a later WAL. One fails at the database, one at the sync of its WAL, while a connection has the database alone. Another
    # connection restarts the WAL, and a third checkpoint fails as the second. No page of the new WAL may count as copied that is not.
    cc "${warnings[@]}" -fPIC -shared "$root/bindings/sqlite/failing.c" -o "$work/failing.so"
    local rows="WITH RECURSIVE n(i) AS (SELECT (SELECT count(*) FROM t) + 1 UNION ALL SELECT i+1 FROM n WHERE i % 20 > 0) INSERT INTO t SELECT i, hex(randomblob(2000)) FROM n;"
    sqlite3 > said.txt 2>&1 <<SQL || true
.load $work/failing
$load
.open file:later.db?vfs=pageout
PRAGMA journal_mode=wal;
PRAGMA wal_autocheckpoint=0;
CREATE TABLE t(id INTEGER PRIMARY KEY, text);
.connection 1
.open file:later.db?vfs=pageout
BEGIN; SELECT count(*) FROM t;
.connection 0
$rows
.connection 1
COMMIT; BEGIN; SELECT count(*) FROM t;
.connection 0
PRAGMA wal_checkpoint;
$rows $rows
.connection close 1
PRAGMA locking_mode=exclusive;
INSERT INTO t VALUES(61, 'the last');
SELECT limit_files(150000);
PRAGMA wal_checkpoint;
SELECT fail_wal_sync(1);
PRAGMA wal_checkpoint;
SELECT limit_files(0), fail_wal_sync(0);
PRAGMA locking_mode=normal;
SELECT count(*) FROM t;
.connection 1
.open file:later.db?vfs=pageout
PRAGMA wal_autocheckpoint=0;
PRAGMA wal_checkpoint(TRUNCATE);
UPDATE t SET text = zeroblob(3999);
.connection 0
SELECT fail_wal_sync(1);
PRAGMA wal_checkpoint;
SELECT fail_wal_sync(0);
.connection 1
PRAGMA wal_checkpoint(TRUNCATE);
.shell sqlite3 later.db "SELECT 'theirs', count(*), sum(length(text)) FROM t; PRAGMA integrity_check"
SQL
    [[ $(grep -c 'database or disk is full' said.txt) == 1 && $(grep -c 'disk I/O error' said.txt) == 2 ]] && grep -qx 'theirs|61|243939' said.txt && grep -qx ok said.txt || { cat said.txt; echo "a checkpoint that failed has to do with a later one"; return 1; }
    # An application's hint on the expected length cuts off nothing that others have appended.
    sqlite3 hint.db "CREATE TABLE t(id INTEGER PRIMARY KEY, text);"
    python3 - "$work/vfspageout.so" <<'PYTHON'
import ctypes, sqlite3, sys
sqlite = ctypes.CDLL("libsqlite3.so.0")
def done(rc): assert rc == 0, rc
memory, ours, OPEN, CHUNK_SIZE, SIZE_HINT = ctypes.c_void_p(), ctypes.c_void_p(), 0x46, 6, 5
done(sqlite.sqlite3_open(b":memory:", ctypes.byref(memory)))
done(sqlite.sqlite3_enable_load_extension(memory, 1))
done(sqlite.sqlite3_load_extension(memory, sys.argv[1].encode(), None, None))
done(sqlite.sqlite3_open_v2(b"file:hint.db?vfs=pageout", ctypes.byref(ours), OPEN, None))
done(sqlite.sqlite3_exec(ours, b"SELECT count(*) FROM t", None, None, None))
with sqlite3.connect("hint.db") as theirs:
    theirs.executemany("INSERT INTO t VALUES(?, ?)", [(id, "x" * 3000) for id in range(200)])
done(sqlite.sqlite3_file_control(ours, b"main", CHUNK_SIZE, ctypes.byref(ctypes.c_int(65536))))
done(sqlite.sqlite3_file_control(ours, b"main", SIZE_HINT, ctypes.byref(ctypes.c_int64(100000))))
assert sqlite3.connect("hint.db").execute("PRAGMA integrity_check").fetchall() == [("ok",)]
PYTHON
    # The WAL is in the cache, and not in the kernel's. Transactions larger than SQLite's cache write their frames again.
    for locking in normal exclusive; do
        rm -f inside.db*
        sqlite3 > said.txt <<SQL
$load
.open file:inside.db?vfs=pageout
PRAGMA locking_mode=$locking;
PRAGMA journal_mode=wal;
PRAGMA cache_size=20;
PRAGMA wal_autocheckpoint=500;
CREATE TABLE t(id INTEGER PRIMARY KEY, text);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 2000) INSERT INTO t SELECT i, hex(randomblob(500)) FROM n;
UPDATE t SET text = hex(randomblob(600)) WHERE id % 3 = 0;
SAVEPOINT s;
UPDATE t SET text = 'lost' WHERE id % 5 = 0;
ROLLBACK TO s;
COMMIT;
UPDATE t SET text = text || 'x' WHERE id < 50;
PRAGMA integrity_check;
SELECT count(*), sum(text = 'lost'), sum(text LIKE '%x') FROM t;
.shell stat -c 'wal %s' inside.db-wal
.shell fincore -b -n -o RES inside.db-wal | sed 's/^ */kernel /'
PRAGMA wal_checkpoint(TRUNCATE);
INSERT INTO t VALUES(3000, 'after');
PRAGMA journal_mode=delete;
INSERT INTO t VALUES(3001, 'after');
PRAGMA journal_mode=wal;
INSERT INTO t VALUES(3002, 'after');
SQL
        grep -qx ok said.txt && grep -qx '2000|0|49' said.txt || { cat said.txt; return 1; }
        grep -qx 'kernel 0' said.txt && grep -qE '^wal [1-9]' said.txt || { cat said.txt; echo "$locking: the WAL is in the kernel's cache"; return 1; }
        [[ $(sqlite3 inside.db "PRAGMA integrity_check; SELECT count(*) FROM t WHERE text = 'after';" | tr '\n' ' ') == "ok 3 " ]] || { echo "$locking: others do not see it"; return 1; }
    done
    # The kernel's cache gets the WAL when another process has written it. Before and after that, and in a transaction that began before, each process finds all commits.
    local large="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 1000) INSERT INTO t(text) SELECT hex(randomblob(500)) FROM n;"
    sqlite3 handed.db "PRAGMA journal_mode=wal; CREATE TABLE t(id INTEGER PRIMARY KEY, text);" > /dev/null
    sqlite3 > said.txt 2>&1 <<SQL || true
$load
.open file:handed.db?vfs=pageout
PRAGMA cache_size=20;
PRAGMA wal_autocheckpoint=0;
$large
.shell sqlite3 handed.db "SELECT 'theirs 1', count(*) FROM t;"
.shell fincore -b -n -o RES handed.db-wal | sed 's/^ */shared /'
BEGIN; $large ROLLBACK;
BEGIN; SELECT 'old', count(*) FROM t;
.connection 1
.open file:handed.db?vfs=pageout
PRAGMA cache_size=20;
PRAGMA wal_autocheckpoint=0;
$large
.shell sqlite3 handed.db "PRAGMA wal_autocheckpoint=0; INSERT INTO t(text) VALUES('theirs'); SELECT 'theirs 2', count(*) FROM t; PRAGMA integrity_check;"
SELECT 'ours 2', count(*), sum(text = 'theirs') FROM t;
$large
.shell sqlite3 handed.db "SELECT 'theirs 3', count(*) FROM t; PRAGMA integrity_check;"
.shell fincore -b -n -o RES handed.db-wal | sed 's/^ */kernel /'
.connection 0
SELECT 'old', count(*), sum(length(text)) FROM t; COMMIT;
SELECT 'ours 3', count(*) FROM t;
PRAGMA integrity_check;
.connection close 1
PRAGMA wal_checkpoint(TRUNCATE);
SQL
    local line
    for line in 'theirs 1|1000' 'old|1000' 'theirs 2|2001' 'ours 2|2001|1' 'theirs 3|3001' 'old|1000|1000000' 'ours 3|3001'; do
        grep -qxF "$line" said.txt || { cat said.txt; echo "a WAL that is handed to the kernel's cache: no '$line'"; return 1; }
    done
    grep -qE '^kernel [1-9]' said.txt && [[ $(grep -cx ok said.txt) == 3 ]] || { cat said.txt; return 1; }
    # The frames of a transaction that was rolled back are not written over the commit of another process.
    sqlite3 undone.db "PRAGMA journal_mode=wal; CREATE TABLE t(id INTEGER PRIMARY KEY, text);" > /dev/null
    sqlite3 > said.txt 2>&1 <<SQL || true
$load
.open file:undone.db?vfs=pageout
PRAGMA cache_size=20;
PRAGMA wal_autocheckpoint=0;
INSERT INTO t(text) VALUES('ours');
BEGIN; $large ROLLBACK;
.shell sqlite3 undone.db "PRAGMA wal_autocheckpoint=0; $large SELECT 'theirs', count(*) FROM t;"
SELECT 'ours', count(*) FROM t;
.shell sqlite3 undone.db "SELECT 'theirs', count(*), sum(length(text)) FROM t; PRAGMA integrity_check"
PRAGMA integrity_check;
SQL
    grep -qx 'ours|1001' said.txt && grep -qx 'theirs|1001|1000004' said.txt && [[ $(grep -cx ok said.txt) == 2 ]] || { cat said.txt; echo "a transaction that was rolled back is written over another's"; return 1; }
    # Killed at random moments, with any `synchronous`: no commit is lost, and the database is intact.
    local kills=0
    for synchronous in off normal full; do
        for mode in delete wal exclusive; do
            for try in 1 2 3 4; do
                rm -f killed.db* committed.txt
                sqlite3 killed.db 'CREATE TABLE t(id INTEGER PRIMARY KEY, text)'
                {
                    local modes="PRAGMA journal_mode=$mode;"
                    [[ $mode != exclusive ]] || modes="PRAGMA locking_mode=exclusive; PRAGMA journal_mode=wal;"
                    printf '%s\n' "$load" ".open file:killed.db?vfs=pageout" "PRAGMA synchronous=$synchronous;" "$modes" "PRAGMA cache_size=20;" "PRAGMA wal_autocheckpoint=20;"
                    for ((id = 1; id <= 3000; id++)); do echo "INSERT INTO t VALUES($id, hex(randomblob(3000))); SELECT 'committed', $id;"; done
                } > commands.txt
                sqlite3 < commands.txt > committed.txt 2>&1 &
                local pid=$!
                # Not before it has reported commits, however slow the machine is.
                for ((wait = 0; wait < 600; wait++)); do [[ -s committed.txt ]] && break; sleep 0.1; done
                sleep "0.$((RANDOM % 6 + 2))"
                kill -9 "$pid" 2> /dev/null || true
                wait "$pid" 2> /dev/null || true
                local last
                last=$(grep -a '^committed|' committed.txt | tail -n 1 | cut -d '|' -f 2)
                [[ $(sqlite3 killed.db 'PRAGMA integrity_check') == ok ]] || { echo "$synchronous, $mode: not whole after a kill"; return 1; }
                [[ $(sqlite3 killed.db 'SELECT count(*) FROM t') -ge ${last:-0} ]] || { echo "$synchronous, $mode: a commit is lost by a kill"; return 1; }
                kills=$((kills + 1))
            done
        done
    done
    echo "shell: databases are whole to others and seen by turns, and after $kills kills"
}

full_part() {
    local dir=$work/full
    rm -rf "$dir"
    mkdir "$dir"
    python3 ci/slow/sqlite-full.py "$work/vfspageout.so" "$dir" limit files
    if ! unshare -m true 2> /dev/null; then
        echo "LEFT OUT: full disk: no mount namespace (root)" >&2
        return
    fi
    # The mounts end with their namespace.
    unshare -m bash -euo pipefail -s "$work/vfspageout.so" "$dir" <<'SH'
mkdir "$2/small"
mount -t tmpfs -o size=6m tmpfs "$2/small"
python3 ci/slow/sqlite-full.py "$1" "$2/small" buffered
umount "$2/small"
truncate -s 16M "$2/image"
if mkfs.ext4 -q "$2/image" && mount -o loop "$2/image" "$2/small"; then
    python3 ci/slow/sqlite-full.py "$1" "$2/small" disk
else
    echo "LEFT OUT: full disk: no ext4 on a loop device" >&2
fi
SH
}

for part in "${parts[@]}"; do
    case $part in
        shell) (shell_part) ;;
        full) full_part ;;
        tests) built testfixture && built sqlite3 && python3 ci/slow/sqlite-tests.py "$work" "${TESTS:-*}" "${EVERY:-1}" ;;
        speed) built speedtest1 && python3 ci/figures/sqlite-speed.py "$work" ${CELLS:+"$CELLS"} ;;
        *) echo "no part $part" >&2; exit 2 ;;
    esac
done
