"""Classes for processes of a sweep: each imports them from the file that they are in, and makes them known by the same names.

    sweep(policies=[Mine]) ──placed──▶ PAGEOUT_CLASSES in the environment ──▶ python -m pageout sweep --own-cells ──bring──▶ Mine, imported
"""

import importlib
import importlib.util
import inspect
import json
import os
import sys

from ._policy import named_all

#: The environment variable with the classes of a sweep, for its processes.
_VARIABLE = "PAGEOUT_CLASSES"
#: The name that the file of the main program has where it is imported, as with `multiprocessing`.
_MAIN = "__pageout_main__"


def placed(policy):
    """Where a class is imported from. Errors: from nowhere, as of a notebook."""
    if not isinstance(policy, type):
        raise TypeError(f"policies: classes made of pageout.Policy, not {policy!r}; libraries and names stand in the plan")
    try:
        file = inspect.getsourcefile(policy)
    except (OSError, TypeError):
        file = None
    if file is None or not os.path.isfile(file) or "<locals>" in policy.__qualname__:
        raise ValueError(
            f"a sweep runs {policy.__qualname__} in processes of their own, which import it: write it into a file, mine.py say, outside of any function, and "
            f"`from mine import {policy.__name__}` (in a notebook, `%%writefile mine.py` in front of its cell)"
        )
    return {"module": policy.__module__, "class": policy.__qualname__, "file": os.path.abspath(file)}


def bring(places):
    """Imports classes and makes them known, here and to the processes that are started from here. Returns their names."""
    os.environ[_VARIABLE] = json.dumps({"path": [os.path.abspath(folder) for folder in sys.path], "classes": places})
    return named_all([_imported(place) for place in places], [place["file"] for place in places])


def bring_told():
    """Does the same with the classes that the parent process has named."""
    if _VARIABLE in os.environ:
        told = json.loads(os.environ[_VARIABLE])
        sys.path += [folder for folder in told["path"] if folder not in sys.path]
        bring(told["classes"])


def is_importing():
    """True if this is the main program's file, imported for a class in it."""
    return _MAIN in sys.modules


def _imported(place):
    module = place["module"]
    if module == "__main__" and not _is_main(place["file"]):
        module = _MAIN
        if module not in sys.modules:
            spec = importlib.util.spec_from_file_location(module, place["file"])
            sys.modules[module] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[module])
    found = sys.modules[module] if module in sys.modules else importlib.import_module(module)
    for name in place["class"].split("."):
        found = getattr(found, name)
    return found


def _is_main(file):
    main = getattr(sys.modules["__main__"], "__file__", None)
    return main is not None and os.path.abspath(main) == file
