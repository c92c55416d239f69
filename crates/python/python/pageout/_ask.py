"""A question to a study: fields of its ``Ask`` in, a result out."""

import json
import os
import sys
import warnings

from . import _native
from ._result import Error, Result


def _plain(value):
    """A value as JSON has it: paths as texts, numbers of numpy as numbers."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, dict):
        return {key: _plain(of) for key, of in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(of) for of in value]
    return value.item() if hasattr(value, "item") else value


def _word(value):
    """A value as a scenario's text has it."""
    return str(value).lower() if isinstance(value, bool) else str(_plain(value))


def changes(set, seed, kernel):
    """What is changed in a scenario: keys, its seed, the kernel's version."""
    settings = [] if kernel is None else [f"kernel.version={kernel}"]
    settings += [f"{key}={_word(value)}" for key, value in (set or {}).items()]
    return {"settings": settings, "seed": seed}


def varied(over):
    """Keys with several values each, as a dict."""
    if not isinstance(over, dict):
        return over
    return [f"{key}=" + ",".join(map(_word, values)) for key, values in over.items()]


def ask(name, fields, allow_plugins=False, fallback=False, call_limit=None):
    """Asks the study of this name. A field that is ``None`` has its default."""
    fields = {key: _plain(value) for key, value in fields.items() if value is not None}
    own = {"allow_plugins": allow_plugins, "fallback": fallback, "call_limit": call_limit}
    text, table, remarks, failure = _native.ask(name, json.dumps(fields), json.dumps(own), [sys.executable, "-m", "pageout"])
    for remark in remarks:
        warnings.warn(remark.removeprefix("note: ").removeprefix("warning: "), stacklevel=3)
    result = json.loads(text) if text else None
    if failure is not None:
        code, why = failure
        raise Error(why, code, result)
    return Result(text, result, table)
