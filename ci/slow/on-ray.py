"""A sweep on Ray, on this machine: two workers of one CPU each. Fails unless it takes at most 1.25 times as long as two threads, and all cells come out when one
of the workers is killed. Usage, with the wheel installed: on-ray.py FOLDER"""

import os
import pathlib
import statistics
import sys
import threading
import time

import numpy as np
import ray
from ray.cluster_utils import Cluster

import pageout as po

ROUNDS, CELLS = int(os.environ.get("ROUNDS", 3)), 80

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
random = np.random.default_rng(7)
(random.zipf(1.1, 1_000_000) % 100_000).astype(np.uint32).tofile(folder / "zipf.u32")
plan = folder / "plan.toml"
plan.write_text(f'traces = ["zipf.u32"]\npolicy = ["classic@6.12"]\nmemory = ["5%..40%/{CELLS}"]\nread_ahead_kb = 0\n')


def sweep(name, **options):
    begun = time.monotonic()
    rows = po.sweep(plan, into=folder / name, **options)
    took = time.monotonic() - begun
    assert len(rows) == CELLS and all(rows["complete"]), f"{name}: {len(rows)} rows"
    return took, rows


cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
ray.init(address=cluster.address, log_to_driver=False)
po.sweep(plan, into=folder / "warm", on="ray")  # its workers are started

threads, on_ray = [], []
for at in range(ROUNDS):
    took, expected = sweep(f"threads-{at}", jobs=2)
    threads.append(took)
    took, rows = sweep(f"ray-{at}", on="ray")
    on_ray.append(took)
    assert rows.list("misses") == expected.list("misses")
beside = statistics.median(on_ray) / statistics.median(threads)
spread = lambda times: f"{statistics.median(times):.1f} s ({min(times):.1f} to {max(times):.1f})"
print(f"{CELLS} cells of {statistics.median(threads) * 2 / CELLS:.2f} s: two threads {spread(threads)}, two workers of Ray {spread(on_ray)}: {beside:.2f} times")
assert beside <= 1.25, beside

killed = []


def kill():
    while not any((folder / "killed").glob("*")):
        time.sleep(0.05)
    time.sleep(statistics.median(on_ray) / 4)
    cluster.remove_node(nodes[0], allow_graceful=False)
    killed.append(time.monotonic())


killer = threading.Thread(target=kill)
killer.start()
took, rows = sweep("killed", on="ray")
ended = time.monotonic()
killer.join()
assert killed[0] < ended, "it was killed too late"
assert rows.list("misses") == expected.list("misses")
again, _ = sweep("killed", on="ray")
print(f"one of two workers killed: all {CELLS} cells in {took:.1f} s; asked again {again:.2f} s")
ray.shutdown()
cluster.shutdown()
