"""The live page cache's policies on eight loads: bytes from the device and CPU time per read. The table of docs/results/policies.md.

ci/figures/default-policy.py FOLDER [W92]: FOLDER is on a file system with direct I/O. W92 is CloudPhysics' trace of the virtual
disk w92 as libCacheSim distributes it with its sample data (oracleGeneral, compressed); without it that load is left out. Needs sqlite3, strace and
zstd. Not part of .ci/run.
"""

import random
import re
import struct
import subprocess
import sys
from array import array
from pathlib import Path

RECORD = struct.Struct("<IQIq")  # time, id, size, next access: oracleGeneral
ROWS, LOOKUPS = 150_000, 60_000


def list_of_trace(trace: Path, into: Path) -> None:
    """One page per id, numbered in order of first appearance: an id has no neighbours."""
    raw = subprocess.run(["zstd", "-dc", str(trace)], check=True, stdout=subprocess.PIPE).stdout
    numbers: dict[int, int] = {}
    pages = array("I", (numbers.setdefault(record[1], len(numbers)) for record in RECORD.iter_unpack(raw)))
    into.write_bytes(pages.tobytes())


def list_of_sqlite(folder: Path, into: Path) -> None:
    """The pages that SQLite reads with a page cache of its own of 512 KiB: look-ups by key and by index by Zipf's law, ranges, and updates."""
    database, log, script = folder / "reads.db", folder / "reads.strace", folder / "reads.sql"
    chance = random.Random(1)
    database.unlink(missing_ok=True)
    rows = (
        "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, stock INTEGER, note TEXT);"
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})"
        "INSERT INTO item SELECT i, 'name ' || (i * 7919 % 150001), i % 97, hex(zeroblob(140)) FROM n;"
        "CREATE INDEX by_name ON item (name);"
    )
    subprocess.run(["sqlite3", str(database), rows], check=True)
    weights = [1 / rank**0.9 for rank in range(1, ROWS + 1)]
    keys = [rank * 7919 % ROWS + 1 for rank in chance.choices(range(ROWS), weights, k=LOOKUPS)]
    lines = ["PRAGMA mmap_size = 0;", "PRAGMA cache_size = -512;"]
    for at, key in enumerate(keys):
        if at % 100 == 0:
            lines.append(f"SELECT sum(stock) FROM item WHERE id BETWEEN {key} AND {key + 2000};")
        elif at % 20 == 0:
            lines.append(f"UPDATE item SET stock = stock + 1 WHERE id = {key};")
        elif at % 2 == 0:
            lines.append(f"SELECT note FROM item WHERE name = 'name {key}';")
        else:
            lines.append(f"SELECT note FROM item WHERE id = {key};")
    script.write_text("\n".join(lines))
    command = ["strace", "-y", "-e", "trace=pread64", "-o", str(log), "sqlite3", str(database)]
    with script.open() as commands:
        subprocess.run(command, check=True, stdin=commands, stdout=subprocess.DEVNULL)
    read = re.compile(r"pread64\(\d+<[^>]*/reads\.db>.*, (\d+), (\d+)\) = \d+$")
    found = (read.match(line) for line in log.read_text(errors="replace").splitlines())
    # A read of less than a page is of the header: SQLite checks whether another connection has written.
    pages = array("I", (int(call[2]) // 4096 for call in found if call and int(call[1]) >= 4096))
    into.write_bytes(pages.tobytes())
    for path in (database, log, script):
        path.unlink()


def main() -> None:
    folder = Path(sys.argv[1])
    lists = []
    if len(sys.argv) > 2:
        lists.append(f"CloudPhysics w92={folder / 'w92.u32'}")
        list_of_trace(Path(sys.argv[2]), folder / "w92.u32")
    else:
        print("LEFT OUT: w92 (no trace is given)", file=sys.stderr)
    lists.append(f"SQLite={folder / 'sqlite.u32'}")
    list_of_sqlite(folder, folder / "sqlite.u32")
    command = ["cargo", "run", "--release", "--locked", "-p", "pageout", "--example", "policies", "--", str(folder)]
    subprocess.run([*command, *lists], check=True)
    for name in ("w92.u32", "sqlite.u32"):
        (folder / name).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
