"""A sweep on a cluster of Ray: its cells in shards, each a task that writes parts of its own into the folder that all machines see."""

import sys

from . import __version__, _asks, _classes
from ._sweep import run

#: Cells that a task has at least, and tasks a CPU: so many that none waits long for the last one, and so few that starting them costs little.
CELLS_A_TASK = 8
TASKS_A_CPU = 8


def shard(version, plan, into, number, of, options, path=(), places=()):
    """One task: the cells of a shard that are not in the folder yet. One that was killed is tried again, and goes on."""
    if version != __version__:
        raise RuntimeError(f"this worker has pageout {__version__}, and the sweep was started by {version}: results of the two can't be mixed")
    if places:
        sys.path += [folder for folder in path if folder not in sys.path]
        _classes.bring(places)
    done = run(plan, into, shard=(number, of), jobs=1, **options)
    return done["cells_run"], done["cells_failed"]


def sweep_on(address, plan, into, options, places=()):
    """Runs what is left of a plan; a cluster that is connected already is used."""
    import os

    import ray

    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False)
    plan, into = os.path.abspath(plan), os.path.abspath(into)
    options = {name: value for name, value in options.items() if name != "jobs"}
    left = _asks.sweep("count", plan=plan, folder=into, **options).json["cells_left"]
    if left == 0:
        return
    cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))
    tasks = max(1, min(cpus * TASKS_A_CPU, -(-left // CELLS_A_TASK)))
    remote = ray.remote(num_cpus=1, max_retries=3)(shard)
    ray.get([remote.remote(__version__, plan, into, number, tasks, options, sys.path, places) for number in range(tasks)])
