"""Policies in Python."""

from . import _ask, _asks, _native


def _nothing(method):
    method._does_nothing = True
    return method


class Policy:
    """A policy: chooses the page that a memory evicts. A custom class has ``added`` and ``evict``, and the other methods that it needs.

    Pages are in *slots*: numbers from 0, below the capacity, used again after their page has left. One object is made per memory, with a seed, its only source of
    randomness. All uses are reported in order before any other call.
    """

    #: The name in tables and results; that of the class if it has none of its own. One that it inherits is another policy's.
    name = None

    def __init__(self, seed):
        pass

    @_nothing
    def resized(self, capacity):
        """The memory now holds ``capacity`` pages. This is the first call."""

    def added(self, slot, page, cause, write, at_ns):
        """A page has come into memory. cause: "demand", "readahead", or, if it was evicted before, the number of evictions since then."""
        raise NotImplementedError("a policy needs the method added(self, slot, page, cause, write, at_ns)")

    @_nothing
    def used(self, slots):
        """Pages in memory were used, in the order of this list. Without this method, hits cost nothing."""

    @_nothing
    def evict(self):
        """A page must leave: removes the victim from its own records and returns its slot. For that page ``ended`` is called only if it is "spared"."""

    @_nothing
    def ended(self, slot, page, end):
        """end is "gone" if the page left without eviction, for example because its file was truncated; "spared" if an evicted page stays in memory."""

    def nominate(self, want):
        """Replaces ``evict``: returns the victims in order, one slot or several, at most ``want``, each in memory and none twice. ``ended`` is called for each,
        with "evicted" too; until then it is in memory."""
        raise NotImplementedError("a policy needs the method evict(self), or nominate(self, want)")

    @_nothing
    def cold(self, slot):
        """A hint: the page may go next."""

    @_nothing
    def figures(self):
        """Custom figures by name: columns of the result."""

    @_nothing
    def why(self, slot):
        """Explains the position of a page in words, or returns None."""

    @_nothing
    def check(self):
        """Raises an exception if its records contradict each other."""


class BulkPolicy(Policy):
    """A policy over whole arrays: chooses many victims per call, and reads uses from an array.

    ``self.bits`` has one byte per slot: 1 if the page was used since the byte was set to 0. It is a numpy array over memory that is written while Python is not
    running, and a new array after each ``resized``. ``nominate(want)`` returns up to ``want`` slots, preferably as an array. Slots that are used or gone before
    their turn are skipped. So a policy like CLOCK costs little more per access than the built-in one. Its results differ a little, because a batch is chosen
    before its uses are known.

    A policy that passes over used pages sets their bytes to 0, as in ``self.bits[slots] = 0``. If all slots of three answers in a row are used, an error says so.
    """

    #: The number of victims per call of ``nominate``.
    at_once = 256

    @_nothing
    def added(self, slot, page, cause, write, at_ns):
        pass


def named(policy, file=None):
    """Returns the name of a policy in commands, and registers a class first. file: its code, for results with its hash."""
    if isinstance(policy, str):
        return policy
    if not (isinstance(policy, type) and issubclass(policy, Policy)):
        raise TypeError(f"a policy is a name or a class made of pageout.Policy, not {policy!r}")
    name = _name(policy)
    at_once = policy.at_once if issubclass(policy, BulkPolicy) else 0
    if issubclass(policy, BulkPolicy) and not (isinstance(at_once, int) and 0 < at_once < 2**32):
        raise ValueError(f"{policy.__qualname__}.at_once is {at_once!r}, and has to be a whole number from 1 to {2**32 - 1}")
    _native.bring(name, policy, at_once, file)
    _ask.brought.add(name)
    return name


def named_all(policies, files=None):
    """Returns the names of several policies of one call, which must differ."""
    owners = {}
    for one in policies:
        owner = owners.setdefault(_name(one), one) if isinstance(one, type) and issubclass(one, Policy) else one
        if owner is not one:
            raise ValueError(
                f"{owner.__qualname__} and {one.__qualname__} are both called `{_name(one)}`, and their rows could not be told apart: give one of them a `name` of its own"
            )
    return [named(one, file) for one, file in zip(policies, files or [None] * len(policies))]


def _name(policy):
    own = vars(policy).get("name")
    if not isinstance(own, (str, type(None))):
        raise TypeError(f"{policy.__qualname__}.name is {own!r}, and has to be a string")
    return own or policy.__name__


def check_policy(policy, **options):
    """Checks that a class keeps the contract, on random traces; raises with call and slot what is wrong. ``call_limit="1s"``: how long a call may take."""
    with _ask.turn():
        _asks.check_policy(named(policy), **options)
