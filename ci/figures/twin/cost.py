"""The cost of recording: a cached read of 4 KiB without a recording, with one of reads, and with one whose filter drops every event; and bytes per access.

cost.py PAGEOUT FILE PAGES: FILE has PAGES pages, of which a quarter is read, by Zipf's law. Rounds alternate; the minimum of each kind is printed.
"""

import json, os, signal, subprocess, sys, tempfile, time

import load

READS = 100_000
ROUNDS = 15


def one_round(file, sequence):
    """Nanoseconds of CPU that a read takes, without the loop around it."""
    buffers = [bytearray(4096)]
    read = os.preadv
    begin = time.process_time_ns()
    for page in sequence:
        read(file, buffers, page * 4096)
    middle = time.process_time_ns()
    for page in sequence:
        page * 4096
    return (2 * middle - begin - time.process_time_ns()) / len(sequence)


class Recording:
    """A recording of this process while it is open."""

    def __init__(self, pageout, into, more):
        command = [pageout, "record", "--quiet", "--json", "--into", into, "--pid", str(os.getpid()), "--events", "reads", *more]
        self.into = into
        # A shell that runs this in the background may have the signal ignored.
        heeds = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        self.recorder = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=heeds)
        instance = f"/sys/kernel/tracing/instances/pageout-record-{self.recorder.pid}/tracing_on"
        while not (os.path.exists(instance) and open(instance).read().strip() == "1"):
            if self.recorder.poll() is not None:
                sys.exit("the recorder has ended")
            time.sleep(0.01)

    def end(self):
        """Accesses, bytes of their trace, and events that were lost."""
        self.recorder.send_signal(signal.SIGINT)
        told, _ = self.recorder.communicate()
        if self.recorder.returncode != 0:
            sys.exit("the recorder has failed")
        manifest = json.loads(told)
        size = os.path.getsize(f"{self.into}/accesses.pgt")
        return manifest["recording"]["accesses"], size, manifest["source"]["lost_events"]


def main(pageout, path, count):
    file = os.open(path, os.O_RDONLY)
    sequence = load.pages(count // 4, READS, 1)
    for page in range(count // 4):
        os.pread(file, 4096, page * 4096)
    with tempfile.TemporaryDirectory() as folder:
        kinds = {"none": None, "reads": [], "dropped": ["--file", __file__]}
        times = {kind: [] for kind in kinds}
        accesses = size = lost = 0
        for at in range(ROUNDS):
            for kind, more in kinds.items():
                recording = None if more is None else Recording(pageout, f"{folder}/{kind}-{at}", more)
                times[kind].append(one_round(file, sequence))
                told = recording.end() if recording else (0, 0, 0)
                if kind == "reads":
                    accesses, size, lost = accesses + told[0], size + told[1], lost + told[2]
                elif told[0]:
                    sys.exit(f"a filter that names another file let {told[0]} accesses pass")
    least = {kind: min(all_of) for kind, all_of in times.items()}
    print("| a cached read of 4 KiB | least of 15 rounds | all rounds | beside none |")
    print("|---|---|---|---|")
    names = {"none": "not recorded", "reads": "recorded", "dropped": "a filter drops every event"}
    for kind, name in names.items():
        span = f"{min(times[kind]):,.0f} to {max(times[kind]):,.0f} ns"
        print(f"| {name} | {least[kind]:,.0f} ns | {span} | {least[kind] / least['none']:.2f} |")
    print(f"\n{accesses:,} accesses take {size:,} bytes, {size / accesses:.2f} each: {size / accesses * 60:.0f} MB a minute of a million a second. {lost:,} events lost.")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
