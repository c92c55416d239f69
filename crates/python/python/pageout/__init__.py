"""Linux page reclaim and cache policies, out of the kernel.

Each function is a command of the program ``pageout``, and each keyword is one of its options: ``read_ahead_kb=0`` is ``--read-ahead-kb 0``. ``pageout help COMMAND``
says what there is. A result has what the program prints as JSON (``result.json``) and its rows as columns (``result["misses"]``), which polars, pandas, pyarrow
and DuckDB take as they are.

    import pageout as po
    r = po.replay("io.csv", policy=["lru", "s3-fifo", "opt"], memory="1%..100%/50log")
    r.plot()
"""

import os as _os
import sys as _sys

from . import _native
from ._native import __version__
from ._call import Error, Result, call
from ._policy import BulkPolicy, Policy, check_policy, named_all as _named_all
from ._sweep import sweep

__all__ = [
    "BulkPolicy", "Error", "Policy", "Result", "__version__", "ablate", "advise_tier", "bisect", "call", "check_policy", "compare", "crossover",
    "explain", "replay", "run", "sweep", "trace", "twin", "validate",
]

_native.set_program([_sys.executable, "-m", "pageout"])


class _File:
    """A trace in a file, with how it is read."""

    def __init__(self, path, format, read):
        self.path, self.format, self.read = _os.fspath(path), format, read

    def __repr__(self):
        return f"<pageout trace {self.path}>"


def trace(path=None, *, pages=None, format=None, read=None):
    """A trace to replay: a file, or an array of page numbers.

    path: a file of any format that ``pageout trace info`` reads; ``format`` and ``read`` say how, as ``--trace-format`` and ``--read`` do:
    ``trace("io.csv", read={"csv.offset_unit": 512})``.

    pages: the page of each access, an array of numpy. Numbers of type uint32 without gaps (0, 1, 2, ...) are used where they are, without a copy: don't write to
    the array while a run goes on. Others are numbered anew. Policies of the machine take such a trace from a temporary file.
    """
    if (path is None) == (pages is None):
        raise TypeError("trace: give either a path or pages")
    if pages is None:
        return _File(path, format, read or {})
    if format is not None or read is not None:
        raise TypeError("trace: format and read are of files")
    return _native.Trace(pages)


def _traces(traces, options):
    """The words for traces: a path, a trace, or several."""
    many = traces if isinstance(traces, (list, tuple)) else [traces]
    words, arrays = [], []
    for one in many:
        if isinstance(one, _native.Trace):
            arrays.append(one)
            words.append(one.name)
        elif isinstance(one, _File):
            words.append(one.path)
            if one.format is not None:
                options.setdefault("trace_format", one.format)
            if one.read:
                options["read"] = {**one.read, **(options.get("read") or {})}
        else:
            words.append(_os.fspath(one))
    return words, arrays


def replay(traces, *, policy="classic@6.12", memory="30%", **options):
    """Misses of traces under policies in memories of several sizes.

    traces: a path, what ``trace`` returns, or a list of them. policy: names (``"lru"``, ``"s3-fifo:small=0.1"``, ``"classic@6.12"``, ``"./mine.so"``) and classes
    (:class:`Policy`), one or a list. memory: sizes or shares, ``"1%..100%/50log"``. More as ``pageout help replay`` has it: ``by``, ``timed``,
    ``sample``, ``warm_up``, ``jobs``, ``seed``, ``fallback``, ``allow_plugins``, ...
    """
    options = dict(options)
    words, arrays = _traces(traces, options)
    policies = policy if isinstance(policy, (list, tuple)) else [policy]
    names = _named_all(policies)
    if not all(isinstance(one, str) for one in policies):
        # Several at a time would take turns with Python's lock, which costs more than it saves.
        options.setdefault("jobs", 1)
    if arrays and any("@" in name for name in names):
        with _spooled(arrays, words) as files:
            return call("replay", *files, policy=",".join(names), memory=memory, **options)
    return call("replay", *words, policy=",".join(names), memory=memory, **options)


class _spooled:
    """Arrays as files, for the machine, which reads traces."""

    def __init__(self, arrays, words):
        self.arrays, self.words = {array.name: array for array in arrays}, words

    def __enter__(self):
        import tempfile

        self.folder = tempfile.TemporaryDirectory(prefix="pageout-")
        files = []
        for at, word in enumerate(self.words):
            if word in self.arrays:
                word = _os.path.join(self.folder.name, f"array-{at}.txt")
                self.arrays[self.words[at]].write(word)
            files.append(word)
        return files

    def __exit__(self, *_):
        self.folder.cleanup()


def run(scenario, **options):
    """What happens in a scenario. ``set={"memcg./db.memory.max": "96MiB"}``, ``seed=1``, ``kernel="6.8"``, ``variant="..."``."""
    repeat = options.pop("repeat", None)
    if repeat not in (None, 1):
        return compare(scenario, repeat=repeat, **options)
    return call("run", _os.fspath(scenario), **options)


def compare(scenario, **options):
    """Variants of a scenario side by side: ``vary={"vm.swappiness": [60, 150]}``, ``repeat=5``; without ``vary`` the scenario's own."""
    return call("compare", _os.fspath(scenario), **options)


def ablate(scenario, **options):
    """What each mechanism of the policy is worth in a scenario: ``over={"memcg./db.memory.max": ["64MiB", "96MiB"]}``, ``switch=[...]``."""
    return call("ablate", _os.fspath(scenario), **options)


def crossover(scenario, **options):
    """The four seams of classic and MGLRU exchanged with each other."""
    return call("crossover", _os.fspath(scenario), **options)


def explain(scenario, **options):
    """Why a page is where it is: ``page="db/0:17"``, or ``evictions=5``."""
    return call("explain", _os.fspath(scenario), **options)


def validate(folder, *runs, **options):
    """The simulator beside recorded runs of a real kernel. A run that falls short is no error here: ``result.json`` says which."""
    return call("validate", _os.fspath(folder), *runs, unexpected_is_error=False, **options)


def advise_tier(scenario, **options):
    """How much of a workload's memory may be slower: ``ratio=["1:1", "1:2"]``, ``device=[...]``, ``loss=5``."""
    return call("advise-tier", _os.fspath(scenario), **options)


def bisect(scenario, **options):
    """Which rule changed the result between two versions: ``from_="6.8"``, ``to="6.12"``."""
    return call("bisect", _os.fspath(scenario), **options)


def twin(*recordings, **options):
    """A recorded machine, simulated beside its counters: ``ask=["memory=-25%"]``."""
    return call("twin", *[_os.fspath(folder) for folder in recordings], **options)
