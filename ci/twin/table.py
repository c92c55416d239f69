"""Predicted and recorded pages brought in, for ci/twin.sh.

table.py compare PAGEOUT FOLDER LOAD FOUND LIMIT...   asks the twin of each recording FOLDER/LIMIT for the other limits; adds to FOUND.
table.py print FOUND                                  prints the table of docs/results/data/twin-limits.md, and its sums.
"""

import json, statistics, subprocess, sys


def predictions(pageout, folder, base, others):
    """Whether the group of one recording was full, what its twin predicts for the others, by limit, and what was recorded there."""
    against = ",".join(f"{folder}/{limit}M" for limit in others)
    command = [pageout, "twin", f"{folder}/{base}M", "--against", against, "--json", "--quiet"]
    ran = subprocess.run(command, capture_output=True, text=True)
    if not ran.stdout.startswith("{") or "against" not in ran.stdout:
        why = ran.stderr.strip().splitlines()[0] if ran.stderr.strip() else "failed"
        return False, {limit: (None, None, why) for limit in others}
    found, twin = {}, json.loads(ran.stdout)
    for limit, of in zip(others, twin["against"]):
        predicted = of["predicted"] if of["predicted"] and not of["predicted"]["error"] else None
        why = of["not_answered"] or (of["predicted"] or {}).get("error")
        found[limit] = (predicted and predicted["insertions"], of["recorded"]["insertions"], why)
    return bool(twin["recorded"]["reclaim_calls"]), found


def compare(pageout, folder, load, path, limits):
    limits = [int(limit) for limit in limits]
    made = {base: predictions(pageout, folder, base, [limit for limit in limits if limit != base]) for base in limits}
    for place, limit in enumerate(limits):
        # A recording whose group was full first, as it has the memory of programs at each reclaim call; then the nearest larger limit.
        bases = limits[place + 1 :] + limits[:place][::-1]
        bases.sort(key=lambda base: not made[base][0])
        of = lambda base: made[base][1][limit]
        recorded = next((of(base)[1] for base in bases if of(base)[1] is not None), None)
        answered = next((base for base in bases if of(base)[0]), None)
        why = None if answered else of(bases[0])[2]
        row = [load, limit, answered, answered and of(answered)[0], recorded, why]
        with open(path, "a") as file:
            print(json.dumps(row), file=file)
        if answered:
            value = row[3]["value"]
            print(f"{load}, {limit} MiB from {answered} MiB: predicted {value:,}, recorded {recorded:,}, {difference(value, recorded)}", flush=True)
        else:
            print(f"{load}, {limit} MiB: not answered: {why}", flush=True)


def difference(predicted, recorded):
    return f"{(predicted / recorded - 1) * 100:+.1f} %" if recorded else "-"


def span(values):
    least, most = min(values), max(values)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def show(path):
    cells = {}
    for line in open(path):
        load, limit, *rest = json.loads(line)
        cells.setdefault((load, limit), []).append(rest)
    print("| load | limit | from | recordings | recorded: pages brought in | predicted | difference of medians | recorded inside the range |")
    print("|---|---|---|---|---|---|---|---|")
    errors, before = [], None
    for (load, limit), found in cells.items():
        recorded = [real for _, _, real, _ in found if real is not None]
        answered = [row for row in found if row[0] and row[2] is not None]
        name, before = (load if load != before else ""), load
        cell = [name, f"{limit} MiB"]
        # Most of the repeats answer, or the cell counts as not answered.
        if len(answered) * 2 > len(found):
            values = [row[1]["value"] for row in answered]
            bases = "/".join(str(base) for base in sorted({row[0] for row in answered}))
            real, said = statistics.median(recorded), statistics.median(values)
            inside = sum(row[1]["least"] <= row[2] <= row[1]["most"] for row in answered)
            errors.append(abs(said / real - 1) if real else float(said > 0))
            cell += [f"{bases} MiB", f"{len(answered)} of {len(found)}", span(recorded), span(values), difference(said, real), f"{inside} of {len(answered)}"]
        else:
            cell += ["", f"{len(answered)} of {len(found)}", span(recorded) if recorded else "-", "not answered", "", ""]
        print("| " + " | ".join(cell) + " |")
    if errors:
        near = sum(error <= 0.1 for error in errors)
        print(f"\n{len(errors)} of {len(cells)} answered; median error {statistics.median(errors) * 100:.1f} %; {near} of {len(errors)} within 10 %.")
    for (load, limit), found in cells.items():
        for why in sorted({row[3] for row in found if row[3]}):
            print(f"- {load}, {limit} MiB: {why}")


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "compare":
        compare(*rest[:4], rest[4:])
    else:
        show(rest[0])
