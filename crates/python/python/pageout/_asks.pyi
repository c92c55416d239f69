from collections.abc import Mapping, Sequence
from os import PathLike

from ._result import Result

_Text = str | PathLike[str]
_Many = _Text | Sequence[object] | Mapping[str, Sequence[object]]

def run(
    scenario: _Text,
    *,
    variant: object | None = None,
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    kernel: str | None = None,
    allow_plugins: bool = False,
    fallback: bool = False,
    call_limit: str | None = None,
) -> Result: ...

def compare(
    scenario: _Text,
    *,
    vary: _Many = (),
    within: object | None = None,
    repeat: int = 1,
    jobs: int = 0,
    all: bool = False,
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    kernel: str | None = None,
    allow_plugins: bool = False,
    fallback: bool = False,
    call_limit: str | None = None,
) -> Result: ...

def explain(
    scenario: _Text,
    *,
    about: Mapping[str, object] | None = None,
    steps: int = 12,
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    kernel: str | None = None,
    allow_plugins: bool = False,
    fallback: bool = False,
    call_limit: str | None = None,
) -> Result: ...

def crossover(
    scenario: _Text,
    *,
    over: _Many = (),
    repeat: int = 5,
    jobs: int = 0,
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    kernel: str | None = None,
    allow_plugins: bool = False,
    fallback: bool = False,
    call_limit: str | None = None,
) -> Result: ...

def advise_tier(
    scenario: _Text,
    *,
    memory: object | None = None,
    device: _Many = ("cxl-1.1", "cxl-2.0-switch",),
    ratio: _Many = ("2:1", "1:1", "1:2", "1:4",),
    loss: float = 5.0,
    price: object | None = None,
    warm_up: _Text = "20%",
    check_scale: bool = False,
    every_source: bool = False,
    repeat: int = 1,
    jobs: int = 0,
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    kernel: str | None = None,
    allow_plugins: bool = False,
    fallback: bool = False,
    call_limit: str | None = None,
) -> Result: ...

def ablate(
    scenario: _Text,
    *,
    variant: object | None = None,
    over: _Many = (),
    switch: _Many = (),
    repeat: int = 5,
    jobs: int = 0,
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    kernel: str | None = None,
    allow_plugins: bool = False,
    fallback: bool = False,
    call_limit: str | None = None,
) -> Result: ...

def bisect(
    scenario: _Text,
    *,
    variant: object | None = None,
    from_: _Text = "",
    to: _Text = "",
    lists: object | None = None,
    judge_by: object | None = None,
    repeat: int = 5,
    jobs: int = 0,
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    kernel: str | None = None,
    allow_plugins: bool = False,
    fallback: bool = False,
    call_limit: str | None = None,
) -> Result: ...

def replay(
    traces: _Many,
    *,
    memory: _Many = ("30%",),
    policy: _Many = ("classic@6.12",),
    channel: _Text = "file",
    writes: bool = False,
    by: object | None = None,
    timed: object | None = None,
    untimed: bool = False,
    warm_up: object | None = None,
    sample: object | None = None,
    exact: bool = False,
    live: _Many = (),
    make: bool = False,
    region: bool = False,
    device: _Text = "nvme",
    read_ahead_kb: object | None = None,
    swap: object | None = None,
    think_time: _Text = "0s",
    read: Mapping[str, object] | None = None,
    seed: int = 1,
    trace_memory: _Text = "1GiB",
    jobs: int = 0,
    print_scenario: bool = False,
    allow_plugins: bool = False,
    fallback: bool = False,
    call_limit: str | None = None,
) -> Result: ...

def sweep(
    task: _Text,
    *,
    plan: _Text = "",
    folder: object | None = None,
    shard: _Many = (0, 1,),
    part_every: _Text = "60s",
    jobs: int = 0,
    policy_time: _Text = "600s",
    policy_memory: _Text = "4GiB",
    base: _Text = "fifo",
    allow_plugins: bool = False,
    fallback: bool = False,
    call_limit: str | None = None,
) -> Result: ...

def check_policy(
    policy: _Text,
    *,
    allow_plugins: bool = False,
    fallback: bool = False,
    call_limit: str | None = None,
) -> Result: ...

def twin(
    recordings: _Many,
    *,
    ask: _Many = (),
    against: _Many = (),
    allow_loss: bool = False,
    curve: bool = False,
    jobs: int = 0,
    allow_plugins: bool = False,
    fallback: bool = False,
    call_limit: str | None = None,
) -> Result: ...

def validate(
    dir: _Text,
    *,
    runs: _Many = (),
    expect_short: _Many = (),
    tolerances: object | None = None,
    without: _Many = (),
    simulations: object | None = None,
    first_difference: bool = False,
    jobs: int = 0,
    allow_plugins: bool = False,
    fallback: bool = False,
    call_limit: str | None = None,
) -> Result: ...
