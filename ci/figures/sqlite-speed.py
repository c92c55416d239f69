"""speedtest1 at equal memory: with the kernel's cache and with the VFS `pageout`, each in a memory cgroup with the same limit. Run by ci/slow/sqlite.sh.

sqlite-speed.py DIR [CELLS]: cells are "SIZE LIMIT_MIB BUDGET_MIB", separated by semicolons. The memory of SQLite itself, and journals, is in the limit of both. The
kernel's cache has all of the rest, and pageout's its budget. Rounds alternate. JOURNALS: some of "journal;WAL;WAL, exclusive". Needs memory cgroups of version 1, and root.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup/memory")
JOURNALS = [("journal", []), ("WAL", ["--journal", "wal"]), ("WAL, exclusive", ["--journal", "wal", "--exclusive"])]
ROUNDS = int(os.environ.get("ROUNDS", "3"))


class Broken(Exception):
    """A run that did not end well."""


def run(work: Path, size: str, limit_mib: int, budget_mib: int | None, options: list[str]) -> dict[str, float]:
    """One run: seconds of wall and CPU, bytes read and written at the device, peak of the group."""
    group = GROUPS / f"pageout-speed-{os.getpid()}"
    group.mkdir()
    folder = work / "speed"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(f"{limit_mib << 20}")
        env = {name: value for name, value in os.environ.items() if not name.startswith("PAGEOUT")}
        if budget_mib:
            env["PAGEOUT_SQLITE"] = json.dumps({"budget": budget_mib << 20, "files": 256 << 20})
        command = ["/usr/bin/env", "sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
        command += [str(work / "speedtest1"), "--size", size, *options, "data.db"]
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = process.stdout.read().decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
        process.returncode = status
        if status != 0:
            raise Broken(f"speedtest1 {size} with a limit of {limit_mib} MiB ends with {status}: {said[-400:]}")
        blocks = {"read": usage.ru_inblock * 512, "written": usage.ru_oublock * 512}
        tests = {int(number): float(seconds) for number, seconds in re.findall(r"^ *(\d+) - .*?([\d.]+)s$", said, re.M)}
        peak = int((group / "memory.max_usage_in_bytes").read_text())
        bytes_of = (folder / "data.db").stat().st_size
        return {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "peak": peak, "file": bytes_of, **blocks, "tests": tests}
    finally:
        for _ in range(50):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    work = Path(sys.argv[1])
    cells = sys.argv[2] if len(sys.argv) > 2 else "100 24 12;100 64 48"
    if not (GROUPS / "memory.limit_in_bytes").exists() or os.geteuid() != 0:
        print("LEFT OUT: memory cgroups of version 1, and root", file=sys.stderr)
        return 77
    # A cache that can't be built is noticed: the runs do go through it.
    try:
        run(work, "1", 64, 1, [])
        print("with a cache that can't be built speedtest1 runs nevertheless")
        return 1
    except Broken:
        pass
    for cell in cells.split(";"):
        size, limit, budget = cell.split()
        for name, options in [of for of in JOURNALS if of[0] in os.environ.get("JOURNALS", of[0]).split(";")]:
            rows = {"kernel": [], "pageout": []}
            for _ in range(ROUNDS):
                for who, with_budget in [("kernel", None), ("pageout", int(budget))]:
                    rows[who].append(run(work, size, int(limit), with_budget, options))
            median = lambda who, what: statistics.median(row[what] for row in rows[who])
            ratios = [ours["wall"] / plain["wall"] for plain, ours in zip(rows["kernel"], rows["pageout"], strict=True)]
            mib = rows["kernel"][0]["file"] / 2**20
            print(f"speedtest1 --size {size}, {name}: a database of {mib:.0f} MiB, {limit} MiB for the process, {budget} of them a budget")
            for who in rows:
                figures = f"{median(who, 'wall'):.2f} s, CPU {median(who, 'cpu'):.2f} s, read {median(who, 'read') / 2**20:.0f} MiB, written {median(who, 'written') / 2**20:.0f} MiB"
                print(f"  {who:8} {figures}, peak {median(who, 'peak') / 2**20:.0f} MiB")
            of_device = lambda row: row["read"] + row["written"]
            device = [of_device(ours) / of_device(plain) for plain, ours in zip(rows["kernel"], rows["pageout"], strict=True)]
            print(f"  pageout moves {statistics.median(device):.2f} times as many bytes of the device ({min(device):.2f} to {max(device):.2f})")
            print(f"  pageout takes {statistics.median(ratios):.2f} times as long ({min(ratios):.2f} to {max(ratios):.2f})")
            by_test = {number: [o["tests"][number] / max(p["tests"][number], 1e-3) for p, o in zip(rows["kernel"], rows["pageout"], strict=True)] for number in rows["kernel"][0]["tests"]}
            worst = sorted(((statistics.median(by), number) for number, by in by_test.items() if rows["kernel"][0]["tests"][number] > 0.05), reverse=True)
            if worst:
                print("  by test, slowest first: " + ", ".join(f"{number}: {ratio:.2f}" for ratio, number in worst[:4] + worst[-3:]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
