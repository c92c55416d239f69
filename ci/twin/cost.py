"""The cost of recording the ten loads of ci/twin.sh without events of hits: CPU time of the load, and of load and recorder together.

cost.py PAGEOUT FOLDER ROUNDS [LOAD...]   FOLDER is for files. Rounds alternate; the minimum of each kind counts.
"""

import os, resource, shutil, subprocess, sys

import loads

KINDS = {"not recorded": None, "counters": ["--events", "none"], "without hits": ["--events", "faults,insertions,writes"]}


def cpu_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# CPU seconds that a load takes at least: it is repeated, as a recording has a fixed cost of its own.
SECONDS = 2


def one(pageout, folder, load, events, times):
    """CPU seconds of the load, and of the recorder. Both start with the files in memory."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "loads.py")
    command = [sys.executable, "-I", script, "run", load, f"{folder}/files", f"{folder}/used", str(times)]
    rec = f"{folder}/rec"
    shutil.rmtree(rec, ignore_errors=True)
    if events is not None:
        command = [pageout, "record", "--quiet", "--into", rec, *events, "--", *command]
    begin = cpu_time()
    # Names of files that were open for a short time are searched in the current folder.
    ran = subprocess.run(command, stdout=subprocess.PIPE, cwd=f"{folder}/files")
    all_of = cpu_time() - begin
    if ran.returncode:
        sys.exit(f"{load} has failed")
    with open(f"{folder}/used") as file:
        own = float(file.read())
    return own, 0 if events is None else all_of - own


def main(pageout, folder, rounds, *chosen):
    print("| load | not recorded, CPU s | counters: load | with the recorder | without hits: load | with the recorder |")
    print("|---|---|---|---|---|---|")
    worst = {kind: 0 for kind in KINDS}
    # Each load weighs the same, however often it was repeated.
    shares = {kind: [] for kind in KINDS}
    for load in chosen or loads.LIMITS:
        shutil.rmtree(f"{folder}/files", ignore_errors=True)
        os.makedirs(f"{folder}/files")
        getattr(loads, f"make_{load.replace('-', '_')}")(f"{folder}/files")
        first, _ = one(pageout, folder, load, None, 1)
        times = max(1, round(SECONDS / first + 0.5))
        found = {kind: [] for kind in KINDS}
        for _ in range(int(rounds)):
            for kind, events in KINDS.items():
                found[kind].append(one(pageout, folder, load, events, times))
        # The round with the least of both: the recorder ends what the load began.
        own = {kind: min(of for of, _ in found[kind]) for kind in KINDS}
        both = {kind: min(sum(of) for of in found[kind]) for kind in KINDS}
        base = own["not recorded"]
        cells = [load, f"{base:.2f}"]
        for kind in list(KINDS)[1:]:
            cells += [f"{(own[kind] / base - 1) * 100:+.1f} %", f"{(both[kind] / base - 1) * 100:+.1f} %"]
            worst[kind] = max(worst[kind], own[kind] / base - 1)
            shares[kind].append(own[kind] / base - 1)
        print("| " + " | ".join(cells) + " |", flush=True)
    print("\nmean, of the load alone: " + ", ".join(f"{kind} {sum(shares[kind]) / len(shares[kind]) * 100:+.1f} %" for kind in list(KINDS)[1:]))
    print("largest: " + ", ".join(f"{kind} {worst[kind] * 100:+.1f} %" for kind in list(KINDS)[1:]))


if __name__ == "__main__":
    main(*sys.argv[1:])
