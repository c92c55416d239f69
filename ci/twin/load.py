"""Loads for ci/twin.sh: pages of a file by Zipf's law (exponent 0.99), a table of SQLite, sources to compile."""

import itertools, bisect, json, mmap, os, random, sys


def pages(count, accesses, seed):
    draw = random.Random(seed)
    weights = list(itertools.accumulate(1 / (rank + 1) ** 0.99 for rank in range(count)))
    places = list(range(count))
    draw.shuffle(places)
    return [places[bisect.bisect_left(weights, draw.random() * weights[-1])] for _ in range(accesses)]


def run(mode, path, count, accesses, seed):
    sequence = pages(count, accesses, seed)
    file = os.open(path, os.O_RDWR if mode == "write" else os.O_RDONLY)
    if mode == "read":
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    if mode == "mapped":
        view = mmap.mmap(file, 0, prot=mmap.PROT_READ)
        view.madvise(mmap.MADV_RANDOM)
        for page in sequence:
            view[page * 4096]
    elif mode == "write":
        block = os.urandom(4096)
        for at, page in enumerate(sequence):
            if at % 4 == 0:
                os.pwrite(file, block, page * 4096)
            else:
                os.pread(file, 4096, page * 4096)
            if at % 1000 == 999:
                os.fsync(file)
    else:
        for page in sequence:
            os.pread(file, 4096, page * 4096)


def sqlite(path, queries, seed):
    import sqlite3

    draw = random.Random(seed)
    database = sqlite3.connect(path)
    database.execute("pragma cache_size = 100")
    database.execute("pragma synchronous = full")
    (rows,) = database.execute("select max(id) from t").fetchone()
    for at in range(queries):
        database.execute("select v from t where id = ?", (int(rows * draw.random() ** 4) + 1,)).fetchone()
        if at % 20 == 0:
            database.execute("update t set n = n + 1 where id = ?", (int(rows * draw.random() ** 4) + 1,))
            database.commit()


def make_database(path, rows):
    import sqlite3

    database = sqlite3.connect(path)
    database.execute("create table t(id integer primary key, n integer, v blob)")
    database.executemany("insert into t values (?, 0, ?)", ((row + 1, os.urandom(900)) for row in range(rows)))
    database.commit()


def make_sources(folder, files):
    """C files that include half of the headers each: a compiler of some 20 MiB for each."""
    draw = random.Random(1)
    os.makedirs(folder)
    headers = 40
    for header in range(headers):
        with open(f"{folder}/h{header}.h", "w") as file:
            for at in range(400):
                file.write(f"static inline int f{header}_{at}(int x) {{ return x * {draw.randrange(1000)} + {at}; }}\n")
    for source in range(files):
        with open(f"{folder}/s{source}.c", "w") as file:
            for header in draw.sample(range(headers), headers // 2):
                file.write(f'#include "h{header}.h"\n')
            file.write(f"int main_{source}(int x) {{ return x; }}\n")


def forget(paths):
    os.sync()
    paths = [path for top in paths for path in ([top] if os.path.isfile(top) else (f.path for f in os.scandir(top)))]
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def compare(name):
    found = json.load(sys.stdin)
    cells = [name]
    for counter in ("insertions", "refaults", "reclaim_calls"):
        real, twin = found["recorded"][counter], found["twin"][counter]["value"]
        cells.append(f"{counter} {real} real, {twin} twin, {(twin / real - 1) * 100:+.1f}%" if real else f"{counter} 0")
    print("; ".join(cells), flush=True)


if __name__ == "__main__":
    mode, *rest = sys.argv[1:]
    if mode == "make":
        with open(rest[0], "wb") as file:
            for _ in range(int(rest[1]) // 256):
                file.write(os.urandom(256 * 4096))
    elif mode == "make-database":
        make_database(rest[0], int(rest[1]))
    elif mode == "make-sources":
        make_sources(rest[0], int(rest[1]))
    elif mode == "forget":
        forget(rest)
    elif mode == "compare":
        compare(rest[0])
    elif mode == "sqlite":
        sqlite(rest[0], int(rest[1]), int(rest[2]))
    else:
        run(mode, rest[0], *map(int, rest[1:4]))
