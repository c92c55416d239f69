"""Promises of the Python package. `ci/slow/python.sh` runs them with the wheel installed; the program's own answers are asked for by `python -m pageout`."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import unittest
import warnings

import numpy as np

import pageout as po
from policies import Absent, BulkClock, BulkKeeper, Countless, Endless, Exits, Fifo, Nominating, Raises, Recursive, Sieve, Silent, Slow, Twice, Twin, Unmade, Words

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")

SCENARIO = """
[machine]
memory = "256MiB"
[[memcg]]
path = "/a"
memory.max = "8MiB"
[[device]]
name = "disk"
preset = "nvme"
[[task]]
name = "a"
memcg = "/a"
[[task.object]]
channel = "file"
size = "32MiB"
workload = { pattern = "zipf", alpha = 0.9, ops = 20000 }
"""


#: Memory that is too small, with swap: for advice on how much of it may be slower.
CHURN = """
[machine]
memory = "24MiB"
[[swap]]
size = "64MiB"
[[task]]
name = "reader"
loops = 2
[[task.object]]
channel = "file"
size = "32MiB"
share = 2
workload = { pattern = "zipf", alpha = 0.9, ops = 4000 }
[[task.object]]
channel = "anonymous"
size = "16MiB"
workload = { pattern = "sequential" }
"""


def pages(accesses=60_000, seed=7):
    random = np.random.default_rng(seed)
    numbers = (random.zipf(1.2, accesses) % 5_000).astype(np.uint32)
    return np.unique(numbers, return_inverse=True)[1].astype(np.uint32)


def program(*words, cwd):
    done = subprocess.run([sys.executable, "-m", "pageout", *words], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = lambda name: os.path.join(self.folder.name, name)
        with open(self.path("s.toml"), "w") as file:
            file.write(SCENARIO)
        warnings.simplefilter("ignore")


class Results(Case):
    def test_a_result_is_what_the_program_prints_as_json(self):
        np.savetxt(self.path("a.txt"), pages(), fmt="%d")
        cases = [
            (lambda: po.replay(self.path("a.txt"), policy=["lru", "s3-fifo:small=0.2", "opt"], memory="5%,20%"),
             ["replay", "a.txt", "--policy", "lru,s3-fifo:small=0.2,opt", "--memory", "5%,20%"]),
            (lambda: po.replay(self.path("a.txt"), policy="classic@6.12", memory="20%", read_ahead_kb=0),
             ["replay", "a.txt", "--policy", "classic@6.12", "--memory", "20%", "--read-ahead-kb", "0"]),
            (lambda: po.run(self.path("s.toml"), set={"memcg./a.memory.max": "12MiB"}, seed=3),
             ["run", "s.toml", "--set", "memcg./a.memory.max=12MiB", "--seed", "3"]),
            (lambda: po.compare(self.path("s.toml"), vary={"memcg./a.memory.max": ["8MiB", "16MiB"]}),
             ["compare", "s.toml", "--vary", "memcg./a.memory.max=8MiB,16MiB"]),
            (lambda: po.explain(self.path("s.toml"), evictions=2), ["explain", "s.toml", "--evictions", "2"]),
        ]
        strip = lambda text: text.replace(self.folder.name + os.sep, "")
        for ask, words in cases:
            self.assertEqual(json.loads(strip(ask().text)), json.loads(program(*words, "--json", cwd=self.folder.name)))

    def test_studies_of_a_scenario_are_what_the_program_prints_and_have_rows(self):
        scenario, tide = self.path("s.toml"), os.path.join(ROOT, "crates/lab/tests/fixtures/twin/tide")
        with open(self.path("churn.toml"), "w") as file:
            file.write(CHURN)
        cases = [
            (lambda: po.ablate(scenario, switch=["harvest.look_around"], repeat=2), ["ablate", scenario, "--switch", "harvest.look_around", "--repeat", "2"]),
            (lambda: po.bisect(scenario, from_="6.1", to="6.12", repeat=2), ["bisect", scenario, "--from", "6.1", "--to", "6.12", "--repeat", "2"]),
            (lambda: po.crossover(scenario, repeat=2), ["crossover", scenario, "--repeat", "2"]),
            (lambda: po.advise_tier(self.path("churn.toml"), ratio=["1:1"], device=["cxl-1.1"], loss=50),
             ["advise-tier", self.path("churn.toml"), "--ratio", "1:1", "--device", "cxl-1.1", "--loss", "50"]),
            (lambda: po.validate(os.path.join(ROOT, "ground-truth"), "fr-loop.classic.t"), ["validate", os.path.join(ROOT, "ground-truth"), "fr-loop.classic.t"]),
            (lambda: po.twin(tide), ["twin", tide]),
            (lambda: po.explain(scenario, page="a/0:17"), ["explain", scenario, "--page", "a/0:17"]),
        ]
        for ask, words in cases:
            with self.subTest(words[0]):
                result = ask()
                self.assertEqual(result.json, json.loads(program(*words, "--json", cwd=self.folder.name)))
                self.assertTrue(result.columns)
                self.assertGreater(len(result), 0)

    def test_variants_are_shown_side_by_side_a_row_a_figure(self):
        result = po.compare(self.path("s.toml"), vary={"memcg./a.memory.max": ["8MiB", "16MiB"]})
        lines = repr(result).splitlines()
        self.assertEqual(lines[0].split(), ["figure", "8MiB", "16MiB"])
        misses = next(line for line in lines if " misses " in line)
        self.assertRegex(misses, r"\(-\d+\.\d %")
        self.assertIn("<th>8MiB</th>", result._repr_html_())

    def test_columns_are_typed_and_data_frames_take_them(self):
        result = po.replay(po.trace(pages=pages()), policy=["lru", "fifo", "opt"], memory="10%,40%")
        self.assertEqual(result["misses"].dtype, np.int64)
        self.assertEqual(result["miss_ratio"].dtype, np.float64)
        self.assertEqual(result["is_bound"].dtype, np.bool_)
        self.assertEqual(list(result["policy"]), ["lru", "lru", "fifo", "fifo", "opt", "opt"])
        cells = result.json["traces"][0]["cells"]
        self.assertEqual(result["misses"].tolist(), [cell["misses"] for cell in cells])
        self.assertIn("<table>", result._repr_html_())
        try:
            import polars
        except ImportError:
            return
        self.assertEqual(list(result), result.columns)
        self.assertTrue("misses" in result and "hits of tomorrow" not in result)
        frame = polars.DataFrame(result)
        self.assertEqual(frame.columns, result.columns)
        self.assertEqual(frame["misses"].to_list(), [cell["misses"] for cell in cells])
        self.assertEqual(frame["policy"].to_list(), result.list("policy"))
        self.assertEqual(polars.DataFrame(result).equals(frame), True, "it can be taken again")
        del frame, result

    def test_an_error_has_the_programs_text_and_code(self):
        for ask, code, why in [
            (lambda: po.replay(self.path("none.csv")), 2, "none.csv"),
            (lambda: po.replay(po.trace(pages=pages()), policy="lur"), 2, "did you mean `lru`?"),
            (lambda: po.run(self.path("s.toml"), set={"memcg./a.memory.maxx": 1}), 2, "memory.max"),
        ]:
            with self.assertRaises(po.Error) as raised:
                ask()
            self.assertEqual(raised.exception.code, code)
            self.assertIn(why, str(raised.exception))

    def test_a_keyword_that_a_study_has_no_field_for_is_refused(self):
        with self.assertRaises(TypeError):
            po.run(self.path("s.toml"), no_such=1)
        with self.assertRaises(po.Error) as raised:
            po.run(self.path("s.toml"), seed="x")
        self.assertEqual(raised.exception.code, 2)


class Keywords(Case):
    def check_refused(self, cases):
        """Each call with what its error says."""
        for ask, kind, why in cases:
            with self.subTest(why), self.assertRaisesRegex(kind, why):
                ask()

    def test_wrong_value_is_refused_with_its_keyword(self):
        np.savetxt(self.path("a.txt"), pages(2_000), fmt="%d")
        replay = lambda **options: lambda: po.replay(self.path("a.txt"), policy="lru", **options)
        run = lambda **options: lambda: po.run(self.path("s.toml"), **options)
        self.check_refused([
            (replay(memory=5), po.Error, "memory: found integer `5`, expected a text"),
            (replay(memory={"10%"}), TypeError, r"memory: found \{'10%'\}, expected a text"),
            (replay(jobs=True), po.Error, "jobs: found boolean `true`, expected a whole number from 0"),
            (replay(seed=10**30), po.Error, r"seed: found floating point `1e\+30`, expected a whole number"),
            (replay(seed=2**64 - 1), po.Error, "seed: found 18446744073709551615, expected a number from 0 to"),
            (replay(sample=float("nan")), po.Error, "sample: found nan, expected a finite number"),
            (replay(device="\udcff"), po.Error, r"device: found '\\udcff', expected a text in UTF-8"),
            (replay(call_limit=5), TypeError, "call_limit: found 5, expected a text with its unit"),
            (replay(call_limit="5"), po.Error, "call_limit: `5` is not a duration: the unit is missing"),
            (replay(allow_plugins=1), TypeError, "allow_plugins: found 1, expected True or False"),
            (replay(nothing=1), TypeError, r"replay\(\) got an unexpected keyword argument 'nothing'"),
            (replay(name=1), TypeError, r"replay\(\) got an unexpected keyword argument 'name'"),
            (run(seed="x"), po.Error, 'seed: found string "x", expected a whole number from 0'),
            (run(set="a=1"), TypeError, "set: found 'a=1', expected a dict"),
            (run(set={"a=b": 1}), po.Error, "set: found `=` in the key 'a=b'"),
            (run(set={"memcg./a.memory.max": None}), TypeError, "memcg./a.memory.max: found None, expected a text"),
            (run(set={"memcg./a.memory.max": float("inf")}), po.Error, "memcg./a.memory.max: found inf, expected a finite"),
            (lambda: po.run(None), po.Error, "scenario: found no path"),
            (lambda: po.validate(None), po.Error, "dir: found no path"),
            (lambda: po.explain(self.path("s.toml"), page="a/0:1", memcg="/a"), TypeError, "memcg is of evictions"),
            (lambda: po.explain(self.path("s.toml"), evictions="2"), po.Error, 'count: found string "2"'),
            (lambda: po.advise_tier(self.path("s.toml"), ratio=[]), po.Error, "--ratio: the list is empty"),
            (lambda: po.bisect(self.path("s.toml"), from_="6.1", to="6.12", kernel="6.8"), po.Error, "kernel.version is set"),
        ])

    def test_number_in_place_of_a_version_is_refused(self):
        # 6.10 is the number 6.1.
        for options in [{"kernel": 6.10}, {"set": {"kernel.version": 6.10}}]:
            with self.assertRaisesRegex(TypeError, 'found 6.1, expected a version in quotes, such as "6.10"'):
                po.run(self.path("s.toml"), **options)
        with self.assertRaisesRegex(TypeError, "kernel.version: found 6.1"):
            po.compare(self.path("s.toml"), vary={"kernel.version": [6.1, 6.12]})

    def test_values_that_vary_are_a_list_and_keep_their_commas(self):
        vary = lambda values: lambda: po.compare(self.path("s.toml"), vary={"memcg./a.memory.max": values})
        self.check_refused([
            (vary("8MiB"), TypeError, "memcg./a.memory.max: found '8MiB', expected a list of values"),
            (vary(5), TypeError, "memcg./a.memory.max: found 5, expected a list of values"),
            (vary(["8MiB"]), po.Error, "vary: .*fewer than two values"),
            (vary(["8MiB", "8MiB"]), po.Error, "vary: .*duplicate value `8MiB`"),
            (vary(["8MiB,16MiB", "4MiB"]), po.Error, "`8MiB,16MiB` is not a size"),
        ])
        workloads = [{"pattern": "uniform", "ops": 500}, "{ pattern = 'zipf', alpha = 0.9, ops = 500 }"]
        result = po.compare(self.path("s.toml"), vary={"task.a.object.0.workload": workloads})
        self.assertEqual(len(set(result.list("variant"))), 2)

    def test_plain_values_are_taken_as_they_are(self):
        np.savetxt(self.path("a.txt"), pages(2_000), fmt="%d")
        path = self.path("a.txt")
        whole = po.replay(path, policy="lru", memory="10%").json
        self.assertEqual(po.replay(os.fsencode(path), policy="lru", memory=np.array(["10%"])).json, whole)
        self.assertEqual(po.replay(path, policy="lru", memory="10%", timed=False).json, whole)
        timed = po.replay(path, policy="lru", memory="10%", timed=True)
        self.assertEqual(timed.json, po.replay(path, policy="lru", memory="10%", timed=1).json)
        warm = [po.replay(path, policy="lru", memory="10%", warm_up=warm_up).json for warm_up in [500, "500"]]
        self.assertEqual(warm[0], warm[1])
        self.assertNotEqual(warm[0], whole)

    def test_lists_and_single_texts_name_the_same_runs(self):
        truth, run = os.path.join(ROOT, "ground-truth"), "fr-loop.classic.t"
        asked = [po.validate(truth, run), po.validate(truth, [run]), po.validate(truth, run, expect_short=run)]
        self.assertEqual(len({result.text for result in asked}), 1)
        with self.assertRaisesRegex(po.Error, "without: unknown input `x`"):
            po.validate(truth, run, without="x")
        with self.assertRaisesRegex(po.Error, "nowhere: no such folder"):
            po.twin(["nowhere"])

    def test_files_of_a_call_that_are_read_in_two_ways_are_refused(self):
        with open(self.path("a.csv"), "w") as file:
            file.write("time,where\n1,512\n2,1024\n3,4096\n")
        a = po.trace(self.path("a.csv"), read={"csv.offset": "where", "csv.offset_unit": 512})
        b = po.trace(self.path("a.csv"), read={"csv.offset": "where"})
        pages_of = lambda traces, **options: po.replay(traces, policy="lru", memory="100%", **options)["distinct_pages"].tolist()
        self.assertEqual([pages_of(a), pages_of(b), pages_of([a, a])], [[3], [2], [3, 3]])
        array = po.trace(pages=pages(2_000))
        self.check_refused([
            (lambda: pages_of([a, b]), TypeError, "the files of a call are read alike"),
            (lambda: pages_of([a, self.path("a.csv")]), TypeError, "the files of a call are read alike"),
            (lambda: pages_of(array, read={"csv.offset": "where"}), TypeError, "all traces are arrays"),
            (lambda: pages_of(array, by="#1"), TypeError, "by: an array of pages has no columns"),
            (lambda: pages_of(a, read="csv"), TypeError, "read: found 'csv', expected a dict"),
            (lambda: pages_of(a, read={1: 2}), TypeError, "read: found the key 1"),
            (lambda: pages_of(a, read={"csv.page": 1, "csv": {"page": 2}}), TypeError, "`csv.page` is given twice"),
            (lambda: pages_of(a, read={"csv": 1, "csv.page": 2}), TypeError, "`csv.page` is given twice"),
            (lambda: pages_of(pages(2_000)), TypeError, r"expected a path .*pageout.trace\(pages=...\)"),
            (lambda: po.trace(pages=np.ma.array([1, 2], mask=[0, 1])), TypeError, "found a masked array"),
        ])
        self.assertEqual(pages_of([b, b], read={"csv.offset_unit": 512}), [3, 3])


class Calls(Case):
    """Calls of several threads."""

    def at_once(self, **calls):
        """What each call returns, or raises."""
        results = {}

        def keep(name, call):
            try:
                results[name] = call()
            except BaseException as error:
                results[name] = error

        threads = [threading.Thread(target=keep, args=item) for item in calls.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def test_calls_at_once_keep_their_own_errors(self):
        trace = po.trace(pages=pages(20_000))
        misses = lambda policy: lambda: po.replay(trace, policy=policy, memory="5%,20%")["misses"].tolist()
        alone = {"fifo": misses("fifo")(), "lru": misses("lru")()}
        for _ in range(3):
            told = self.at_once(lru=misses("lru"), raises=misses(Raises), mine=misses(Fifo), also_mine=misses(Fifo))
            self.assertIsInstance(told["raises"], ZeroDivisionError)
            self.assertEqual((told["lru"], told["mine"], told["also_mine"]), (alone["lru"], alone["fifo"], alone["fifo"]))

    def test_a_name_is_one_class_for_a_whole_call(self):
        class Last(Fifo):
            name = "py-fifo"

            def evict(self):
                return self.queue.popitem()[0]

        trace = po.trace(pages=pages(20_000))
        misses = lambda policy: lambda: po.replay(trace, policy=policy, memory="5%,10%,20%")["misses"].tolist()
        first, last = misses(Fifo)(), misses(Last)()
        self.assertNotEqual(first, last)
        for _ in range(3):
            self.assertEqual(self.at_once(first=misses(Fifo), last=misses(Last)), {"first": first, "last": last})

    def test_ctrl_c_leaves_calls_of_other_threads_alone(self):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        slow = po.trace(pages=pages(3_000))
        endless = po.trace(pages=(np.arange(40_000_000, dtype=np.uint32) * np.uint32(2_654_435_761)) >> np.uint32(12))
        results = []
        other = threading.Thread(target=lambda: results.append(len(po.replay(slow, policy=Slow, memory="5%,6%"))))
        other.start()
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            po.replay(endless, policy="s3-fifo", memory="1%..100%/50log")
        other.join()
        self.assertEqual(results, [2])

    def test_a_policy_may_ask_for_another_call(self):
        trace = po.trace(pages=pages(2_000))

        class Asks(Fifo):
            def resized(self, capacity):
                self.of_lru = po.replay(trace, policy="lru", memory="10%")["misses"][0]
                self.of_mine = po.replay(trace, policy=Fifo, memory="10%")["misses"][0]

            def figures(self):
                return {"of_lru": self.of_lru, "of_mine": self.of_mine}

        told = po.replay(trace, policy=Asks, memory="10%")
        self.assertEqual(told["policy_figures_of_mine"][0], told["misses"][0])


class Traces(Case):
    def test_an_array_of_dense_numbers_is_not_copied(self):
        array = np.arange(4_000_000, dtype=np.uint32) % 1_000_000
        before = resident()
        tracemalloc.start()
        trace = po.trace(pages=array)
        self.assertLess(tracemalloc.get_traced_memory()[1], array.nbytes // 16)
        tracemalloc.stop()
        self.assertLess(resident() - before, array.nbytes // 4)
        self.assertFalse(trace.is_copied)
        self.assertEqual((len(trace), trace.distinct_pages), (4_000_000, 1_000_000))

    def test_other_numbers_are_numbered_anew_with_equal_misses(self):
        dense = pages()
        misses = lambda array: po.replay(po.trace(pages=array), policy=["sieve", "opt"], memory="20%")["misses"].tolist()
        for other in [dense.astype(np.uint64) << 33, dense.astype(np.int64) * 1_000_003, np.repeat(dense, 2)[::2]]:
            self.assertEqual(misses(other), misses(dense))

    def test_the_machine_takes_an_array_as_well(self):
        np.savetxt(self.path("a.txt"), pages(), fmt="%d")
        ask = lambda trace: po.replay(trace, policy=["classic@6.12", "lru"], memory="20%")["misses"].tolist()
        self.assertEqual(ask(po.trace(pages=pages())), ask(self.path("a.txt")))


class Policies(Case):
    def test_fallbacks_in_the_machine_are_told_with_a_warning(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            result = po.replay(po.trace(pages=pages(20_000)), policy=[Silent, "Silent@machine"], memory="20%", fallback=True)
        # Beside a policy of the machine, which reads ahead, stands the bound.
        rows = zip(result.list("policy"), result.list("policy_figures_fallbacks"))
        self.assertTrue(all(fallbacks > 0 for policy, fallbacks in rows if policy != "opt"))
        self.assertTrue(any("policy Silent: " in str(warning.message) for warning in told))

    def test_a_policy_that_does_not_return_is_interrupted_and_named(self):
        trace = po.trace(pages=pages(20_000))
        for _ in range(2):
            for policy in [Endless, "Endless@machine"]:
                begun = time.monotonic()
                with self.assertRaisesRegex(po.Error, r"policy Endless: call \d+, nominate\(\d+\): has not returned for 500ms"):
                    po.replay(trace, policy=policy, memory="20%", call_limit="500ms")
                self.assertLess(time.monotonic() - begun, 5)
        threads = [thread for thread in os.listdir("/proc/self/task") if open(f"/proc/self/task/{thread}/comm").read() == "pageout\n"]
        self.assertEqual(threads, [], "none is left behind")
        with self.assertRaisesRegex(po.Error, r"nominate\(1\): has not returned for 500ms"):
            po.check_policy(Endless, call_limit="500ms")
        self.assertEqual(len(po.replay(trace, policy=Fifo, memory="20%")), 1)

    def test_every_other_lie_is_an_error_here_and_in_the_machine(self):
        trace = po.trace(pages=pages(20_000))
        for policy, error, why in [
            (Twice, po.Error, "is nominated twice"),
            (Exits, SystemExit, "0"),
            (Recursive, RecursionError, "recursion"),
            (Words, TypeError, "nominate: a slot, or a list or an array of slots, and not 'the oldest'"),
            (Unmade, ZeroDivisionError, "not today"),
            (Countless, po.Error, r"\d+ slots are nominated"),
        ]:
            for named in [policy, f"{policy.__name__}@machine"]:
                with self.subTest(named), self.assertRaisesRegex(error, why):
                    po.replay(trace, policy=named, memory="20%")

    def test_policies_of_python_miss_where_those_built_in_do(self):
        trace = po.trace(pages=pages())
        result = po.replay(trace, policy=["fifo", Fifo, Nominating, "sieve", Sieve], memory="1%,20%,70%")
        fifo, mine, nominating, sieve, my_sieve = np.split(result["misses"], 5)
        self.assertEqual(fifo.tolist(), mine.tolist())
        self.assertEqual(fifo.tolist(), nominating.tolist())
        self.assertEqual(sieve.tolist(), my_sieve.tolist())

    def test_a_class_does_not_go_by_the_name_that_it_inherits(self):
        class Heir(Fifo):
            def evict(self):
                return self.queue.popitem()[0]

        for many in [[Fifo, Heir], [Heir, Fifo]]:
            told = po.replay(po.trace(pages=pages()), policy=many, memory="20%")
            misses = dict(zip(told.list("policy"), told.list("misses")))
            self.assertEqual(set(misses), {"py-fifo", "Heir"})
            self.assertEqual(misses["py-fifo"], po.replay(po.trace(pages=pages()), policy="fifo", memory="20%")["misses"][0])
        with self.assertRaisesRegex(ValueError, r"Fifo and Twin are both called `py-fifo`.*a `name` of its own"):
            po.replay(po.trace(pages=pages()), policy=[Fifo, "fifo", Twin], memory="20%")

    def test_what_a_class_says_of_itself_and_can_not_be_is_told_with_its_class(self):
        odd = type("Odd", (Fifo,), {"name": 5})
        with self.assertRaisesRegex(TypeError, "Odd.name is 5, and has to be a string"):
            po.check_policy(odd)
        for wrong in ["x", 0, 2.5, 2**32]:
            odd = type("Odd", (BulkClock,), {"at_once": wrong})
            with self.assertRaisesRegex(ValueError, f"Odd.at_once is {wrong!r}, and has to be a whole number from 1"):
                po.check_policy(odd)

    def test_name_of_a_policy_that_is_built_in_is_refused(self):
        for name in ["lru", "opt", "arc", "mglru-fg"]:
            taker = type("Taker", (Fifo,), {"name": name})
            with self.assertRaisesRegex(ValueError, f"`{name}` is the name of a policy that is there already"):
                po.replay(po.trace(pages=pages(2_000)), policy=taker, memory="20%")

    def test_python_ends_well_after_a_policy_that_was_late(self):
        for late in ["__init__(self, seed):\n        while True: pass", "evict(self):\n        time.sleep(2)"]:
            with open(self.path("late.py"), "w") as file:
                file.write(f"import time\nimport pageout as po\nfrom policies import Fifo\nclass Late(Fifo):\n    def {late}\n"
                           "import numpy as np\ntrace = po.trace(pages=np.arange(1000, dtype=np.uint32) % 100)\n"
                           "try:\n    po.replay(trace, policy=Late, memory='20%', call_limit='200ms')\nexcept po.Error as error:\n    print(error)\n")
            path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
            done = subprocess.run([sys.executable, self.path("late.py")], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("has not returned for 200ms", done.stdout)

    def test_a_policy_of_python_runs_in_the_machine(self):
        trace = po.trace(pages=pages(20_000))
        result = po.replay(trace, policy=["fifo@machine", Fifo, "py-fifo@machine", Nominating, "Nominating@machine"], memory="20%")
        misses = result["misses"]
        self.assertEqual((misses[0], misses[0]), (misses[2], misses[4]))

    def test_policies_that_keep_the_contract_pass_and_others_are_told_with_call_and_slot(self):
        po.check_policy(Fifo)
        po.check_policy(Nominating)
        po.check_policy(Sieve)
        for liar, why in [(Silent, "nothing is nominated"), (Absent, "slot 4000000 is nominated, but holds no page")]:
            with self.assertRaisesRegex(po.Error, why):
                po.check_policy(liar)
            with self.assertRaisesRegex(po.Error, rf"call \d+, nominate\(1\): {why}"):
                po.replay(po.trace(pages=pages()), policy=liar, memory="20%")
        helped = po.replay(po.trace(pages=pages()), policy=Silent, memory="20%", fallback=True)
        self.assertGreater(helped["policy_figures_fallbacks"][0], 0)

    def test_what_a_policy_raises_comes_through(self):
        with self.assertRaisesRegex(ZeroDivisionError, "no idea"):
            po.replay(po.trace(pages=pages()), policy=Raises, memory="20%")
        with self.assertRaisesRegex(ZeroDivisionError, "no idea"):
            po.check_policy(Raises)

    def test_bits_that_are_never_reset_are_explained(self):
        loop = np.array([at % 8 for at in range(64)] + [9], dtype=np.uint32)
        with self.assertRaisesRegex(ValueError, "slots with `self.bits` 1"):
            po.replay(po.trace(pages=loop), policy=BulkKeeper, memory="8 pages")

    def test_a_policy_over_arrays_is_about_what_clock_is(self):
        result = po.replay(po.trace(pages=pages()), policy=["clock", BulkClock], memory="30%")
        clock, mine = result["miss_ratio"]
        self.assertLess(abs(clock - mine), 0.02)


class Interrupts(Case):
    def test_ctrl_c_ends_a_run_within_a_second(self):
        # Whoever starts this in the background has it ignore the signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        array = (np.arange(40_000_000, dtype=np.uint32) * np.uint32(2_654_435_761)) >> np.uint32(12)
        trace = po.trace(pages=array)
        for policy in ["s3-fifo", Slow]:
            pressed = []

            def press():
                time.sleep(1)
                pressed.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)

            threading.Thread(target=press).start()
            with self.assertRaises(KeyboardInterrupt):
                po.replay(trace, policy=[policy], memory="1%..90%/40", exact=True)
            self.assertLess(time.monotonic() - pressed[0], 1.5)


class Sweeps(Case):
    def test_a_sweep_returns_all_rows_and_does_not_run_them_again(self):
        np.savetxt(self.path("a.txt"), pages(), fmt="%d")
        with open(self.path("plan.toml"), "w") as file:
            file.write('traces = ["a.txt"]\npolicy = ["lru", "fifo", "classic@6.12"]\nmemory = ["10%", "50%"]\n')
        first = po.sweep(self.path("plan.toml"), into=self.path("into"))
        # Two of them are the bound, as one of the policies reads ahead.
        self.assertEqual(len(first), 8)
        self.assertEqual(first.list("policy").count("opt"), 2)
        self.assertEqual(po.sweep(self.path("plan.toml"), into=self.path("into")).json, first.json)


    def test_classes_of_a_plan_run_in_processes_that_import_them_and_what_they_raise_is_a_row(self):
        np.savetxt(self.path("a.txt"), pages(), fmt="%d")
        with open(self.path("plan.toml"), "w") as file:
            file.write('traces = ["a.txt"]\npolicy = ["fifo", "py-fifo", "Raises", "Unmade", "Endless", "py-fifo@machine"]\nmemory = ["10%"]\n')
        told = po.sweep(self.path("plan.toml"), into=self.path("into"), policies=[Fifo, Raises, Unmade, Endless], call_limit="1s")
        row = {policy: at for at, policy in enumerate(told["policy"])}
        error = told.list("error")
        self.assertEqual(len(told), 7, "each policy, and the bound")
        self.assertEqual(told.list("misses")[row["fifo"]], told.list("misses")[row["py-fifo"]])
        self.assertEqual(len(told.list("policy_hash")[row["py-fifo"]]), 32)
        self.assertIsNone(error[row["py-fifo@machine"]])
        self.assertRegex(error[row["Raises"]], r"policy Raises: call \d+, nominate\(1\): ZeroDivisionError: no idea")
        self.assertRegex(error[row["Unmade"]], r"policy Unmade: call 0, make\(\): ZeroDivisionError: not today")
        self.assertRegex(error[row["Endless"]], r"policy Endless: call \d+, nominate\(1\): has not returned for 1s")

    def test_a_class_that_no_process_can_import_is_refused_with_what_to_do(self):
        class Here(Fifo):
            pass

        with self.assertRaisesRegex(ValueError, r"write it into a file.*from mine import Here"):
            po.sweep("plan.toml", into=self.path("into"), policies=[Here])
        with self.assertRaisesRegex(TypeError, "names stand in the plan"):
            po.sweep("plan.toml", into=self.path("into"), policies=["fifo"])

    def test_two_classes_of_one_name_are_refused_before_anything_runs(self):
        with self.assertRaisesRegex(ValueError, r"Fifo and Twin are both called `py-fifo`.*a `name` of its own"):
            po.sweep("plan.toml", into=self.path("into"), policies=[Fifo, Twin])

    def test_a_class_of_the_main_program_is_imported_from_its_file(self):
        np.savetxt(self.path("a.txt"), pages(), fmt="%d")
        with open(self.path("plan.toml"), "w") as file:
            file.write('traces = ["a.txt"]\npolicy = ["fifo", "Mine"]\nmemory = ["10%"]\n')
        program = [
            "import pageout as po, policies", "class Mine(policies.Fifo):", "    pass",
            "if __name__ == '__main__':", "    print(po.sweep('plan.toml', into='into', policies=[Mine]).list('misses'))",
        ]
        guarded, bare = program, [*program[:3], program[4].strip().replace("'into'", "'bare'")]
        for lines in [guarded, bare]:
            with open(self.path("main.py"), "w") as file:
                file.write("\n".join(lines))
            told = subprocess.run([sys.executable, "main.py"], cwd=self.folder.name, capture_output=True, text=True).stdout
            mine, fifo = json.loads(told.replace("None", "null"))
            self.assertEqual(mine, fifo if lines is guarded else None)
        error = po.collect(self.path("bare")).list("error")[0]
        self.assertIn("sweep is called while the file that a policy is in is imported", error)


class Program(Case):
    def test_the_package_brings_the_program(self):
        self.assertTrue(program("--version", cwd=self.folder.name).startswith("pageout "))
        self.assertIn("fifo", program("keys", "policy", cwd=self.folder.name))

    def test_several_traces_are_several_pictures_and_wide_sizes_have_a_logarithmic_axis(self):
        from pageout._result import _picture

        class Column(list):
            def to_list(self):
                return list(self)

        class Frame(dict):
            @property
            def columns(self):
                return list(self)

        sizes = Column([4096, 409600, 4096, 409600])
        frame = Frame(trace=Column("aabb"), policy=Column(["lru"] * 4), memory_bytes=sizes, miss_ratio=Column([0.5, 0.2, 0.7, 0.3]))
        picture = _picture(frame, "memory_bytes", "miss_ratio", "policy", "trace")
        self.assertEqual(picture["facet"]["field"], "trace")
        self.assertEqual(picture["spec"]["encoding"]["x"]["scale"], {"type": "log"})
        self.assertEqual([row["trace"] for row in picture["data"]["values"]], list("aabb"))
        frame["memory_bytes"] = Column([4096, 8192, 4096, 8192])
        frame["miss_ratio_least"] = frame["miss_ratio_most"] = frame["miss_ratio"]
        picture = _picture(frame, "memory_bytes", "miss_ratio", "policy", None)
        self.assertEqual([layer["mark"]["type"] for layer in picture["layer"]], ["area", "line"])
        self.assertEqual(picture["layer"][1]["encoding"]["x"]["scale"], {"type": "linear"})
        self.assertIn("estimated", picture["layer"][1]["encoding"]["y"]["title"])


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main()
