"""Very many answers, in a folder: on this machine, or on a cluster of Ray."""

import os

from ._call import call


def sweep(plan, *, into, on="local", **options):
    """Runs the cells of a plan into a folder, and returns all rows of it.

    A cell that fails is a row with its ``error``, and no error here. plan: a file as ``pageout help sweep`` has it. Cells that are in the folder are not run again. on: "local"; "ray", or the address of a cluster of Ray, whose
    machines all see ``into`` and the plan.
    """
    plan, into = os.fspath(plan), os.fspath(into)
    if on == "local":
        call("sweep", plan, into=into, failed_is_error=False, **options)
    else:
        from ._ray import sweep_on

        sweep_on(None if on == "ray" else on, plan, into, options)
    return call("sweep", collect=into)
