#!/usr/bin/env python3
"""The effect of each recorded input: prints docs/results/data/inputs.csv.

Usage: ci/figures/inputs.py PAGEOUT FOLDER[:RUN,RUN...]...    for instance ci/figures/inputs.py target/release/pageout ground-truth/inputs 'ground-truth:fr-*.f?'

Each run that has inputs is validated with all of them, without each of them, and with none. For a group's run the table has the share of accesses
that hit on one side and missed on the other. For a whole machine it has the difference of its misses to the recorded ones, and its stalls. A
dash: the run has no such input, or its policy doesn't use it. `=`: the same figures as with all. The commit is printed to the error output."""

import csv
import json
import subprocess
import sys

OF_GROUP = ["group_at_start", "base_pages", "flushes", "mapped_file", "agings", "access_times"]
# Parts of a `start_state` are left out each by itself as well.
PARTS = ["free_memory", "per_cpu_lists", "lru_lists", "add_batches", "tiers", "costs", "statistics", "statistics_due"]
OF_MACHINE = ["start_state", *PARTS, "kswapd_wakes", "kernel_allocations"]


def judged(pageout, folder, runs, without):
    """Returns the verdict on each run, by name."""
    print(f"{folder}: {len(runs)} names, without {', '.join(without) or 'nothing'}", file=sys.stderr)
    command = [pageout, "validate", folder, *runs, "--json"]
    command += ["--without", ",".join(without)] if without else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(done.stderr)
    return {run["run"]: run for run in json.loads(done.stdout)}


def cell(run):
    """A run's figures as text."""
    rows = {row["name"]: row for row in run["rows"]}
    if "stalls" in rows:
        missed, stalls = rows["missed"], rows["stalls"]
        return f"{(missed['simulated'] / missed['real'] - 1) * 100:+.1f} %; {stalls['simulated']:.0f}"
    return f"{rows['disagreement']['simulated'] * 100:.3f} %"


def rows_of(pageout, folder, names):
    """A row for each run of a folder that has inputs: its name, with all inputs, without each, with none."""
    full = {run: told for run, told in judged(pageout, folder, names, []).items() if told["inputs"]["played"]}
    inputs = {}
    for run, told in full.items():
        played = told["inputs"]["played"]
        inputs[run] = played + (PARTS if "start_state" in played else [])
        if run.split(".")[1] != "mglru":
            inputs[run] = [one for one in inputs[run] if one != "tiers"]
        else:
            inputs[run] = [one for one in inputs[run] if one not in ("costs", "statistics", "statistics_due")]
    cells = {run: {"all": cell(told)} for run, told in full.items()}
    for one in OF_GROUP + OF_MACHINE:
        runs = [run for run in full if one in inputs[run]]
        for run, told in judged(pageout, folder, runs, [one]).items() if runs else []:
            cells[run][one] = cell(told)
    for run, told in judged(pageout, folder, list(full), OF_GROUP + OF_MACHINE).items() if full else []:
        cells[run]["none"] = cell(told)
    for run, of in cells.items():
        same = {one: "=" if text == of["all"] else text for one, text in of.items() if one != "all"}
        yield [run, of["all"], *(same.get(one, "–") for one in [*OF_GROUP, *OF_MACHINE, "none"])]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    git = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    print(f"ci/figures/inputs.py at {commit}", file=sys.stderr)
    output = csv.writer(sys.stdout, lineterminator="\n")
    output.writerow(["run", "all inputs", *OF_GROUP, *OF_MACHINE, "all of them"])
    for argument in sys.argv[2:]:
        folder, _, names = argument.partition(":")
        for row in rows_of(sys.argv[1], folder, names.split(",") if names else []):
            output.writerow(row)
            sys.stdout.flush()


main()
