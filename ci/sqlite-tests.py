"""SQLite's TCL tests with the VFS `pageout` as default and without it: the same results. Run by ci/sqlite.sh.

sqlite-tests.py DIR PATTERN EVERY: DIR has `testfixture` and the source; one file in EVERY of those that match. Each file is a process of its own in a folder of
its own, twice; what differs is run again, twice more, because some tests are a matter of time even alone.
"""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Runs of other tests; and what takes minutes or gigabytes: SQLite's own `veryquick` leaves these out, too.
LEFT_OUT = """all full quick veryquick extraquick permutations main rtree fts3 fts4 fts5 misuse memsubsys* soak fuzz-oss1 fuzz fuzz3 fuzzer* bigfile* bigsort
    walslow wal_big* speed* thread1 mallocAll *malloc* *ioerr* *fault* *_err* crash* crash*[0-9] savepoint4 savepoint6 trans2 sqllimits1 zipfile* securedel2 incrvacuum_big
    select_big bigrow* backup_ioerr corruptC corruptE corruptG wal5 waloverwrite lock_big stress* async* loadext* valgrind shell* tkt-*_big e_walckpt joinE joinF""".split()
# These look into SQLite's own VFS, which main databases are not read and written by here.
BENEATH = {
    "mmap*": "maps of the file: reads are copies here",
    "syscall*": "counts its system calls",
    "shmlock*": "names it",
    "walmode": "counts its syncs",
    "wal2": "counts its syncs, in wal2-14",
    "wal4": "faults are injected in it, and there are fewer to be met",
    "diskfull*": "faults are injected in it, and there are fewer to be met",
    "quota*": "faults are injected in it, and there are fewer to be met",
}
SECONDS = 150
BUDGET = '{"budget": 25165824, "files": 2147483648, "backend": "threads", "io_threads": 2}'


def run(work: Path, test: Path, setup: str | None) -> tuple[str, frozenset[str]]:
    """What a file of tests comes to, and the names of what failed."""
    folder = work / "tests" / f"{test.stem}-{'ours' if setup else 'plain'}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PAGEOUT")}
    # Without it a test's fsync is none in either: testfixture is built so (SQLITE_NO_SYNC), and ours is as good as it.
    env["LD_PRELOAD"] = str(work / "nosync.so")
    if setup:
        env["PAGEOUT_SQLITE"] = setup
    try:
        done = subprocess.run([work / "testfixture", test], cwd=folder, env=env, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "no end", frozenset()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = (done.stdout + done.stderr).decode(errors="replace")
    count = re.search(r"(\d+) errors out of (\d+) tests", text)
    failed = frozenset(re.findall(r"^! (\S+) (?:expected|got)", text, re.M))
    said = f"{count[1]} of {count[2]} failed" if count else f"rc {done.returncode}: {text.strip().splitlines()[-1][:100] if text.strip() else ''}"
    return said, failed


def main() -> int:
    work, pattern, every = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    source = next((work / "source").glob("sqlite3-*/"))
    preload = work / "nosync.c"
    preload.write_text("int fsync(int fd) { (void)fd; return 0; }\nint fdatasync(int fd) { (void)fd; return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", preload, "-o", work / "nosync.so"], check=True)
    # A cache that can't be built is noticed: the tests do go through it.
    broken = run(work, source / "test" / "insert.test", '{"budget": 1}')
    if broken[0].startswith("0 "):
        print(f"with a cache that can't be built insert.test still says: {broken[0]}")
        return 1
    tests = [test for test in sorted((source / "test").glob("*.test")) if fnmatch.fnmatch(test.stem, pattern)]
    if pattern == "*":
        tests = [test for test in tests if not any(fnmatch.fnmatch(test.stem, out) for out in LEFT_OUT)]
    tests = tests[::every]
    with ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        plain = pool.map(lambda test: run(work, test, None), tests)
        ours = pool.map(lambda test: run(work, test, BUDGET), tests)
        outcomes = list(zip(tests, plain, ours, strict=True))
    differing = []
    for test, *both in outcomes:
        for _ in range(2):
            if both[0] != both[1]:
                both = [run(work, test, None), run(work, test, BUDGET)]
        if both[0] != both[1]:
            differing.append((test.stem, both))
    cases = sum(int(found[1]) for _, (said, _), _ in outcomes if (found := re.search(r"of (\d+) failed", said)))
    expected = [(name, why) for name, _ in differing for which, why in BENEATH.items() if fnmatch.fnmatch(name, which)]
    print(f"{len(outcomes)} files of tests, {cases} tests: {len(outcomes) - len(differing)} files have the same results with pageout")
    for name, ((plain_said, plain_failed), (ours_said, ours_failed)) in differing:
        only = sorted(ours_failed - plain_failed)[:6]
        print(f"  {name}: plain {plain_said}; pageout {ours_said}; {' '.join(only)}{dict(expected).get(name, '') and ' (' + dict(expected)[name] + ')'}")
    return int(any(name not in dict(expected) for name, _ in differing))


if __name__ == "__main__":
    sys.exit(main())
