#!/usr/bin/env python3
"""What each recorded input is worth: the tables of docs/results/inputs.md.

Usage: ci/inputs.py PAGEOUT FOLDER [RUN...]    for instance ci/inputs.py target/release/pageout ground-truth/machine-inputs

Each run of the folder is validated with all inputs, without each of them, and with none. Of a group's run the table has the share of accesses that
differ, of a whole machine's its misses and stalls."""

import json
import subprocess
import sys

OF_GROUP = ["group_at_start", "flushes", "mapped_file", "agings", "access_times"]
OF_MACHINE = ["start_state", "kswapd_wakes", "kernel_allocations"]


def judged(pageout, folder, runs, without):
    """The rows of each run, by name."""
    command = [pageout, "validate", folder, *runs, "--json"]
    command += ["--without", ",".join(without)] if without else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(done.stderr)
    return {run["run"]: {row["name"]: row for row in run["rows"]} for run in json.loads(done.stdout)}


def cells(rows):
    """A table row's figures: what they are, as text."""
    if "stalls" in rows:
        missed, stalls = rows["missed"], rows["stalls"]
        return [f"{(missed['simulated'] / missed['real'] - 1) * 100:+.1f} %", f"{stalls['simulated']:.0f}"]
    return [f"{rows['disagreement']['simulated'] * 100:.3f}"]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    pageout, folder, runs = sys.argv[1], sys.argv[2], sys.argv[3:]
    full = judged(pageout, folder, runs, [])
    is_machine = any("stalls" in rows for rows in full.values())
    inputs = OF_MACHINE if is_machine else OF_GROUP
    others = [judged(pageout, folder, runs, [one]) for one in inputs] + [judged(pageout, folder, runs, inputs)]
    heads = ["all inputs", *(f"without `{one}`" for one in inputs), "with none"]
    recorded = ["misses, recorded", "stalls, recorded"] if is_machine else []
    print("| run |", " | ".join(recorded + heads), "|")
    print("|---|" + "---:|" * len(recorded + heads))
    for run, rows in full.items():
        line = [f"{rows[name]['real']:,.0f}" for name in (["missed", "stalls"] if is_machine else [])]
        line += [", ".join(cells(table[run])) for table in [full, *others]]
        print(f"| {run} |", " | ".join(line), "|")


main()
