"""Functions that ask a study: made of the commands' rows by crates/lab/tests/cli/python.rs."""

from ._ask import ask as _ask, changes as _changes, varied as _varied


def run(scenario, *, variant=None, set=None, seed=None, kernel=None, **own):
    """Run a scenario and print a summary.

    Keywords are explained by ``pageout help run``.
    """
    fields = {"scenario": scenario, "variant": variant, "changes": _changes(set, seed, kernel)}
    return _ask("run", fields, **own)


def compare(scenario, *, vary=(), within=None, repeat=1, jobs=0, all=False, set=None, seed=None, kernel=None, **own):
    """Run variants of a scenario and compare them.

    Keywords are explained by ``pageout help compare``.
    """
    fields = {"scenario": scenario, "vary": _varied(vary), "within": within, "repeat": repeat, "jobs": jobs, "all": all, "changes": _changes(set, seed, kernel)}
    return _ask("compare", fields, **own)


def explain(scenario, *, about=None, steps=12, set=None, seed=None, kernel=None, **own):
    """Explain why a page was kept or evicted.

    Keywords are explained by ``pageout help explain``.
    """
    fields = {"scenario": scenario, "about": about, "steps": steps, "changes": _changes(set, seed, kernel)}
    return _ask("explain", fields, **own)


def crossover(scenario, *, over=(), repeat=5, jobs=0, set=None, seed=None, kernel=None, **own):
    """Combine the mechanisms of classic LRU and MGLRU in all 32 ways.

    Keywords are explained by ``pageout help crossover``.
    """
    fields = {"scenario": scenario, "over": _varied(over), "repeat": repeat, "jobs": jobs, "changes": _changes(set, seed, kernel)}
    return _ask("crossover", fields, **own)


def advise_tier(scenario, *, memory=None, device=("cxl-1.1", "cxl-2.0-switch",), ratio=("2:1", "1:1", "1:2", "1:4",), loss=5.0, price=None, warm_up="20%", check_scale=False, every_source=False, repeat=1, jobs=0, set=None, seed=None, kernel=None, **own):
    """Find how much of a workload's memory may be slower.

    Keywords are explained by ``pageout help advise-tier``.
    """
    fields = {"scenario": scenario, "memory": memory, "device": device, "ratio": ratio, "loss": loss, "price": price, "warm_up": warm_up, "check_scale": check_scale, "every_source": every_source, "repeat": repeat, "jobs": jobs, "changes": _changes(set, seed, kernel)}
    return _ask("advise_tier", fields, **own)


def ablate(scenario, *, variant=None, over=(), switch=(), repeat=5, jobs=0, set=None, seed=None, kernel=None, **own):
    """Measure the effect of each mechanism of the reclaim policy.

    Keywords are explained by ``pageout help ablate``.
    """
    fields = {"scenario": scenario, "variant": variant, "over": _varied(over), "switch": switch, "repeat": repeat, "jobs": jobs, "changes": _changes(set, seed, kernel)}
    return _ask("ablate", fields, **own)


def bisect(scenario, *, variant=None, from_="", to="", lists=None, judge_by=None, repeat=5, jobs=0, set=None, seed=None, kernel=None, **own):
    """Find the rule that changed a result between two versions.

    Keywords are explained by ``pageout help bisect``.
    """
    fields = {"scenario": scenario, "variant": variant, "from": from_, "to": to, "lists": lists, "judge_by": judge_by, "repeat": repeat, "jobs": jobs, "changes": _changes(set, seed, kernel)}
    return _ask("bisect", fields, **own)


def replay(traces, *, memory=("30%",), policy=("classic@6.12",), channel="file", writes=False, by=None, timed=None, untimed=False, warm_up=None, sample=None, exact=False, live=(), make=False, region=False, device="nvme", read_ahead_kb=None, swap=None, think_time="0s", read=None, seed=1, trace_memory="1GiB", jobs=0, print_scenario=False, **own):
    """Replay traces with several memory sizes and policies.

    Keywords are explained by ``pageout help replay``.
    """
    fields = {"traces": traces, "memory": memory, "policy": policy, "channel": channel, "writes": writes, "by": by, "timed": timed, "untimed": untimed, "warm_up": warm_up, "sample": sample, "exact": exact, "live": live, "make": make, "region": region, "device": device, "read_ahead_kb": read_ahead_kb, "swap": swap, "think_time": think_time, "read": read, "seed": seed, "trace_memory": trace_memory, "jobs": jobs, "print_scenario": print_scenario}
    return _ask("replay", fields, **own)


def sweep(task, *, plan="", folder=None, shard=(0, 1,), part_every="60s", jobs=0, policy_time="600s", policy_memory="4GiB", base="fifo", **own):
    """Run many traces, policies, sizes and seeds into a folder.

    Keywords are explained by ``pageout help sweep``.
    """
    fields = {"task": task, "plan": plan, "folder": folder, "shard": shard, "part_every": part_every, "jobs": jobs, "policy_time": policy_time, "policy_memory": policy_memory, "base": base}
    return _ask("sweep", fields, **own)


def check_policy(policy, **own):
    """Check that a policy keeps the contract.

    Keywords are explained by ``pageout help check-policy``.
    """
    fields = {"policy": policy}
    return _ask("check_policy", fields, **own)


def twin(recordings, *, ask=(), against=(), allow_loss=False, curve=False, jobs=0, **own):
    """Simulate a recorded machine, unchanged or with changes.

    Keywords are explained by ``pageout help twin``.
    """
    fields = {"recordings": recordings, "ask": ask, "against": against, "allow_loss": allow_loss, "curve": curve, "jobs": jobs}
    return _ask("twin", fields, **own)


def validate(dir, *, runs=(), expect_short=(), tolerances=None, without=(), simulations=None, first_difference=False, jobs=0, **own):
    """Compare the simulator with counters of a real kernel.

    Keywords are explained by ``pageout help validate``.
    """
    fields = {"dir": dir, "runs": runs, "expect_short": expect_short, "tolerances": tolerances, "without": without, "simulations": simulations, "first_difference": first_difference, "jobs": jobs}
    return _ask("validate", fields, **own)
