//! The text that a promise is written in: a command a line, and after `=>` what it must answer.
//!
//! The parts of the machine exist before the first command, on whichever line they are: `swap`, `zram`, `zram-limit`, and of `device` what it
//! has and outruns.
//!
//! | command | |
//! |---|---|
//! | `config KEY=VALUE...` | `memory` (pages, of several nodes `4096+4096`), `cpu_nodes` (`0+1`), `boost` (vm.watermark_boost_factor), `folio_batch`, `charge_stock`, `reclaim_batch`, `plug_requests`, `fault_around_bytes`, `cpus`, `swappiness`, `stat=live`, `kmem=on`, `policy=lru` |
//! | `group PATH [FILE=PAGES...]` | a memory group: `group job max=64` |
//! | `file NAME PAGES`, `tmpfs NAME PAGES`, `swap PAGES [sync]` | |
//! | `task NAME in PATH [cpu=N]`, `T exits`, `T execs` | a process of one task |
//! | `T thread NAME`, `T reopens O` | another thread of its process, with the same objects; the file of one opened for itself |
//! | `T open FILE as O`, `T map FILE as O [exec] [random] [noreuse]`, `T anon PAGES as O [random]` | |
//! | `T advises O normal`, `T advises O noreuse` | posix_fadvise of the open file behind it |
//! | `T read O PAGES`, `T write O PAGES` | accesses, one after the other; answers how they were served |
//! | `T writes partial O`, `T fsyncs O`, `T syncs`, `T syncfs O` | write(2) is shorter than a page from now on; answers `synced` or `failed` |
//! | `T acknowledges O` | the task knows that writes of the file have failed |
//! | `T keeps O`, `T loses O` | a flush of the file's device succeeds, or fails: pages that are dirty again, and those that may be lost |
//! | `T truncates O PAGES`, `T deletes O` | pages of a file go, or all of it; answers `truncated` |
//! | `cancelled` | dirty pages that went with their files |
//! | `written REASON` | pages of files whose write was begun for this reason |
//! | `threads` | the kernel's threads are started; they wait. Flushers are not named: they run by themselves |
//! | `run THREAD`, `time out THREAD` | a thread that was woken, or whose nap is over, goes on until it waits: `sleeps` or `naps`; the tasks that it woke go on after it |
//! | `free` | free pages of the machine |
//! | `T mlock O`, `T munlock O`, `T munmap O`, `T cold O PAGES`, `T free O PAGES`, `T dontneed FILE PAGES` | |
//! | `T sets PATH FILE PAGES [OPTIONS]` | writes a limit or `memory.reclaim` (without the `memory.`) |
//! | `T is signalled` | a signal comes for it after the first step of what it does next, if that takes several |
//! | `T moves PATH` | its process joins another group |
//! | `T adj N` | `oom_score_adj` of its process |
//! | `T flushes io` | its process starts no I/O for its memory, as after `prctl(PR_SET_IO_FLUSHER)` |
//! | `oom-group PATH` | sets `memory.oom.group` |
//! | `kills` | who was killed since the last `kills`, with the pages of its score; the machine ends the victims immediately |
//! | `log` | the last lines of the kernel's log about the last of them |
//! | `pin FILE PAGES` | |
//! | `device holds`, `device answers [STEPS]` | transfers wait for `io`, or end immediately, or after tasks have gone on STEPS times |
//! | `device fails` | transfers end immediately, with an error |
//! | `device has MIN to MAX [strictly]` | percent of what may be dirty that are its own |
//! | `device outruns batches`, `device fails within batches` | writes of a full plug end before its batch does, well or badly |
//! | `io [fails]` | the oldest transfer ends; answers which, and how the tasks woken were served |
//! | `flush`, `wait SECONDS` | the statistics worker runs; time passes |
//! | `lists PATH` | pages on lists: anonymous and file memory, inactive + active |
//! | `usage PATH`, `swapped PATH`, `events PATH NAME`, `local PATH NAME` (of `memory.events.local`) | |
//! | `stat PATH NAME`, `cat PATH NAME` | of `memory.stat`, as of the last flush, and as its reader gets it; pages or events |
//! | `swap-events PATH NAME` | of `memory.swap.events` |
//! | `rmdir PATH`, `dying PATH` | removes a group, or says why not; `nr_dying_descendants` of `cgroup.stat` |
//! | `zram LEAST MOST SAME`, `zram-limit PAGES` | bytes that pages of the first swap device compress to, and of a thousand those of one word |
//! | `lengths TASK OBJECT LEAST MOST SAME` | the same of an object's pages, from now on |
//! | `swap PAGES priority=N`, `swaps` | a device of that priority; all devices, as `/proc/swaps` has them |
//! | `zeroes TASK OBJECT SHARE` | of a thousand pages of it, those that hold nothing but zeroes |
//! | `debug zswap NAME` | a figure of `/sys/kernel/debug/zswap` |
//! | `zram-file NAME` | `mm_stat` or `io_stat` of it |
//! | `vmstat NAME...` | |
//! | `ops` | operations since the last `ops`, counted |
//! | `work NAME` | units of work since the last `work` |
//! | `why` | the last failure |
//!
//! PAGES of an object are `3` or, without the last, `0..4`. Accesses are served as a Hit, `m`inor or Major fault, or fail: with `E`IO, `O`ut of
//! memory, or `F` if the device fails to write dirty pages. `W` means that the task waits for the device, `T` that it waits for kswapd. `64M 2H`
//! are 64 majors and then two hits.

use crate::machine::{Came, Device, Rested, Stepped, TestMachine};
use pageout_engine::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// A machine, and what a text has named on it.
struct Run<M> {
    machine: M,
    files: BTreeMap<String, FileId>,
    tasks: BTreeMap<String, TaskId>,
    processes: BTreeMap<TaskId, MmId>,
    objects: BTreeMap<(TaskId, String), ObjectId>,
    /// All work until the last question for any.
    worked: Work,
    /// The last access that failed.
    failure: String,
    /// OOM kills since the last question, and the log of the last of them.
    kills: Vec<OomKill>,
    log: String,
}

/// Runs a text and panics at the first answer that isn't the expected one.
#[track_caller]
pub fn check<M: TestMachine>(text: &str) {
    let mut run: Option<Run<M>> = None;
    // A text uses only a few pages. It sets kernel memory or swap readahead if these shall be among them.
    let mut config = Config { kmem: false, page_cluster: 0, ..Config::default() };
    let hardware: Vec<&str> = text.lines().filter(|line| is_hardware(&words_of(line))).collect();
    for line in text.lines() {
        let line = line.split('#').next().expect("a first part").trim();
        let (command, expected) = match line.split_once("=>") {
            Some((command, expected)) => (command.trim(), Some(expected.trim())),
            None => (line, None),
        };
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            [] => continue,
            ["config", settings @ ..] => configure(&mut config, settings),
            words => {
                let run = run.get_or_insert_with(|| Run::new(M::new(built(config.clone(), &hardware))));
                if is_hardware(words) {
                    continue;
                }
                let answer = run.command(words);
                if let Some(expected) = expected {
                    assert_eq!(answer, expected, "answer to `{command}` of the text\n{text}");
                }
            }
        }
    }
}

fn words_of(line: &str) -> Vec<&str> {
    line.split('#').next().expect("a first part").split_whitespace().collect()
}

/// Returns true if a line says what the machine is made of: that is there before the first command.
fn is_hardware(words: &[&str]) -> bool {
    matches!(
        words,
        ["swap" | "zram" | "zram-limit", ..]
            | ["device", "has", ..]
            | ["device", "outruns", "batches"]
            | ["device", "fails", "within", "batches"]
    )
}

/// This hardware, with one device for files if a line is about it.
fn built(config: Config, hardware: &[&str]) -> EngineBuilder {
    let mut builder = Engine::builder(config).unwrap();
    for line in hardware {
        let line = line.split('#').next().expect("a first part");
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["swap", pages, how @ ..] => {
                let kind = if how == ["sync"] { SwapKind::Synchronous } else { SwapKind::Device };
                let priority = how.first().and_then(|how| how.strip_prefix("priority="));
                let spec = SwapSpec { pages: number(pages), kind };
                builder.swap_on_at(spec, priority.map(|priority| number(priority) as u16)).unwrap();
            }
            ["zram", least, most, same_filled] => {
                let contents = compressibility(least, most, same_filled);
                builder.swap_compressibility(SwapId(0), contents).unwrap();
            }
            ["zram-limit", pages] => builder.zram_limit(SwapId(0), Some(number(pages))).unwrap(),
            ["device", "has", min, "to", max, strict @ ..] => {
                let [min_ratio, max_ratio] = [min, max].map(|percent| number(percent) as u8);
                let limits = BdiLimits { min_ratio, max_ratio, strict_limit: strict == ["strictly"] };
                let bdi = builder.bdi_register("0").unwrap();
                builder.bdi_set_limits(bdi, limits).unwrap();
            }
            ["device", "outruns", ..] => {
                builder.set_full_plug(Box::new(|writes| vec![Ok(()); writes.len()]));
            }
            ["device", "fails", ..] => {
                builder.set_full_plug(Box::new(|writes| vec![Err(IoError::Device); writes.len()]));
            }
            words => panic!("no machine is made of {words:?}"),
        }
    }
    builder
}

fn compressibility(least: &str, most: &str, same_filled: &str) -> Compressibility {
    let [least, most, same_filled] = [least, most, same_filled].map(|text| number(text) as u16);
    Compressibility { zero_filled: 0, same_filled, lengths: Lengths::Even { least, most } }
}

fn configure(config: &mut Config, settings: &[&str]) {
    for setting in settings {
        match setting.split_once('=').expect("KEY=VALUE") {
            ("memory", value) => config.node_pages = value.split('+').map(number).collect(),
            ("cpu_nodes", value) => {
                config.layout.cpu_nodes = value.split('+').map(|node| NodeId(number(node) as u8)).collect();
            }
            ("boost", value) => config.watermark_boost_factor = number(value) as u32,
            ("folio_batch", value) => config.folio_batch = number(value) as usize,
            ("charge_stock", value) => config.charge_stock = number(value),
            ("reclaim_batch", value) => config.reclaim_batch = number(value),
            ("plug_requests", value) => config.plug_requests = number(value) as u32,
            ("fault_around_bytes", value) => config.fault_around_bytes = number(value) as u32,
            ("cpus", value) => config.cpus = number(value) as u16,
            ("swappiness", value) => config.swappiness = number(value) as u8,
            ("oom_kill", value) => config.oom_kill = value == "true",
            ("kmem", value) => config.kmem = value == "on",
            ("stat", "live") => config.stat_flush = StatFlush::Live,
            ("policy", name) => config.policy = Policy::by_name(name).expect("a profile"),
            (name, value) if name.contains('.') => {
                let is_set = match (Parameter::by_name(name), Switch::by_name(name)) {
                    (Some(parameter), _) => parameter.set(config, value),
                    (None, Some(switch)) => switch.set(&mut config.policy, value),
                    (None, None) => panic!("there is no switch {name}"),
                };
                assert!(is_set, "{name} can't be {value}");
            }
            (key, value) => panic!("there is no {key}={value}"),
        }
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is not a number"))
}

fn range(text: &str) -> Range<u64> {
    match text.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None => number(text)..number(text) + 1,
    }
}

impl<M: TestMachine> Run<M> {
    fn new(machine: M) -> Run<M> {
        Run {
            machine,
            files: BTreeMap::new(),
            tasks: BTreeMap::new(),
            processes: BTreeMap::new(),
            objects: BTreeMap::new(),
            worked: Work::default(),
            failure: String::new(),
            kills: Vec::new(),
            log: String::new(),
        }
    }

    /// What only a machine can answer that does one thing after the other.
    fn stepped(&mut self) -> &mut dyn Stepped {
        self.machine.stepped().expect("this text is for a machine that does one thing after the other")
    }

    fn engine<T>(&mut self, call: impl FnOnce(&mut Engine) -> T) -> T {
        self.machine.with(call)
    }

    fn command(&mut self, words: &[&str]) -> String {
        let answer = match words {
            ["group", path, limits @ ..] => self.group(path, limits),
            ["file", name, pages] => self.file(name, pages, FileKind::Regular),
            ["tmpfs", name, pages] => self.file(name, pages, FileKind::Tmpfs),
            ["task", name, "in", path] => self.task(name, path, 0),
            ["task", name, "in", path, cpu] => {
                self.task(name, path, number(cpu.strip_prefix("cpu=").expect("cpu=")))
            }
            ["pin", file, pages] => {
                let file = self.files[*file];
                self.engine(|engine| {
                    range(pages).for_each(|page| assert!(engine.pin(file, page), "page {page} is absent"));
                });
                String::new()
            }
            ["device", mode @ ..] => {
                let device = match mode {
                    ["holds"] => Device::Holds,
                    ["fails"] => Device::Fails,
                    ["answers"] => Device::Answers { after: 0 },
                    ["answers", steps] => Device::Answers { after: number(steps) },
                    mode => panic!("there is no device {mode:?}"),
                };
                self.stepped().set_device(device);
                String::new()
            }
            ["io"] => self.io(Ok(())),
            ["io", "fails"] => self.io(Err(IoError::Device)),
            ["threads"] => self.stepped().start_threads().join(" "),
            ["cancelled"] => self.engine(|engine| engine.figures().file_writes_cancelled()).to_string(),
            ["written", name] => {
                let reason = WritebackReason::ALL.iter().find(|reason| reason.name() == *name);
                let reason = *reason.expect("a reason");
                self.engine(|engine| engine.figures().pages_written_by(reason)).to_string()
            }
            ["run", name] => match self.stepped().run_thread(name) {
                Some(rested) => self.rested(rested),
                None => "was not woken".to_owned(),
            },
            ["time", "out", name] => {
                let rested = self.stepped().end_nap(name);
                self.rested(rested)
            }
            ["free"] => self.engine(|engine| engine.figures().vmstat(Stat::NrFreePages)).to_string(),
            ["flush"] => {
                self.engine(Engine::flush_stats);
                String::new()
            }
            ["wait", seconds] => {
                self.machine.pass(Nanos(number(seconds) * Nanos::SECOND.0));
                String::new()
            }
            ["lists", path] => {
                let memcg = self.memcg(path);
                let [anon, file] =
                    LruType::BOTH.map(|kind| self.engine(|engine| engine.figures().list_sizes(memcg, kind)));
                format!("anon {}+{} file {}+{}", anon.0, anon.1, file.0, file.1)
            }
            ["usage", path] => {
                let memcg = self.memcg(path);
                self.engine(|engine| engine.figures().memcg_usage(memcg)).to_string()
            }
            ["swapped", path] => (number(self.read(path, "swap.current").trim()) / PAGE_SIZE).to_string(),
            ["events", path, name] => line_of(&self.read(path, "events"), name),
            ["local", path, name] => line_of(&self.read(path, "events.local"), name),
            ["lengths", task, object, least, most, same_filled] => {
                let task = self.tasks[*task];
                let object = self.objects[&(task, (*object).to_owned())];
                let contents = compressibility(least, most, same_filled);
                self.engine(|engine| engine.set_compressibility(task, object, contents)).unwrap();
                String::new()
            }
            ["zeroes", task, object, share] => {
                let task = self.tasks[*task];
                let object = self.objects[&(task, (*object).to_owned())];
                let zero_filled = number(share) as u16;
                let contents = Compressibility { zero_filled, ..Compressibility::default() };
                self.engine(|engine| engine.set_compressibility(task, object, contents)).unwrap();
                String::new()
            }
            ["swaps"] => {
                let text = self.read_file("/proc/swaps");
                let lines = text.lines().skip(1).map(|line| {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    format!("{} {}/{} at {}", words[0], words[3], words[2], words[4])
                });
                lines.collect::<Vec<_>>().join(", ")
            }
            ["debug", room, name] => {
                self.read_file(&format!("/sys/kernel/debug/{room}/{name}")).trim().to_owned()
            }
            ["zram-file", name] => self.read_file(&format!("/sys/block/zram0/{name}")).trim().to_owned(),
            ["rmdir", path] => {
                let removed =
                    self.engine(|engine| engine.remove_directory(&format!("/sys/fs/cgroup/{path}")));
                removed.map_or_else(|error| error.to_string(), |()| String::new())
            }
            ["dying", path] => {
                let text = self.read_file(&format!("/sys/fs/cgroup/{path}/cgroup.stat"));
                line_of(&text, "nr_dying_descendants")
            }
            ["swap-events", path, name] => line_of(&self.read(path, "swap.events"), name),
            ["cat", path, name] => line_of(&self.read(path, "stat"), name),
            ["stat", path, name] => {
                let stat = *Stat::ALL.iter().find(|stat| stat.name() == *name).expect("a counter");
                let memcg = self.memcg(path);
                self.engine(|engine| engine.figures().memcg_stat(memcg, stat)).to_string()
            }
            ["vmstat", names @ ..] => {
                let text = self.read_file("/proc/vmstat");
                names.iter().map(|name| line_of(&text, name)).collect::<Vec<_>>().join(" ")
            }
            ["ops"] => {
                let ops = self.stepped().take_ops();
                ops.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
            }
            ["work", name] => {
                let all = self.engine(|engine| *engine.work());
                let work = all - self.worked;
                self.worked = all;
                let (_, count) = work.iter().find(|(other, _)| other == name).expect("a unit of work");
                count.to_string()
            }
            ["why"] => self.failure.clone(),
            ["oom-group", path] => {
                let file = format!("/sys/fs/cgroup/{path}/memory.oom.group");
                let task = self.administrator();
                let done = Ok(Step::Done(Served::Written { reclaimed: 0 }));
                assert_eq!(self.engine(|engine| engine.write_file(task, &file, "1")), done);
                String::new()
            }
            ["kills"] => {
                self.hear_kills();
                let kills = std::mem::take(&mut self.kills);
                let told = kills.iter().map(|kill| {
                    let name = kill
                        .tasks
                        .first()
                        .map_or_else(|| "nobody".to_owned(), |&task| self.name_of(task).to_owned());
                    format!("{name} {}", kill.badness.score)
                });
                told.collect::<Vec<_>>().join(", ")
            }
            ["log"] => {
                self.hear_kills();
                self.log.trim_end().replace('\n', " | ")
            }
            [task, rest @ ..] => {
                let id =
                    *self.tasks.get(*task).unwrap_or_else(|| panic!("there is no command or task {task}"));
                self.run_task(id, rest)
            }
            [] => unreachable!("empty lines are skipped"),
        };
        self.machine.settle();
        answer
    }

    fn run_task(&mut self, task: TaskId, words: &[&str]) -> String {
        match words {
            ["open", file, "as", name] => self.bind(task, name, |engine, file| engine.open(task, file), file),
            ["map", file, "as", name, flags @ ..] => {
                let exec = flags.contains(&"exec");
                let map = |engine: &mut Engine, file| engine.map_file(task, file, advice(flags), exec);
                self.bind(task, name, map, file)
            }
            ["advises", object, said] => {
                let object = self.object(task, object);
                self.engine(|engine| engine.fadvise(task, object, advice(&[*said]))).unwrap();
                String::new()
            }
            ["anon", pages, "as", name, flags @ ..] => {
                let object =
                    self.engine(|engine| engine.map_anon(task, number(pages), advice(flags))).unwrap();
                self.objects.insert((task, (*name).to_owned()), object);
                String::new()
            }
            ["read", object, pages] => self.accesses(task, object, range(pages), false),
            ["write", object, pages] => self.accesses(task, object, range(pages), true),
            ["sets", path, file, pages, options @ ..] => {
                let file = format!("/sys/fs/cgroup/{path}/memory.{file}");
                let bytes =
                    if *pages == "max" { "max".to_owned() } else { (number(pages) * PAGE_SIZE).to_string() };
                let value = [&[bytes.as_str()], options].concat().join(" ");
                match self.engine(|engine| engine.write_file(task, &file, &value)) {
                    Ok(step) => self.go_on(task, step),
                    Err(error) => {
                        format!("{error:?}").split([' ', '(']).next().unwrap_or_default().to_owned()
                    }
                }
            }
            ["mlock", object] => {
                self.advise(task, object, "0", |engine, object, _| engine.mlock(task, object))
            }
            ["munlock", object] => {
                self.advise(task, object, "0", |engine, object, _| engine.munlock(task, object))
            }
            ["munmap", object] => {
                self.advise(task, object, "0", |engine, object, _| engine.munmap(task, object))
            }
            ["thread", name] => {
                let thread = self.engine(|engine| engine.thread_create(task, CpuId(0)));
                let objects: Vec<(String, ObjectId)> = self
                    .objects
                    .iter()
                    .filter(|((of, _), _)| *of == task)
                    .map(|((_, name), id)| (name.clone(), *id))
                    .collect();
                self.objects.extend(objects.into_iter().map(|(name, id)| ((thread, name), id)));
                self.machine.name_task(thread, name);
                self.tasks.insert((*name).to_owned(), thread);
                String::new()
            }
            ["reopens", object] => {
                let object = self.object(task, object);
                self.engine(|engine| engine.open_for_itself(task, object));
                String::new()
            }
            ["writes", "partial", object] => {
                let object = self.object(task, object);
                self.engine(|engine| engine.set_partial_writes(task, object, true)).unwrap();
                String::new()
            }
            ["fsyncs", object] => {
                let object = self.object(task, object);
                let step = self.engine(|engine| engine.fsync(task, object)).unwrap();
                self.go_on(task, step)
            }
            ["acknowledges", object] => {
                let object = self.object(task, object);
                self.engine(|engine| engine.acknowledge_write_errors(task, object)).unwrap();
                String::new()
            }
            [how @ ("keeps" | "loses"), object] => {
                let object = self.object(task, object);
                let result = if *how == "keeps" { Ok(()) } else { Err(IoError::Device) };
                let Unkept { dirty, lost } = self.engine(|engine| {
                    engine.flush_begins(task, object).unwrap();
                    engine.flush_ended(task, object, result).unwrap()
                });
                format!("{} dirty, {} lost", dirty.len(), lost.len())
            }
            ["truncates", object, pages] => {
                let object = self.object(task, object);
                let came = self.machine.truncate(task, object, Some(range(pages)));
                self.told(came)
            }
            ["deletes", object] => {
                let object = self.object(task, object);
                let came = self.machine.truncate(task, object, None);
                self.told(came)
            }
            ["syncs"] => {
                let step = self.engine(|engine| engine.sync(task));
                self.go_on(task, step)
            }
            ["syncfs", object] => {
                let object = self.object(task, object);
                let step = self.engine(|engine| engine.syncfs(task, object)).unwrap();
                self.go_on(task, step)
            }
            ["exits"] => {
                let step = self.engine(|engine| engine.task_exit(task));
                self.go_on(task, step)
            }
            ["execs"] => {
                let step = self.engine(|engine| engine.task_exec(task));
                self.go_on(task, step)
            }
            ["cold", object, pages] => self
                .advise(task, object, pages, |engine, object, page| engine.madvise_cold(task, object, page)),
            ["free", object, pages] => {
                let object = self.object(task, object);
                self.machine.madvise_free(task, object, range(pages));
                String::new()
            }
            ["flushes", "io"] => {
                let process = self.processes[&task];
                self.engine(|engine| engine.set_io_flusher(process, true));
                String::new()
            }
            ["adj", adj] => {
                let process = self.processes[&task];
                self.engine(|engine| engine.set_oom_score_adj(process, adj.parse().unwrap()));
                String::new()
            }
            ["is", "signalled"] => {
                self.stepped().signal_later(task);
                String::new()
            }
            ["moves", path] => {
                let process = self.processes[&task];
                let memcg = self.memcg(path);
                self.engine(|engine| engine.process_move(process, memcg));
                String::new()
            }
            ["dontneed", file, pages] => {
                let file = self.files[*file];
                self.engine(|engine| engine.fadvise_dontneed(task, file, range(pages)).unwrap());
                String::new()
            }
            words => panic!("there is no task command {words:?}"),
        }
    }

    fn group(&mut self, path: &str, limits: &[&str]) -> String {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.memcg(parent);
        self.engine(|engine| engine.memcg_create(parent, name)).unwrap();
        let task = self.administrator();
        for limit in limits {
            let (file, pages) = limit.split_once('=').expect("FILE=PAGES");
            assert_eq!(self.run_task(task, &["sets", path, file, pages]), "reclaimed 0");
        }
        String::new()
    }

    /// A task without a name in the text, which is never killed.
    fn administrator(&mut self) -> TaskId {
        self.engine(|engine| {
            let mm = engine.process_create(MemcgId::ROOT);
            engine.task_create(mm, CpuId(0))
        })
    }

    fn read_file(&mut self, path: &str) -> String {
        self.engine(|engine| engine.read_file(path)).unwrap()
    }

    fn name_of(&self, task: TaskId) -> &str {
        self.tasks.iter().find(|(_, id)| **id == task).map_or("?", |(name, _)| name)
    }

    fn hear_kills(&mut self) {
        for (kill, log) in self.machine.take_kills() {
            self.kills.push(kill);
            self.log = log;
        }
    }

    fn accesses(&mut self, task: TaskId, object: &str, pages: Range<u64>, write: bool) -> String {
        let object = self.object(task, object);
        let mut runs: Vec<(u64, String)> = Vec::new();
        for page in pages {
            let came = self.machine.access(task, Access::new(object, page, write));
            let served = self.told(came);
            match runs.last_mut() {
                Some((count, last)) if *last == served => *count += 1,
                _ => runs.push((1, served)),
            }
        }
        let text = |(count, served): &(u64, String)| match count {
            1 => served.clone(),
            count => format!("{count}{served}"),
        };
        runs.iter().map(text).collect::<Vec<_>>().join(" ")
    }

    fn go_on(&mut self, task: TaskId, step: Step) -> String {
        let came = self.machine.go_on(task, step);
        self.told(came)
    }

    /// How far a task has come, in a word.
    fn told(&mut self, came: Came) -> String {
        let (served, slept) = match came {
            Came::WaitsForDevice => return "W".to_owned(),
            Came::WaitsForWake => return "T".to_owned(),
            Came::Done(served, slept) => (served, slept),
        };
        let served = match served {
            Served::Hit(_) => "H".to_owned(),
            Served::Minor(_) => "m".to_owned(),
            Served::Major(_) => "M".to_owned(),
            Served::Written { reclaimed: pages } => format!("reclaimed {pages}"),
            Served::Interrupted { reclaimed } => format!("interrupted, reclaimed {reclaimed}"),
            Served::Synced(Ok(())) => "synced".to_owned(),
            Served::Synced(Err(IoError::Device)) => "failed".to_owned(),
            Served::Truncated => "truncated".to_owned(),
            Served::Exited => "exited".to_owned(),
            Served::Advised => "advised".to_owned(),
            Served::Opened => "opened".to_owned(),
            Served::Refused(error) => panic!("{error}"),
            Served::Failed(error) => {
                self.failure = error.to_string();
                match error {
                    AccessError::Io => "E".to_owned(),
                    AccessError::Oom(_) => "O".to_owned(),
                    AccessError::Writeback => "F".to_owned(),
                    error => panic!("{error}"),
                }
            }
        };
        if slept == Nanos::ZERO { served } else { format!("{served} after {slept}") }
    }

    fn io(&mut self, result: Result<(), IoError>) -> String {
        let (name, woken) = self.stepped().end_transfer(result);
        name.to_owned() + &self.all_told(woken)
    }

    fn rested(&mut self, rested: Rested) -> String {
        let how = if rested.naps { "naps" } else { "sleeps" };
        how.to_owned() + &self.all_told(rested.woken)
    }

    fn all_told(&mut self, woken: Vec<(TaskId, Came)>) -> String {
        let mut answer = String::new();
        for (task, came) in woken {
            let served = self.told(came);
            let name = self.tasks.iter().find(|(_, id)| **id == task).map_or("", |(name, _)| name);
            answer += &format!(", {name} {served}");
        }
        answer
    }

    fn memcg(&mut self, path: &str) -> MemcgId {
        let found = self.engine(|engine| engine.figures().memcg_by_path(path));
        found.unwrap_or_else(|| panic!("there is no group {path}"))
    }

    fn read(&mut self, path: &str, file: &str) -> String {
        self.read_file(&format!("/sys/fs/cgroup/{path}/memory.{file}"))
    }

    fn file(&mut self, name: &str, pages: &str, kind: FileKind) -> String {
        let spec = FileSpec { name: name.to_owned(), pages: number(pages), kind, bdi: Bdi::NO_READAHEAD };
        let file = self.machine.create_file(spec).unwrap();
        self.files.insert(name.to_owned(), file);
        String::new()
    }

    fn task(&mut self, name: &str, path: &str, cpu: u64) -> String {
        let memcg = self.memcg(path);
        let mm = self.engine(|engine| engine.process_create(memcg));
        let task = self.engine(|engine| engine.task_create(mm, CpuId(cpu as u16)));
        self.machine.name_task(task, name);
        self.tasks.insert(name.to_owned(), task);
        self.processes.insert(task, mm);
        String::new()
    }

    fn bind(
        &mut self,
        task: TaskId,
        name: &str,
        make: impl FnOnce(&mut Engine, FileId) -> Result<ObjectId, ConfigError>,
        file: &str,
    ) -> String {
        let file = self.files[file];
        let object = self.engine(|engine| make(engine, file)).unwrap();
        self.objects.insert((task, name.to_owned()), object);
        String::new()
    }

    fn object(&self, task: TaskId, name: &str) -> ObjectId {
        let object = self.objects.get(&(task, name.to_owned()));
        *object.unwrap_or_else(|| panic!("the task has no object {name}"))
    }

    fn advise(
        &mut self,
        task: TaskId,
        object: &str,
        pages: &str,
        advise: impl Fn(&mut Engine, ObjectId, u64) -> Result<(), ConfigError>,
    ) -> String {
        let object = self.object(task, object);
        self.engine(|engine| range(pages).for_each(|page| advise(engine, object, page).unwrap()));
        String::new()
    }
}

fn advice(flags: &[&str]) -> Advice {
    match flags {
        flags if flags.contains(&"random") => Advice::Random,
        flags if flags.contains(&"noreuse") => Advice::NoReuse,
        _ => Advice::Normal,
    }
}

fn line_of(text: &str, name: &str) -> String {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = lines.find(|(found, _)| *found == name).unwrap_or_else(|| panic!("there is no {name}"));
    value.to_owned()
}
