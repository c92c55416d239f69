"""Ten loads for ci/twin.sh: each makes its files below a folder, and runs on them.

loads.py make LOAD FOLDER        make its files
loads.py run LOAD FOLDER [FILE [TIMES]]
                                 run it; the same accesses each time. FILE gets its CPU time in seconds
loads.py limits LOAD             its three limits in MiB
"""

import bisect, itertools, mmap, os, random, resource, subprocess, sys

# Limits in MiB: below, near and above what the load uses again and again, next to an interpreter of 8 to 10 MiB.
LIMITS = {
    "sqlite": (28, 40, 64),
    "search": (24, 40, 64),
    "compile": (28, 32, 48),
    "kv-mmap": (24, 32, 48),
    "imports": (24, 32, 48),
    "log": (16, 24, 40),
    "tenants": (32, 48, 64),
    "heap": (44, 52, 64),
    "sequential": (24, 40, 80),
    "fork": (20, 28, 40),
}


def zipf(count, accesses, seed):
    """Page numbers by Zipf's law (exponent 0.99), in a random place each."""
    draw = random.Random(seed)
    weights = list(itertools.accumulate(1 / (rank + 1) ** 0.99 for rank in range(count)))
    places = list(range(count))
    draw.shuffle(places)
    return [places[bisect.bisect_left(weights, draw.random() * weights[-1])] for _ in range(accesses)]


def fill(path, mib):
    with open(path, "wb") as file:
        for _ in range(mib):
            file.write(os.urandom(1 << 20))


def read_pages(path, sequence):
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    for page in sequence:
        os.pread(file, 4096, page * 4096)
    os.close(file)


# SQLite: lookups, each twentieth an update, in a database with a journal and one with a WAL.


def make_sqlite(folder):
    import sqlite3

    for mode in ("delete", "wal"):
        database = sqlite3.connect(f"{folder}/{mode}.db")
        database.execute(f"pragma journal_mode = {mode}")
        database.execute("create table t(id integer primary key, n integer, v blob)")
        database.executemany("insert into t values (?, 0, ?)", ((row + 1, os.urandom(900)) for row in range(30_000)))
        database.commit()
        database.close()


def run_sqlite(folder):
    import sqlite3

    draw = random.Random(1)
    databases = [sqlite3.connect(f"{folder}/{mode}.db") for mode in ("delete", "wal")]
    for database in databases:
        database.execute("pragma cache_size = 100")
        database.execute("pragma synchronous = full")
    row = lambda: int(30_000 * draw.random() ** 4) + 1
    for at in range(12_000):
        database = databases[at % 2]
        database.execute("select v from t where id = ?", (row(),)).fetchone()
        if at % 40 < 2:
            database.execute("update t set n = n + 1 where id = ?", (row(),))
            database.commit()


# Search: 5,000 small files, read three times in the order of their names.


def make_search(folder):
    draw = random.Random(1)
    for at in range(5000):
        if at % 100 == 0:
            os.makedirs(f"{folder}/{at // 100:03}", exist_ok=True)
        with open(f"{folder}/{at // 100:03}/{at:05}", "wb") as file:
            file.write(os.urandom(draw.randrange(500, 16_000)))


def run_search(folder):
    for _ in range(3):
        found = 0
        for top in sorted(os.listdir(folder)):
            for name in sorted(os.listdir(f"{folder}/{top}")):
                with open(f"{folder}/{top}/{name}", "rb") as file:
                    found += b"pageout" in file.read()


# Compile: 20 sources of C, each with half of 40 headers.


def make_compile(folder):
    draw = random.Random(1)
    for header in range(40):
        with open(f"{folder}/h{header}.h", "w") as file:
            file.write(f"/* {'What these functions are for. ' * 6000} */\n")
            for at in range(300):
                file.write(f"static inline int f{header}_{at}(int x) {{ return x * {draw.randrange(1000)} + {at}; }}\n")
    for source in range(20):
        with open(f"{folder}/s{source}.c", "w") as file:
            for header in draw.sample(range(40), 20):
                file.write(f'#include "h{header}.h"\n')
            file.write(f"int main_{source}(int x) {{ return x; }}\n")


def run_compile(folder):
    for source in range(20):
        subprocess.run(["cc", "-c", "-o", f"{folder}/out.o", f"{folder}/s{source}.c"], check=True)


# A key-value store over a mapping: lookups, each tenth an update.


def make_kv_mmap(folder):
    fill(f"{folder}/data", 64)


def run_kv_mmap(folder):
    file = os.open(f"{folder}/data", os.O_RDWR)
    view = mmap.mmap(file, 0)
    view.madvise(mmap.MADV_RANDOM)
    for at, page in enumerate(zipf(16_384, 60_000, 1)):
        if at % 10 == 0:
            view[page * 4096] = at & 255
        else:
            view[page * 4096 + 8]


# Imports of Python: a process each, of a third of 900 modules.


def make_imports(folder):
    import py_compile

    for at in range(900):
        with open(f"{folder}/m{at}.py", "w") as file:
            for function in range(60):
                file.write(f"def f{function}(x, y={at}):\n    '''{'Module ' * 12}{at} {function}'''\n    return x + y + {function}\n")
        py_compile.compile(f"{folder}/m{at}.py")


def run_imports(folder):
    for at in range(8):
        names = random.Random(at).sample(range(900), 300)
        code = f"import sys; sys.path.insert(0, {folder!r})\nfor at in {names}: __import__(f'm{{at}}')"
        subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)


# A log writer: appends, fsync each hundredth line, a new file each 8 MiB, of which one old one is kept and read.


def make_log(folder):
    fill(f"{folder}/old.log", 8)


def run_log(folder):
    line = os.urandom(2000)
    for _ in range(6):
        with open(f"{folder}/now.log", "wb", buffering=0) as file:
            for at in range(4000):
                file.write(line)
                if at % 100 == 99:
                    os.fsync(file.fileno())
        with open(f"{folder}/old.log", "rb") as file:
            while file.read(1 << 16):
                pass
        os.rename(f"{folder}/now.log", f"{folder}/old.log")


# Two tenants in one cgroup: each reads its own file.


def make_tenants(folder):
    for name in ("one", "two"):
        fill(f"{folder}/{name}", 64)


def run_tenants(folder):
    children = []
    for seed, name in enumerate(("one", "two")):
        pid = os.fork()
        if pid == 0:
            read_pages(f"{folder}/{name}", zipf(16_384, 40_000, seed))
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)


# A heap and files: it grows to 24 MiB and goes again, three times.


def make_heap(folder):
    fill(f"{folder}/data", 64)


def run_heap(folder):
    sequence = zipf(16_384, 60_000, 1)
    for part in range(6):
        heap = mmap.mmap(-1, 24 << 20) if part % 2 else None
        file = os.open(f"{folder}/data", os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
        for at, page in enumerate(sequence[part * 10_000 : (part + 1) * 10_000]):
            os.pread(file, 4096, page * 4096)
            if heap is not None and at < 6144:
                heap[at * 4096] = 1
        os.close(file)
        if heap is not None:
            heap.close()


# A sequential reader with readahead: a file of 60 MiB, four times.


def make_sequential(folder):
    fill(f"{folder}/data", 60)


def run_sequential(folder):
    for _ in range(4):
        with open(f"{folder}/data", "rb", buffering=0) as file:
            while file.read(1 << 16):
                pass


# A fork server: 300 children, each of which answers from the same file.


def make_fork(folder):
    fill(f"{folder}/data", 64)


def run_fork(folder):
    sequence = zipf(16_384, 60_000, 1)
    for at in range(300):
        pid = os.fork()
        if pid == 0:
            read_pages(f"{folder}/data", sequence[at * 200 : (at + 1) * 200])
            os._exit(0)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    what, load = sys.argv[1:3]
    if load not in LIMITS:
        sys.exit(f"found no load {load}, expected one of {', '.join(LIMITS)}")
    if what == "limits":
        print(*LIMITS[load])
    else:
        for _ in range(int(sys.argv[5]) if len(sys.argv) > 5 else 1):
            globals()[f"{what}_{load.replace('-', '_')}"](sys.argv[3])
        if len(sys.argv) > 4:
            used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
            with open(sys.argv[4], "w") as file:
                file.write(str(sum(of.ru_utime + of.ru_stime for of in used)))
