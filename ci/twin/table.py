"""Predicted and recorded pages brought in and calls of reclaim, for ci/twin.sh.

table.py compare PAGEOUT FOLDER LOAD FOUND LIMIT...   asks the twin of each recording FOLDER/LIMIT for the other limits; adds to FOUND.
table.py print FOUND                                  prints the tables of docs/results/data/twin-limits.md, and their sums.
"""

import json, statistics, subprocess, sys


# A difference of so many calls of reclaim needs no cause: one call more for the pages that a CPU charges in one batch.
FEW_CALLS = 2


def predictions(pageout, folder, base, others):
    """Whether the group of one recording was full, what its twin predicts for the others, by limit, and what was recorded there. Then the calls of
    reclaim at its own limit: the twin's and the recorded ones."""
    against = ",".join(f"{folder}/{limit}M" for limit in others)
    command = [pageout, "twin", f"{folder}/{base}M", "--against", against, "--json", "--quiet"]
    ran = subprocess.run(command, capture_output=True, text=True)
    if not ran.stdout.startswith("{") or "against" not in ran.stdout:
        why = ran.stderr.strip().splitlines()[0] if ran.stderr.strip() else "failed"
        return False, {limit: (None, None, why, None) for limit in others}, (None, None)
    found, twin = {}, json.loads(ran.stdout)
    for limit, of in zip(others, twin["against"]):
        predicted = of["predicted"] if of["predicted"] and not of["predicted"]["error"] else None
        why = of["not_answered"] or (of["predicted"] or {}).get("error")
        calls = predicted and predicted["reclaim_calls"]["value"]
        found[limit] = (predicted and predicted["insertions"], of["recorded"]["insertions"], why, calls)
    own = twin["twin"] and not twin["twin"]["error"] and twin["twin"]["reclaim_calls"]["value"]
    recorded = twin["recorded"]["reclaim_calls"]
    return bool(recorded), found, (None if own is False else own, recorded)


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
        own, calls = made[limit][2]
        row = [load, limit, answered, answered and of(answered)[0], recorded, why, calls, own, answered and of(answered)[3]]
        with open(path, "a") as file:
            print(json.dumps(row), file=file)
        if answered:
            value = row[3]["value"]
            print(f"{load}, {limit} MiB from {answered} MiB: predicted {value:,}, recorded {recorded:,}, {difference(value, recorded)}; calls of reclaim: recorded {calls}, twin {own}, predicted {row[8]}", flush=True)
        else:
            print(f"{load}, {limit} MiB: not answered: {why}; calls of reclaim: recorded {calls}, twin {own}", flush=True)


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
    show_pages({cell: [row[:4] for row in rows] for cell, rows in cells.items()})
    show_calls({cell: [row[4:] for row in rows] for cell, rows in cells.items()})


def show_calls(cells):
    print("\n| load | limit | recorded: calls of reclaim | twin, same limit | difference of medians | twin of another limit | difference of medians |")
    print("|---|---|---|---|---|---|---|")
    before, errors = None, {1: [], 2: []}
    for (load, limit), found in cells.items():
        recorded = [row[0] for row in found if row[0] is not None]
        name, before = (load if load != before else ""), load
        cell = [name, f"{limit} MiB", span(recorded) if recorded else "-"]
        for place in (1, 2):
            values = [row[place] for row in found if row[place] is not None]
            if not values or not recorded:
                cell += ["-", ""]
                continue
            real, said = statistics.median(recorded), statistics.median(values)
            cell += [span(values), difference(said, real)]
            if real > FEW_CALLS:
                errors[place].append(abs(said / real - 1))
        print("| " + " | ".join(cell) + " |")
    for place, what in ((1, "same limit"), (2, "another limit")):
        if errors[place]:
            near = sum(error <= 0.1 for error in errors[place])
            print(f"\nCalls of reclaim, {what}: {near} of {len(errors[place])} within 10 %; median error {statistics.median(errors[place]) * 100:.1f} %.")


def show_pages(cells):
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
