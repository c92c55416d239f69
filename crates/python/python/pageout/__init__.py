"""Linux page reclaim and cache policies, out of the kernel.

Each function is a command of the program ``pageout``, and its keywords are fields of the question that the command asks: ``read_ahead_kb=0`` is ``--read-ahead-kb 0``.
``help(pageout.replay)`` shows them with their defaults, and ``pageout help COMMAND`` explains them. A result has the program's JSON (``result.json``) and its rows as columns (``result["misses"]``), which polars, pandas,
pyarrow and DuckDB read directly.

    import pageout as po
    r = po.replay("io.csv", policy=["lru", "s3-fifo", "opt"], memory="1%..100%/50log")
    r.plot()
"""

import contextlib as _contextlib
import os as _os

from . import _ask, _asks, _native
from ._asks import ablate, advise_tier, bisect, compare, crossover
from ._native import __version__
from ._policy import BulkPolicy, Policy, check_policy, named_all as _named_all
from ._result import Error, Result
from ._sweep import collect, sweep

__all__ = [
    "BulkPolicy", "Error", "Policy", "Result", "__version__", "ablate", "advise_tier", "bisect", "check_policy", "collect", "compare", "crossover",
    "explain", "replay", "run", "sweep", "trace", "twin", "validate",
]


def _path(field, path):
    """A path as text."""
    if isinstance(path, (str, bytes, _os.PathLike)):
        return _os.fsdecode(path)
    hint = "; pages in an array are pageout.trace(pages=...)" if hasattr(path, "__array__") else ""
    raise TypeError(f"{field}: found {type(path).__name__}, expected a path or what pageout.trace returns{hint}")


def _table(field, table):
    """A dict; nothing is an empty one."""
    if table is not None and not isinstance(table, dict):
        raise TypeError(f'{field}: found {table!r:.100}, expected a dict, such as {{"csv.offset_unit": 512}}')
    return table or {}


class _File:
    """A trace in a file, with how it is read."""

    def __init__(self, path, format, read):
        self.path, self.format, self.read = _path("trace", path), format, _table("read", read)

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
    if hasattr(pages, "mask"):
        raise TypeError("pages: found a masked array, expected one without a mask, such as pages.compressed()")
    return _native.Trace(pages)


def _nested(table):
    """A table whose keys may be paths, as ``csv.offset_unit``."""
    nested = {}
    for path, value in _leaves(table, ()):
        *folders, key = path
        place = nested
        for folder in folders:
            place = place.setdefault(folder, {}) if isinstance(place, dict) else place
        if not isinstance(place, dict) or key in place:
            raise TypeError(f"read: `{'.'.join(path)}` is given twice, or within a key that has a value")
        place[key] = value
    return nested


def _leaves(table, within):
    """Paths of a table with their values, those of tables within as well."""
    for key, value in table.items():
        if not isinstance(key, str):
            raise TypeError(f"read: found the key {key!r}, expected a text, such as csv.offset_unit")
        path = (*within, *key.split("."))
        if isinstance(value, dict):
            yield from _leaves(value, path)
        else:
            yield path, value


def _traces(traces, read):
    """The names of traces (a path, a trace, or several), arrays among them, and how files are read."""
    many = traces if isinstance(traces, (list, tuple)) else [traces]
    words, arrays, ways = [], [], []
    read = _nested(_table("read", read))
    for one in many:
        if isinstance(one, _native.Trace):
            arrays.append(one)
            words.append(one.name)
            continue
        words.append(one.path if isinstance(one, _File) else _path("traces", one))
        own = _nested(one.read) if isinstance(one, _File) else {}
        if isinstance(one, _File) and one.format is not None:
            own.setdefault("format", one.format)
        ways.append(_over(own, read))
    if any(way != ways[0] for way in ways):
        raise TypeError(f"traces: the files of a call are read alike, found {ways[0]} and {next(way for way in ways if way != ways[0])}: make a call for each")
    if read and not ways:
        raise TypeError("read: it is of files, and all traces are arrays")
    return words, arrays, ways[0] if ways else {}


def _over(table, more):
    """A nested table with another one over it."""
    return {**table, **{key: _over(table[key], of) if isinstance(of, dict) and isinstance(table.get(key), dict) else of for key, of in more.items()}}


def replay(traces, *, policy="classic@6.12", memory="30%", read=None, **options):
    """Misses of traces under policies in memories of several sizes.

    traces: a path, what ``trace`` returns, or a list of them. policy: names (``"lru"``, ``"s3-fifo:small=0.1"``, ``"classic@6.12"``, ``"./mine.so"``) and classes
    (:class:`Policy`), one or a list. memory: sizes or shares, ``"1%..100%/50log"``. read: how files are read, as ``pageout keys read.`` has it. More as
    ``pageout help replay`` has it: ``by``, ``timed``, ``sample``, ``warm_up``, ``jobs``, ``seed``, ``fallback``, ``allow_plugins``, ...
    """
    words, arrays, read = _traces(traces, read)
    if arrays and options.get("by") is not None:
        raise TypeError("by: an array of pages has no columns, so it has no tenants")
    policies = policy if isinstance(policy, (list, tuple)) else [policy]
    has_classes = not all(isinstance(one, str) for one in policies)
    if has_classes:
        # Several at a time would take turns with Python's lock, which costs more than it saves.
        options.setdefault("jobs", 1)
    with _ask.turn() if has_classes else _contextlib.nullcontext():
        names = _named_all(policies)
        is_spooled = arrays and any("@" in name for name in names)
        if len(names) == 1:
            names = names[0]
        with _spooled(arrays, words) if is_spooled else _contextlib.nullcontext(words) as files:
            return _asks.replay(files, policy=names, memory=memory, read=read, **options)


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
    if page is not None and memcg is not None:
        raise TypeError("explain: memcg is of evictions, and a page was given")
    about = {"page": page} if page is not None else {"evictions": {"count": evictions, "memcg": memcg}}
    return _asks.explain(scenario, about=about, **options)


def validate(folder, *runs, **options):
    """Compares the simulator with recorded runs of a real kernel. A run that fails is not an exception: ``result.json`` lists it."""
    return _asks.validate(folder, runs=_flat(runs), **options)


def twin(*recordings, **options):
    """Simulates a recorded machine and compares it with its counters: ``ask=["memory=-25%"]``."""
    return _asks.twin(_flat(recordings), **options)


def _flat(arguments):
    """Arguments, some of which may be lists of them."""
    return [one for argument in arguments for one in (argument if isinstance(argument, (list, tuple)) else [argument])]
