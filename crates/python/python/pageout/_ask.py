"""A question to a study: fields of its ``Ask`` in, a result out."""

import atexit
import contextlib
import json
import math
import os
import sys
import threading
import warnings

from . import _native
from ._result import Error, Result

#: Names that classes have been brought by.
brought: set[str] = set()

#: Calls that may have policies in Python take turns: a name means one class at a time, and what an object raises is its call's.
_turn = threading.RLock()

#: Keywords of each function that concern own policies, with what each has to be.
_OWN = {
    "allow_plugins": (bool, "True or False"),
    "fallback": (bool, "True or False"),
    "call_limit": ((str, type(None)), 'a text with its unit, such as "10s"'),
}


@contextlib.contextmanager
def turn():
    """The turn of a call that may have policies in Python. A call by such a policy is part of the call that the policy is in."""
    if _native.is_in_policy():
        yield
        return
    with _turn:
        yield


# A policy that sleeps or waits may still be in a call that has given up.
atexit.register(_native.wait_for_left, 5.0)


def _wrong(field, value, expected):
    return TypeError(f"{field}: found {value!r:.100}, expected {expected}")


def _finite(field, value):
    """The number, as neither JSON nor TOML has others."""
    if isinstance(value, float) and not math.isfinite(value):
        raise Error(f"{field}: found {value}, expected a finite number", 2)
    return value


def _text(field, value):
    """The text, if files and results can hold it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Error(f"{field}: found {value!r:.100}, expected a text in UTF-8", 2) from None
    return value


def _value(value):
    """A path as text; an array of numpy, or a number of it, as Python's own."""
    if isinstance(value, (os.PathLike, bytes)):
        return os.fsdecode(value)
    return value.tolist() if hasattr(value, "tolist") else value


def _plain(field, value):
    """Converts a value to JSON types."""
    value = _value(value)
    if isinstance(value, dict):
        return {_key(field, key): _plain(field, of) for key, of in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(field, of) for of in value]
    if isinstance(value, str):
        return _text(field, value)
    if value is not None and not isinstance(value, (bool, int, float)):
        raise _wrong(field, value, "a text, a number, a path, or a list of such")
    return _finite(field, value)


def _key(field, key):
    if not isinstance(key, str):
        raise _wrong(field, key, "a key that is a text")
    return key


def _word(field, value, is_version=False):
    """A value as a scenario's text has it."""
    value = _value(value)
    if is_version and not isinstance(value, str):
        raise _wrong(field, value, 'a version in quotes, such as "6.10": as a number it is 6.1')
    if isinstance(value, str):
        return _text(field, value)
    return _toml(field, value)


def _toml(field, value):
    value = _value(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(_finite(field, value))
    if isinstance(value, str):
        return json.dumps(_text(field, value), ensure_ascii=False)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(field, of) for of in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(field, key)} = {_toml(field, of)}" for key, of in value.items()) + "}"
    raise _wrong(field, value, "a text, a number, True, False, or a list or dict of such")


def _items(field, table):
    """Keys of a scenario with their values, each with whether it is a version of the kernel."""
    if not isinstance(table, dict):
        raise _wrong(field, table, 'a dict, such as {"memcg./db.memory.max": "96MiB"}')
    for key, value in table.items():
        if "=" in _key(field, key):
            raise Error(f"{field}: found `=` in the key {key!r}, expected a key", 2)
        yield key, value, key == "kernel.version"


def changes(set, seed, kernel):
    """What is changed in a scenario: keys, its seed, the kernel's version."""
    settings = [] if kernel is None else [f"kernel.version={_word('kernel', kernel, True)}"]
    settings += [f"{key}={_word(key, value, is_version)}" for key, value, is_version in _items("set", {} if set is None else set)]
    return {"settings": settings, "seed": seed}


def varied(over):
    """Keys with several values each, as a dict."""
    if not isinstance(over, dict):
        return over

    def variation(key, values, is_version):
        values = _value(values)
        if not isinstance(values, (list, tuple)):
            raise _wrong(key, values, "a list of values")
        return f"{key}=" + ",".join(_one_word(_word(key, value, is_version)) for value in values)

    return [variation(*item) for item in _items("vary", over)]


def _one_word(word):
    """The word, in quotes if a comma in it would end it. TOML's tables, lists and quoted texts stay."""
    return json.dumps(word, ensure_ascii=False) if "," in word and word[:1] not in tuple("{['\"") else word


def ask(name, fields, /, **own):
    """Asks the study of this name. A field that is ``None`` has its default."""
    for keyword, value in own.items():
        if keyword not in _OWN:
            raise TypeError(f"{name}() got an unexpected keyword argument {keyword!r}")
        kind, expected = _OWN[keyword]
        if not isinstance(value, kind):
            raise _wrong(keyword, value, expected)
    fields = {key: _plain(key, value) for key, value in fields.items() if value is not None}
    question = json.dumps(fields, ensure_ascii=False)
    # Scenarios and plans name policies as well.
    is_named = "scenario" in fields or "plan" in fields or any(name in question for name in brought)
    has_own = own.get("allow_plugins", False) or bool(brought) and is_named
    with turn() if has_own else contextlib.nullcontext():
        text, table, remarks, failure = _native.ask(name, question, json.dumps(own), [sys.executable, "-m", "pageout"], has_own)
    for remark in remarks:
        warnings.warn(remark.removeprefix("note: ").removeprefix("warning: "), stacklevel=3)
    result = json.loads(text) if text else None
    if failure is not None:
        code, why = failure
        raise Error(why, code, result)
    return Result(text, result, table)
