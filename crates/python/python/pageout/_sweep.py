"""Very many answers, in a folder: on this machine, or on a cluster of Ray."""

import contextlib
import os

from . import _ask, _asks, _classes
from ._result import Error


def sweep(plan, *, into, on="local", policies=(), **options):
    """Runs the cells of a plan into a folder, and returns all rows of it.

    A cell that fails is a row with its ``error``, and no error here. plan: a file as ``pageout help sweep`` has it. Cells that are in the folder are not run again. on: "local"; "ray", or the address of a cluster of Ray, whose
    machines all see ``into`` and the plan. policies: classes that the plan names (``policy = ["Mine", "s3-fifo"]``). Their cells run in processes that import them from
    their file; it is at the same path on all machines, and its hash is in each row.
    """
    if _classes.is_importing():
        raise RuntimeError("sweep is called while the file that a policy is in is imported: put the call under `if __name__ == \"__main__\":`")
    plan, into = os.fspath(plan), os.fspath(into)
    places = [_classes.placed(policy) for policy in policies]
    with _ask.turn() if places else contextlib.nullcontext():
        if places:
            _classes.bring(places)
        if on == "local":
            run(plan, into, **options)
        else:
            from ._ray import sweep_on

            sweep_on(None if on == "ray" else on, plan, into, options, places)
    return collect(into)


def run(plan, into, **options):
    """Runs the cells that are not in the folder, and returns how many were run and failed."""
    try:
        return _asks.sweep("run", plan=plan, folder=into, **options).json
    except Error as error:
        if error.code != 1 or error.json is None:
            raise
        return error.json


def collect(folder, *, summary=None):
    """All rows that are in the folder of a sweep. summary: a policy; then a row per memory and other policy, with the mean reduction of its miss ratio over all traces."""
    if summary is not None:
        return _asks.sweep("summary", folder=folder, base=summary)
    return _asks.sweep("collect", folder=folder)
