"""Policies that tests and timings share: FIFO and SIEVE as anyone would write them, CLOCK over arrays, and policies that do wrong."""

import itertools
import time
from collections import OrderedDict

import numpy as np

import pageout as po


class Fifo(po.Policy):
    """Pages in order of arrival, the oldest first."""

    name = "py-fifo"

    def __init__(self, seed):
        self.queue = OrderedDict()

    def added(self, slot, page, cause, write, at_ns):
        self.queue[slot] = None

    def evict(self):
        return self.queue.popitem(last=False)[0]

    def ended(self, slot, page, end):
        if end == "spared":
            self.queue[slot] = None
        else:
            del self.queue[slot]


class Twin(Fifo):
    """Another policy, that says it is called the same."""

    name = "py-fifo"


class Nominating(po.Policy):
    """The same by nominations."""

    def __init__(self, seed):
        self.queue = OrderedDict()

    def added(self, slot, page, cause, write, at_ns):
        self.queue[slot] = None

    def nominate(self, want):
        return [slot for slot, _ in zip(self.queue, range(want))]

    def ended(self, slot, page, end):
        del self.queue[slot]
        if end == "spared":
            self.queue[slot] = None


class Sieve(po.Policy):
    """A queue in order of arrival, and a hand that passes by what was used: a linked list in lists, slot by slot."""

    name = "py-sieve"

    def __init__(self, seed):
        self.older, self.younger, self.seen = [], [], bytearray()
        self.youngest = self.oldest = self.hand = -1

    def resized(self, capacity):
        more = capacity - len(self.seen)
        if more > 0:
            self.older += [-1] * more
            self.younger += [-1] * more
            self.seen += bytes(more)

    def added(self, slot, page, cause, write, at_ns):
        self.seen[slot] = 0
        self.older[slot], self.younger[slot] = self.youngest, -1
        if self.youngest >= 0:
            self.younger[self.youngest] = slot
        else:
            self.oldest = slot
        self.youngest = slot

    def used(self, slots):
        seen = self.seen
        for slot in slots:
            seen[slot] = 1

    def evict(self):
        seen, younger = self.seen, self.younger
        hand = self.hand if self.hand >= 0 else self.oldest
        while seen[hand]:
            seen[hand] = 0
            hand = younger[hand] if younger[hand] >= 0 else self.oldest
        self.hand = hand
        self.remove(hand)
        return hand

    def ended(self, slot, page, end):
        if end == "gone":
            self.remove(slot)
        else:
            self.added(slot, page, None, False, 0)
            self.seen[slot] = 1  # the hand passes it by

    def remove(self, slot):
        older, younger = self.older[slot], self.younger[slot]
        if self.hand == slot:
            self.hand = younger
        if older >= 0:
            self.younger[older] = younger
        else:
            self.oldest = younger
        if younger >= 0:
            self.older[younger] = older
        else:
            self.youngest = older


class HookedSieve:
    """The same for the Python hooks of libCacheSim, which know objects by their ids."""

    def __init__(self, ids):
        self.older, self.younger, self.seen = [-1] * ids, [-1] * ids, bytearray(ids)
        self.youngest = self.oldest = self.hand = -1

    def hit(self, request):
        self.seen[request.obj_id] = 1

    def miss(self, request):
        id = request.obj_id
        self.seen[id] = 0
        self.older[id], self.younger[id] = self.youngest, -1
        if self.youngest >= 0:
            self.younger[self.youngest] = id
        else:
            self.oldest = id
        self.youngest = id

    def evict(self, request):
        seen, younger = self.seen, self.younger
        hand = self.hand if self.hand >= 0 else self.oldest
        while seen[hand]:
            seen[hand] = 0
            hand = younger[hand] if younger[hand] >= 0 else self.oldest
        # It is told of no removal after an eviction: what it names has left.
        self.hand = younger[hand]
        self.remove(hand)
        return hand

    def remove(self, id):
        older, younger = self.older[id], self.younger[id]
        if self.hand == id:
            self.hand = younger
        if older >= 0:
            self.younger[older] = younger
        else:
            self.oldest = younger
        if younger >= 0:
            self.older[younger] = older
        else:
            self.youngest = older


class BulkKeeper(po.BulkPolicy):
    """Names all slots, and never resets the bits of used ones."""

    at_once = 64

    def resized(self, capacity):
        self.capacity = capacity

    def nominate(self, want):
        return range(min(want, self.capacity))


class BulkClock(po.BulkPolicy):
    """CLOCK over the slots: from the hand on, whoever was not used; whoever was is forgiven once."""

    name = "py-clock"
    at_once = 1024

    def __init__(self, seed):
        self.hand = 0
        self.capacity = 0

    def resized(self, capacity):
        self.capacity = max(self.capacity, capacity)

    def nominate(self, want):
        chosen = []
        left = want
        for _ in range(2 * (self.capacity // 4096 + 2)):
            end = min(self.hand + max(4096, 2 * left), self.capacity)
            part = self.bits[self.hand : end]
            free = np.flatnonzero(part == 0)[:left]
            passed = int(free[-1]) + 1 if len(free) == left else len(part)
            part[:passed] = 0
            chosen.append(free + self.hand)
            left -= len(free)
            self.hand = self.hand + passed if self.hand + passed < self.capacity else 0
            if left == 0:
                break
        return np.concatenate(chosen)


class Liar(Nominating):
    """FIFO that answers wrong from the tenth question on."""

    answer = staticmethod(lambda queue: [])

    def __init__(self, seed):
        super().__init__(seed)
        self.asked = 0

    def nominate(self, want):
        self.asked += 1
        return super().nominate(want) if self.asked < 10 else self.answer(self.queue)


class Silent(Liar):
    pass


class Absent(Liar):
    answer = staticmethod(lambda queue: [4_000_000])


class Raises(Liar):
    @staticmethod
    def answer(queue):
        raise ZeroDivisionError("no idea")


class Slow(Liar):
    @staticmethod
    def answer(queue):
        time.sleep(0.001)
        return next(iter(queue))


class Twice(Liar):
    def nominate(self, want):
        self.asked += 1
        return Nominating.nominate(self, want) if self.asked < 10 else [next(iter(self.queue))] * 2


class Exits(Liar):
    @staticmethod
    def answer(queue):
        raise SystemExit(0)


class Recursive(Liar):
    @staticmethod
    def answer(queue):
        return Recursive.answer(queue)


class Words(Liar):
    answer = staticmethod(lambda queue: "the oldest")


class Countless(Liar):
    """It names slots without an end."""

    answer = staticmethod(lambda queue: itertools.count(1_000_000))


class Endless(Liar):
    @staticmethod
    def answer(queue):
        while True:
            pass


class Unmade(Liar):
    def __init__(self, seed):
        raise ZeroDivisionError("not today")
