"""Linux page reclaim and cache policies, out of the kernel.

Each function is a command of the program ``pageout``, and its keywords are fields of the question that the command asks: ``read_ahead_kb=0`` is ``--read-ahead-kb 0``.
``help(pageout.replay)`` shows them with their defaults, and ``pageout help COMMAND`` says what they mean. A result has what the program prints as JSON (``result.json``) and its rows as columns (``result["misses"]``), which polars, pandas, pyarrow
and DuckDB take as they are.

    import pageout as po
    r = po.replay("io.csv", policy=["lru", "s3-fifo", "opt"], memory="1%..100%/50log")
    r.plot()
"""

import os as _os

from . import _asks, _native
from ._asks import ablate, advise_tier, bisect, compare, crossover
from ._native import __version__
from ._policy import BulkPolicy, Policy, check_policy, named_all as _named_all
from ._result import Error, Result
from ._sweep import collect, sweep

__all__ = [
    "BulkPolicy", "Error", "Policy", "Result", "__version__", "ablate", "advise_tier", "bisect", "check_policy", "collect", "compare", "crossover",
    "explain", "replay", "run", "sweep", "trace", "twin", "validate",
]


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


def _nested(table):
    """A table whose keys may be paths, as ``csv.offset_unit``."""
    nested = {}
    for path, value in table.items():
        *folders, key = path.split(".")
        place = nested
        for folder in folders:
            place = place.setdefault(folder, {})
        place[key] = _nested(value) if isinstance(value, dict) else value
    return nested


def _traces(traces, read):
    """The names of traces (a path, a trace, or several), arrays among them, and how files are read."""
    many = traces if isinstance(traces, (list, tuple)) else [traces]
    words, arrays, read = [], [], dict(read or {})
    for one in many:
        if isinstance(one, _native.Trace):
            arrays.append(one)
            words.append(one.name)
        elif isinstance(one, _File):
            words.append(one.path)
            read = {**one.read, **read}
            if one.format is not None:
                read.setdefault("format", one.format)
        else:
            words.append(_os.fspath(one))
    return words, arrays, _nested(read)


def replay(traces, *, policy="classic@6.12", memory="30%", read=None, **options):
    """Misses of traces under policies in memories of several sizes.

    traces: a path, what ``trace`` returns, or a list of them. policy: names (``"lru"``, ``"s3-fifo:small=0.1"``, ``"classic@6.12"``, ``"./mine.so"``) and classes
    (:class:`Policy`), one or a list. memory: sizes or shares, ``"1%..100%/50log"``. read: how files are read, as ``pageout keys read.`` has it. More as
    ``pageout help replay`` has it: ``by``, ``timed``, ``sample``, ``warm_up``, ``jobs``, ``seed``, ``fallback``, ``allow_plugins``, ...
    """
    words, arrays, read = _traces(traces, read)
    policies = policy if isinstance(policy, (list, tuple)) else [policy]
    names = _named_all(policies)
    if not all(isinstance(one, str) for one in policies):
        # Several at a time would take turns with Python's lock, which costs more than it saves.
        options.setdefault("jobs", 1)
    if len(names) == 1:
        names = names[0]
    if arrays and any("@" in name for name in ([names] if isinstance(names, str) else names)):
        with _spooled(arrays, words) as files:
            return _asks.replay(files, policy=names, memory=memory, read=read, **options)
    return _asks.replay(words, policy=names, memory=memory, read=read, **options)


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


def run(scenario, *, repeat=None, **options):
    """What happens in a scenario. ``set={"memcg./db.memory.max": "96MiB"}``, ``seed=1``, ``kernel="6.8"``, ``variant="..."``."""
    if repeat not in (None, 1):
        return compare(scenario, repeat=repeat, **options)
    return _asks.run(scenario, **options)


def explain(scenario, *, page=None, evictions=None, memcg=None, **options):
    """Why a page is where it is: ``page="db/0:17"``, or ``evictions=5``, of a cgroup alone with ``memcg="/db"``."""
    if (page is None) == (evictions is None):
        raise TypeError("explain: give either a page or a number of evictions")
    about = {"page": page} if page is not None else {"evictions": {"count": evictions, "memcg": memcg}}
    return _asks.explain(scenario, about=about, **options)


def validate(folder, *runs, **options):
    """The simulator beside recorded runs of a real kernel. A run that falls short is no error here: ``result.json`` says which."""
    return _asks.validate(folder, runs=runs, **options)


def twin(*recordings, **options):
    """A recorded machine, simulated beside its counters: ``ask=["memory=-25%"]``."""
    return _asks.twin(recordings, **options)
