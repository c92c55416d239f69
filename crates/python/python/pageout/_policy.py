"""Policies in Python."""

from . import _ask, _asks, _native


def _nothing(method):
    method._does_nothing = True
    return method


class Policy:
    """A policy: which page of a memory is to go. A class of your own has ``added`` and ``evict``, and what else it wants to hear of.

    Pages are in *slots*: numbers from 0, below the capacity, used again once their page has left. An object is made for each memory, with a seed, which is all the
    chance that it has. All uses are told in order before any other call.
    """

    #: The name in tables and results; that of the class if it has none of its own. One that it inherits is another policy's.
    name = None

    def __init__(self, seed):
        pass

    @_nothing
    def resized(self, capacity):
        """There is room for so many pages from now on; the first call."""

    def added(self, slot, page, cause, write, at_ns):
        """A page has come into memory. cause: "demand", "readahead", or, where it had been evicted before, how many evictions ago."""
        raise NotImplementedError("a policy has to say what it does with a page that has come: added(self, slot, page, cause, write, at_ns)")

    @_nothing
    def used(self, slots):
        """Pages in memory were used, in this order: a list. Whoever does not have this is not told, and hits cost it nothing."""

    @_nothing
    def evict(self):
        """Room for a page is needed: takes whom to evict out of what it keeps, and returns its slot. Of that page ``ended`` tells only that it is "spared", if it is."""

    @_nothing
    def ended(self, slot, page, end):
        """A page that was not evicted is "gone", as its file was truncated, say; or one that was, stays: "spared". Then it is in memory as before."""

    def nominate(self, want):
        """In place of ``evict``: whom to evict, the first one first. One slot or several, at most ``want``, in memory, none twice. ``ended`` tells of each what
        became of it, "evicted" as well; until then it is in memory."""
        raise NotImplementedError("a policy has to say whom to evict: evict(self)")

    @_nothing
    def cold(self, slot):
        """A hint: the page may go next."""

    @_nothing
    def figures(self):
        """Figures of its own, by name: columns of the result."""

    @_nothing
    def why(self, slot):
        """Why a page stands where it does, in words, or None."""

    @_nothing
    def check(self):
        """Raises what does not fit together."""


class BulkPolicy(Policy):
    """A policy over whole arrays: asked for many victims at once, and told of uses by an array.

    ``self.bits`` has a byte a slot, 1 where the page was used since it was set to 0: an array of numpy over memory that is written while Python is not running.
    It is a new array after each ``resized``. ``nominate(want)`` returns up to ``want`` slots, as an array best; whoever of them is used or gone before its turn is passed
    over. So a policy like CLOCK costs an access little more than the same built in, and differs from it a little: a batch is chosen before its uses are known.
    """

    #: How many victims ``nominate`` is asked for at once.
    at_once = 256

    @_nothing
    def added(self, slot, page, cause, write, at_ns):
        pass


def named(policy, file=None):
    """The name that a policy goes by in commands; a class is made known first. file: where its code is, for results that have its hash."""
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
    """The names of several that stand beside each other, each of which has to have its own."""
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
