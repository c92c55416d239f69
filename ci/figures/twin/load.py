"""Loads for ci/figures/twin.sh: pages of a file by Zipf's law (exponent 0.99), a table of SQLite, sources to compile; and the table of their results."""

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
    """C files that include half of the headers each, 4 MiB of 8: a compiler of some 25 MiB for each."""
    draw = random.Random(1)
    os.makedirs(folder)
    headers = 40
    for header in range(headers):
        with open(f"{folder}/h{header}.h", "w") as file:
            file.write(f"/* {'What is said of these functions. ' * 6000} */\n")
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


COUNTERS = ("insertions", "refaults", "reclaim_calls")
LOADS = {
    "read": "reads (`pread`, `FADV_RANDOM`)",
    "ahead": "reads, read ahead",
    "mapped": "mapped, `MADV_RANDOM`",
    "write": "a write each fourth, fsync each thousandth",
    "sqlite": "SQLite: lookups, each twentieth an update",
    "two": "two processes read one file",
    "compile": "a compile (`cc`, 40 files)",
}


def compare(name, limit, path):
    """Reads the output of `pageout twin --json` for a recording, prints it, and keeps it for the table."""
    found = json.load(sys.stdin)
    recorded, twin = found["recorded"], found["twin"]
    figures = None
    # A counter is null if the recording lacks what it needs.
    if twin and not twin["error"] and recorded["insertions"] is not None:
        known = [counter for counter in COUNTERS if recorded[counter] is not None]
        figures = {counter: (recorded[counter], *(twin[counter][what] for what in ("value", "least", "most"))) for counter in known}
    with open(path, "a") as file:
        print(json.dumps([name, int(limit), recorded["insertions"], figures]), file=file)
    told = [f"{counter} {real}, {value} ({least} to {most}), {off(value, real)}" for counter, (real, value, least, most) in (figures or {}).items()]
    if twin and not twin["error"]:
        why = "the recording does not have the pages that came in"
    else:
        why = twin["error"] if twin else "what the group holds came and went, and when is not known"
    print(f"{name}, {limit} MiB: " + ("; ".join(told) or f"refused: {why}"), flush=True)


def off(simulated, real):
    return f"{(simulated / real - 1) * 100:+.1f} %" if real else "-"


def span(values):
    """`1 to 3`, or one value where all are alike."""
    values = list(values)
    return f"{values[0]}" if len(set(values)) == 1 else f"{values[0]} to {values[-1]}"


def table(path):
    """The table of docs/results/data/twin.md: a row for each load and limit."""
    rows = {}
    for line in open(path):
        name, limit, real, figures = json.loads(line)
        rows.setdefault((list(LOADS).index(name), name, limit), []).append((real, figures))
    print("| load | limit | recordings | real | twin, difference | inside repeats | real inside the twin's range | refaults | calls of reclaim |")
    print("|---|---|---|---|---|---|---|---|---|")
    before = None
    for (_, name, limit), found in sorted(rows.items()):
        reals = sorted(real for real, _ in found if real is not None)
        played = [figures for _, figures in found if figures]
        refused = f", {len(found) - len(played)} refused" if 0 < len(played) < len(found) else ""
        cells = [LOADS[name] if name != before else "", f"{limit} MiB", f"{len(found)}{refused}", span(f"{real:,}" for real in reals) if reals else "unknown"]
        if played:
            inside = sum(reals[0] <= figures["insertions"][1] <= reals[-1] for figures in played)
            ranges = [figures["insertions"] for figures in played]
            covered = sum(least <= real <= most for real, _, least, most in ranges)
            cells.extend([differences(played, "insertions"), f"{inside} of {len(played)}", f"{covered} of {len(played)}"])
            cells.extend(differences(played, counter) for counter in COUNTERS[1:])
        else:
            cells.extend(["refused", "", "", "", ""])
        print("| " + " | ".join(cells) + " |")
        before = name


def differences(played, counter):
    """The min and max error of twins, each compared with its own recording."""
    known = [figures[counter] for figures in played if counter in figures]
    pairs = [(simulated / real - 1) * 100 for real, simulated, *_ in known if real]
    if not pairs:
        return "none" if known else "unknown"
    low, high = f"{min(pairs):+.1f}", f"{max(pairs):+.1f}"
    return f"{low} %" if low == high else f"{low} to {high} %"


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
        compare(*rest)
    elif mode == "table":
        table(rest[0])
    elif mode == "sqlite":
        sqlite(rest[0], int(rest[1]), int(rest[2]))
    else:
        run(mode, rest[0], *map(int, rest[1:4]))
