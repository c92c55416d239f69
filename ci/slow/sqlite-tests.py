"""SQLite's TCL tests with the VFS `pageout` as default and without it: the same results. Run by ci/slow/sqlite.sh.

sqlite-tests.py DIR PATTERN EVERY: DIR has `testfixture` and the source; one file in EVERY of those that match. Each file runs twice, in a process and
a folder of its own. Files with different results run twice more, because some tests depend on time even alone. DIR/tests.jsonl has the results so
far: an interrupted run continues from there.
"""

import fnmatch
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

# What is not run, and why.
LEFT_OUT = {
    "all full quick veryquick extraquick permutations rtree fts3 rbu session soak mallocAll": "runs the files of others",
}
# Why some files can't have the same results.
MAPS = "maps of the file, asked for where the default VFS is named `unix`: reads are copies here"
CALLS = "counts the system calls of the VFS named `unix`"
NOT_YET = "looks at the file in the middle of a transaction: what is not committed is in the cache alone"
BEHIND = "writes the WAL with no lock and no sign in its index: the cache keeps what it has read"
TOO_BIG = "files beyond the 2 GiB that are allowed here"
SPLIT = "another process writes to a database that a VFS above splits: only the first of its files has a header and locks"
OBJECTS = "counts the memory of a pager, which has the VFS's file objects: they are larger"
# These look past the VFS interface: into SQLite's own VFS, or at the file. The cases that may fail (none: fewer are tried), and the reason.
BENEATH = {
    "mmap1": ("mmap1-1.2.?.5 mmap1-1.5.?.5", MAPS),
    "mmap2": ("", MAPS),
    "mmap3": ("mmap3-1.4 mmap3-1.5 mmap3-1.6", MAPS),
    "syscall": ("", CALLS),
    "cacheflush": ("cacheflush-1.?.2 cacheflush-1.4.4 cacheflush-2.1.[34] cacheflush-2.2.[56] cacheflush-4.[0-4]", NOT_YET),
    "cachespill": ("cachespill-1.3 cachespill-1.5", NOT_YET),
    "dbstatus": ("dbstatus-4.[012].?", OBJECTS),
    "io": ("io-3.2", NOT_YET),
    "wal": ("wal-4.[45].4 wal-11.4 wal-11.10", NOT_YET),
    "walbak": ("walbak-2.[59]", NOT_YET),
    "walcrash2": ("walcrash2-1.2.*", NOT_YET),
    "walro": ("walro-1.4.4.1", NOT_YET),
    "walro2": ("walro2-?-1024.4.2.2.*", NOT_YET),
    "wal6": ("wal6-4.4.2", BEHIND),
    "bigfile": ("", TOO_BIG),
    "bigfile2": ("", TOO_BIG),
    "bigsort": ("bigsort-1.0", TOO_BIG),
    "sessionbig": ("sessionbig-1.2 sessionbig-1.4", TOO_BIG),
    "walbig": ("", TOO_BIG),
    "multiplex2": ("multiplex-1.1.4", SPLIT),
}
# They inject a fault into one call after the other until none is left, so that a VFS with more calls has more cases.
FAULTS = "*malloc* *fault* *crash* *err* e_fts3 fts3* fts4merge2 misc7 rtree3".split()
# They draw what they try, and so how many cases they have.
DRAWN = ["fts5bigtok"]
# Limits of CPU time and of wall-clock time.
CPU_SECONDS, SECONDS = 300, 1800
BUDGET = '{"budget": 25165824, "files": 2147483648, "backend": "threads", "io_threads": 2}'
SLOW = "*malloc* *fault* *ioerr* *crash* *fuzz* *err* *fts* big* soak* speed* async* sort* wal*".split()


class Results:
    """The results so far, one per line."""

    def __init__(self, work: Path):
        self.path, self.lock = work / "tests.jsonl", Lock()
        self.known: dict[tuple[str, str], dict] = {}
        vfs = work / "libvfs-tests.so"
        cache = re.search(r"libpageout\.so => (\S+)", subprocess.run(["ldd", vfs], capture_output=True, text=True, check=True).stdout)[1]
        digest = lambda files: hashlib.sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest()[:16]
        self.digests = {"plain": digest([work / "testfixture"]), "pageout": digest([work / "testfixture", vfs, cache])}
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            row = json.loads(line)
            if row["of"] == self.digests[row["who"]]:
                self.known[row["test"], row["who"]] = row

    def note(self, test: str, who: str, said: str, failed: frozenset[str]) -> None:
        row = {"test": test, "who": who, "of": self.digests[who], "said": said, "failed": sorted(failed)}
        with self.lock, self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def run(work: Path, test: Path, setup: str | None) -> tuple[str, frozenset[str]]:
    """Returns the outcome of a file of tests, and the names of the failed tests."""
    folder = work / "tests" / f"{test.stem}-{'ours' if setup else 'plain'}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PAGEOUT")}
    # No fsync in either run: testfixture is built without (SQLITE_NO_SYNC), and this library drops those of pageout's VFS.
    env["LD_PRELOAD"] = str(work / "nosync.so")
    if setup:
        env["PAGEOUT_SQLITE"] = setup
    process = subprocess.Popen(
        [work / "testfixture", test], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS)),
    )
    try:
        text = process.communicate(timeout=SECONDS)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        return "no end", frozenset()
    finally:
        # Those it has started, too.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "no end", frozenset()
    count = re.search(r"(\d+) errors out of (\d+) tests", text)
    failures = re.search(r"^!Failures on these tests:(.*)", text, re.M)
    # In addition: files that are left open, and memory.
    left = re.findall(r"^(?:\d+ files were left open|Unfreed memory)", text, re.M)
    said = f"{count[1]} of {count[2]} failed" if count else f"rc {process.returncode}: {text.strip().splitlines()[-1][:100] if text.strip() else ''}"
    return " ".join([said, *left]), frozenset(failures[1].split() if failures else ())


def matches(name: str, patterns: str | list[str]) -> bool:
    return any(fnmatch.fnmatch(name, one) for one in (patterns.split() if isinstance(patterns, str) else patterns))


def kind(name: str, plain: tuple[str, frozenset[str]], ours: tuple[str, frozenset[str]]) -> str:
    """Compares two outcomes of a file: `same`, `number` (the same failures, another number of cases), `beneath`, or `other`."""
    if plain == ours:
        return "same"
    counts = [re.fullmatch(r"(\d+) of (\d+) failed(.*)", said) for said, _ in (plain, ours)]
    if not all(counts) or counts[0][3] != counts[1][3]:
        return "other"
    is_as_many = counts[0][2] == counts[1][2]
    if plain[1] == ours[1] and counts[0][1] == counts[1][1] and not is_as_many and matches(name, FAULTS + DRAWN):
        return "number"
    cases, _ = BENEATH.get(name, (None, ""))
    if cases is None or is_as_many == (cases == ""):
        return "other"
    return "beneath" if all(matches(case, cases) for case in plain[1] ^ ours[1]) else "other"


def selected(source: Path, pattern: str, every: int) -> list[Path]:
    folders = ["test", "ext/expert", "ext/fts5/test", "ext/lsm1/test", "ext/rbu", "ext/recover", "ext/repair/test", "ext/rtree", "ext/session"]
    tests = [test for folder in folders for test in sorted((source / folder).glob("*.test")) if fnmatch.fnmatch(test.stem, pattern)]
    if pattern == "*":
        tests = [test for test in tests if not any(test.stem in out.split() for out in LEFT_OUT)]
    tests = tests[::every]
    # What takes longest last: who has no time for all has most of them.
    return sorted(tests, key=lambda test: matches(test.stem, SLOW))


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
    results = Results(work)

    def outcome(test: Path, who: str) -> tuple[str, frozenset[str]]:
        if row := results.known.get((test.name, who)):
            return row["said"], frozenset(row["failed"])
        said, failed = run(work, test, BUDGET if who == "pageout" else None)
        results.note(test.name, who, said, failed)
        return said, failed

    tests = selected(source, pattern, every)
    with ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        both = [[pool.submit(outcome, test, who) for who in ("plain", "pageout")] for test in tests]
        outcomes = [(test, *(one.result() for one in two)) for test, two in zip(tests, both, strict=True)]
    found: dict[str, list] = {"same": [], "number": [], "beneath": [], "other": [], "no end": []}
    for test, *two in outcomes:
        for _ in range(2):
            if kind(test.stem, *two) == "other":
                two = [run(work, test, None), run(work, test, BUDGET)]
        is_endless = two[0][0] == "no end" and two[1][0] == "no end"
        found["no end" if is_endless else kind(test.stem, *two)].append((test.stem, two))
    cases = sum(int(count[1]) for _, (said, _), _ in outcomes if (count := re.search(r"of (\d+) failed", said)))
    names = lambda which: " ".join(name for name, _ in found[which])
    print(f"{len(outcomes)} files of tests, {cases} tests: {len(found['same'])} files have the same results with pageout")
    if found["number"]:
        print(f"  the same failures, and another number of cases, which are drawn, or one for each place in which a fault is injected: {names('number')}")
    if found["no end"]:
        print(f"  no end in {CPU_SECONDS} s of CPU, with it and without: {names('no end')}")
    for which in ("beneath", "other"):
        for name, ((plain_said, plain_failed), (ours_said, ours_failed)) in found[which]:
            why = f" ({BENEATH[name][1]})" if which == "beneath" else ""
            print(f"  {name}: plain {plain_said}; pageout {ours_said}; {' '.join(sorted(ours_failed ^ plain_failed)[:6])}{why}")
    return int(bool(found["other"]))


if __name__ == "__main__":
    sys.exit(main())
