//! Wrong inputs of every command: a missing file, a file of another kind, a damaged one, a wrong number, an unknown name, a full
//! device. Each error says what to do.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{GOOD, binary, check_success, pageout, scenarios, text};

/// A command line, its exit code, and parts of its error. The last part belongs to the help.
type Row = (&'static str, i32, &'static [&'static str]);

const DESCRIBES: &str = "describes its arguments";
const PATH: &str = "help: check the path";
const FULL: &[&str] = &["cannot write the result: No space left", "help: free space on this device"];
const WHOLE: &str = "expected a whole number from 0";

/// Files: `picture.png`, `folder/`, `empty`, `empty.csv`, `good.toml`, `head.toml` (a scenario after its head), `good.csv`, `good.pgt`,
/// `half.pgt`, `half.csv.zst`, `vmstat`, `trace.txt` and `dump`.
const ROWS: &[Row] = &[
    // Simulate.
    ("run nosuch.toml", 2, &["nosuch.toml: No such file", PATH]),
    ("run picture.png", 2, &["picture.png:1", "invalid UTF-8", "help: a scenario is a text file"]),
    ("run folder", 2, &["folder", "help: name a file"]),
    ("run empty", 2, &["no [[task]] to run", "help: add a [[task]]"]),
    ("run head.toml", 2, &["head.toml:", "missing key `path`", "help: `path` (text)"]),
    ("run good.csv", 2, &["good.csv:1:", "invalid TOML", "help: a scenario is a TOML file"]),
    ("run /proc/self/mem", 2, &["/proc/self/mem", DESCRIBES]),
    ("run good.toml --seed -1", 2, &["--seed: invalid value: found `-1`", WHOLE, DESCRIBES]),
    ("run good.toml --kernel 9.1", 2, &["--kernel: found `9.1`: unknown kernel version", DESCRIBES]),
    ("run good.toml --variant nosuch", 2, &["no [[variant]] `nosuch`", "help: remove --variant"]),
    ("run good.toml --set x=1", 2, &["unknown key `x`", "help: "]),
    ("run good.toml --set memcg./web.memory.max=x", 2, &["`x` is not a size", "help: write a number with B"]),
    (
        "run good.toml --repport x",
        2,
        &["unknown option: found `--repport`", "help: did you mean `--report`?"],
    ),
    (
        "run good.toml --out folder/nosuch/x.json",
        3,
        &["--out", "no such directory", "help: create the folder"],
    ),
    ("run good.toml --out x", 2, &["--out: unknown suffix: found `x`", "help: select the form"]),
    ("run good.toml --json --out /dev/full", 3, &["--out /dev/full", FULL[0], FULL[1]]),
    ("run good.toml > /dev/full", 3, FULL),
    ("run good.toml --report /dev/full", 3, &["--report /dev/full", FULL[0], FULL[1]]),
    ("run good.toml --report nosuch/x.html", 3, &["no such directory: `nosuch`", "help: create the folder"]),
    ("run good.toml --report x", 2, &["--report: unknown suffix", "help: for example --report report.html"]),
    ("run good.toml --timeline x", 2, &["--timeline: unknown suffix", "help: the suffix selects the format"]),
    ("run good.toml --trace folder", 2, &["--trace: found the folder `folder`", "help: name a file in it"]),
    (
        "run good.toml --trace-events nosuch --trace x",
        2,
        &["unknown tracepoint `nosuch`", "help: the tracepoints"],
    ),
    ("run good.toml --figure nosuch", 2, &["unknown figure `nosuch`", "help: the figures of this result"]),
    ("compare nosuch.toml", 2, &["nosuch.toml: No such file", PATH]),
    ("compare good.toml --vary x", 2, &["--vary: found `x`, expected KEY=A,B", DESCRIBES]),
    ("compare good.toml --vary nosuch=1,2", 2, &["unknown key `nosuch`", "help: "]),
    (
        "compare good.toml --repeat 0",
        2,
        &["--repeat: invalid value: found `0`, expected 1 to 1000", DESCRIBES],
    ),
    ("compare good.toml --repeat -1", 2, &["--repeat: invalid value: found `-1`", DESCRIBES]),
    ("compare good.toml --vary seed=1,2 > /dev/full", 3, FULL),
    ("explain nosuch.toml --evictions 1", 2, &["nosuch.toml: No such file", PATH]),
    ("explain good.toml", 2, &["missing <--page <PAGE>|--evictions <N>>", "help: usage: pageout explain"]),
    ("explain good.toml --page x", 2, &["found no `:`", "help: for example --page reader/0:17"]),
    ("explain good.toml --page reader/0:y", 2, &["found page `y`", "help: for example --page reader/0:17"]),
    (
        "explain good.toml --page reader/7:1",
        2,
        &["unknown object `reader/7` of task `reader`", "help: it has `reader/0`"],
    ),
    ("explain good.toml --evictions x", 2, &["--evictions", WHOLE, DESCRIBES]),
    (
        "explain good.toml --evictions 1 --memcg nosuch",
        2,
        &["--memcg nosuch: no such cgroup", "help: the cgroups are "],
    ),
    ("predict nosuch.toml", 2, &["nosuch.toml: No such file", PATH]),
    ("predict good.toml --unknown nosuch=1", 2, &["--unknown", "fewer than two values", DESCRIBES]),
    ("predict good.toml --repeat 1 --accesses picture.png", 3, &["File exists", "help: choose a name"]),
    ("crossover nosuch.toml", 2, &["nosuch.toml: No such file", PATH]),
    ("crossover good.toml --over x", 2, &["--over: found `x`", DESCRIBES]),
    ("advise-tier nosuch.toml", 2, &["nosuch.toml: No such file", PATH]),
    ("advise-tier empty.csv", 2, &["empty.csv", "found an empty file", "help: check the path"]),
    (
        "advise-tier good.toml --memory x",
        2,
        &["--memory x: `x` is not a size", "help: write a number with B"],
    ),
    (
        "advise-tier good.toml --device nosuch",
        2,
        &["--device: found `nosuch`, expected one of dram", DESCRIBES],
    ),
    (
        "advise-tier good.toml --ratio 1",
        2,
        &["--ratio 1: expected FAST:SLOW", "help: for example --ratio 1:2"],
    ),
    (
        "advise-tier good.toml --loss x",
        2,
        &["--loss: invalid value: found `x`, expected a number", DESCRIBES],
    ),
    ("advise-tier good.toml --price x", 2, &["--price x: expected NAME=PRICE", DESCRIBES]),
    ("advise-tier good.toml --warm-up x", 2, &["--warm-up x: expected a time", DESCRIBES]),
    ("play nosuch.toml --no-open", 2, &["nosuch.toml: No such file", PATH]),
    ("play --no-open --out page.txt", 2, &["--out: unknown suffix: found `page.txt`", "help: for example"]),
    // Kernel changes.
    ("ablate nosuch.toml", 2, &["nosuch.toml: No such file", PATH]),
    ("ablate good.toml --switch nosuch", 2, &["unknown switch `nosuch`", "help: "]),
    ("ablate good.toml --variant nosuch", 2, &["no [[variant]] `nosuch`", "help: remove --variant"]),
    ("bisect nosuch.toml --from 6.1 --to 6.12", 2, &["nosuch.toml: No such file", PATH]),
    ("bisect good.toml --from x --to 6.12", 2, &["--from: found `x`: unknown kernel version", DESCRIBES]),
    ("bisect good.toml --from 6.12 --to 6.12", 2, &["found 6.12 twice", "help: for example --from 6.1"]),
    ("bisect good.toml --from 6.12", 2, &["missing --to <VERSION>", "help: usage: pageout bisect"]),
    ("coverletter good.toml", 2, &["missing --switch <NAME=VALUE>", "help: usage: pageout coverletter"]),
    ("coverletter nosuch.toml --switch balance.rule=cost", 2, &["nosuch.toml", PATH]),
    ("coverletter good.toml --switch balance.rule=cost --repeat 0", 2, &["--repeat: found `0`", DESCRIBES]),
    ("reproduce nosuch", 2, &["unknown chapter: found `nosuch`", "help: `pageout reproduce --list`"]),
    ("reproduce nosuch.toml", 2, &["nosuch.toml: No such file", PATH]),
    ("reproduce picture.png", 2, &["unknown chapter: found `picture.png`", "help: "]),
    (
        "reproduce mglru --report nosuch/x.html",
        3,
        &["no such directory: `nosuch`", "help: create the folder"],
    ),
    ("tour nosuch.toml", 2, &["nosuch.toml: No such file", PATH]),
    ("tour --only nosuch", 2, &["--only nosuch: unknown stop", "help: "]),
    // Traces.
    ("replay nosuch.csv", 2, &["nosuch.csv: No such file", PATH]),
    ("replay picture.png", 2, &["picture.png: unknown trace format", "help: to force a format"]),
    ("replay folder", 2, &["folder: Is a directory", "help: name a file"]),
    ("replay empty", 2, &["empty: found an empty file, expected accesses", "help: check the path"]),
    ("replay empty.csv", 2, &["empty.csv (csv)", "expected a header line", "help: check the path"]),
    (
        "replay half.csv.zst",
        2,
        &["half.csv.zst", "truncated or damaged", "help: copy or download the file again"],
    ),
    ("replay half.pgt", 2, &["half.pgt (pgt)", "truncated", "help: copy or download the file again"]),
    ("replay good.csv --memory x", 2, &["--memory x: `x` is not a size", "or a percentage", "help: "]),
    ("replay good.csv --policy nosuch", 2, &["unknown policy `nosuch`", "help: "]),
    ("replay good.csv --seed -1", 2, &["--seed: invalid value: found `-1`", WHOLE, DESCRIBES]),
    ("replay good.csv --device nosuch", 2, &["--device", "`nosuch`", "help: "]),
    (
        "replay good.csv --channel nosuch",
        2,
        &["found `nosuch`, expected one of file, mapped, anonymous", DESCRIBES],
    ),
    (
        "replay good.csv --think-time 5",
        2,
        &["--think-time: `5` is not a duration", "help: write a number with ns"],
    ),
    (
        "replay good.csv --trace-format nosuch",
        2,
        &["--read: `format`: unknown trace format `nosuch`", "help: "],
    ),
    ("replay good.csv --read nosuch=1", 2, &["--read: unknown key `nosuch`", "help: allowed here: format"]),
    ("replay good.csv --sample x", 2, &["--sample: invalid value: found `x`, expected a number", DESCRIBES]),
    ("replay good.csv --wrong", 2, &["pageout replay: unknown option: found `--wrong`", DESCRIBES]),
    ("replay", 2, &["pageout replay: missing <TRACE>...", "help: usage: pageout replay"]),
    ("replay good.csv > /dev/full", 3, FULL),
    ("sweep nosuch.toml --into out", 2, &["nosuch.toml: cannot read the plan: No such file", PATH]),
    ("sweep picture.png --into out", 2, &["picture.png: cannot read the plan", "help: this is not a text"]),
    (
        "sweep good.toml --into out",
        2,
        &["good.toml", "unknown field `question`", "help: `pageout help sweep`"],
    ),
    (
        "sweep empty --into out",
        2,
        &["empty: expected either `traces` or `scenarios`", "help: `pageout help sweep`"],
    ),
    ("sweep good.toml", 2, &["missing --into <DIR>", "help: usage: pageout sweep"]),
    ("sweep good.toml --into out --shard 2/2", 2, &["--shard", "found `2/2`", DESCRIBES]),
    (
        "sweep --traces no*.txt --policy lru --memory 10% --into out",
        2,
        &["--traces: found no file that matches `no*.txt`", "help: a relative pattern"],
    ),
    (
        "sweep --traces good.toml --policy lru --memory 10% --into out --summary fifo",
        2,
        &["--summary fifo: found no `fifo` in --policy lru", "help: add it: --policy fifo,lru"],
    ),
    ("sweep --collect nosuch", 2, &["cannot read nosuch: No such file", PATH]),
    ("sweep --collect picture.png", 2, &["cannot read picture.png", "help: name a folder"]),
    ("sweep --collect folder", 2, &["folder: found no rows", "help: `pageout sweep PLAN.toml"]),
    ("bench nosuch.bin", 2, &["nosuch.bin: No such file", PATH]),
    ("bench folder", 2, &["folder: found a folder or a device", "help: name a file"]),
    ("bench empty", 2, &["empty: found 0 bytes", "help: name a larger file"]),
    ("bench --load nosuch", 2, &["--load nosuch: expected zipf", "help: check the name"]),
    ("bench --load zipf:x", 2, &["--load zipf:x: invalid exponent", "help: for example --load zipf:1.2"]),
    ("bench --size 0", 2, &["--size: expected at least one page", "help: for example --size 256MiB"]),
    ("bench --rounds 0", 2, &["--rounds: invalid value: found `0`, expected 1 to 1000", DESCRIBES]),
    ("bench --folder nosuch", 2, &["--folder nosuch: no such folder", "help: create it first"]),
    ("bench --beside nosuch", 2, &["--beside nosuch: unknown reader", "help: known"]),
    ("trace info nosuch.csv", 2, &["nosuch.csv: No such file", PATH]),
    ("trace info picture.png", 2, &["picture.png: unknown trace format", "help: to force a format"]),
    ("trace info half.pgt", 2, &["half.pgt", "truncated", "help: copy or download"]),
    ("trace info good.csv > /dev/full", 3, FULL),
    ("trace inf good.csv", 2, &["pageout trace: unknown command: found `inf`", "help: did you mean `info`?"]),
    ("trace convert good.csv good.pgt", 2, &["good.pgt: the file exists", "help: replace it with --force"]),
    ("trace convert good.csv nosuch/x.pgt", 3, &["cannot write the result", "help: create the folder"]),
    ("trace convert good.csv /dev/full --force", 3, FULL),
    ("trace compressibility nosuch", 2, &["cannot read nosuch: No such file", PATH]),
    (
        "trace compressibility folder",
        2,
        &["folder: found a folder or a device", "help: name a file, or a process"],
    ),
    ("trace compressibility empty", 2, &["empty: found an empty file", "help: name a file, or a process"]),
    ("trace compressibility picture.png --sample 0", 2, &["--sample", "expected 1 or more", DESCRIBES]),
    ("import nosuch -o x.pgt", 2, &["cannot read nosuch: No such file", PATH]),
    ("import picture.png -o x.pgt", 2, &["picture.png", "help: "]),
    ("import empty -o x.pgt", 2, &["empty", "help: "]),
    ("import folder -o x.pgt", 2, &["folder: found a folder, expected a file", "help: name the file"]),
    ("import good.csv -o good.pgt", 2, &["good.pgt: the file exists", "help: replace it with --force"]),
    (
        "import good.csv -o x.pgt --source lines --pattern {file}",
        2,
        &["--pattern", "help: for example --pattern"],
    ),
    ("import good.csv -o x.pgt --source nosuch", 2, &["--source: invalid value: found `nosuch`", DESCRIBES]),
    // Policies.
    ("new-policy 1x", 2, &["NAME: invalid name: found `1x`", "help: for example my-policy"]),
    ("new-policy lru", 2, &["name is in use: found `lru`", "help: `pageout keys policy`"]),
    ("new-policy folder", 2, &["folder: the folder exists", "help: choose another name"]),
    ("new-policy x --pageout nosuch", 2, &["--pageout nosuch: No such file", PATH]),
    ("new-policy x --c --python", 2, &["--c and --python: found both, expected one", "help: remove one"]),
    ("check-policy nosuch", 2, &["unknown policy: found `nosuch`", "help: the built-in policies are"]),
    ("check-policy nosuch.so", 2, &["nosuch.so: no such file", PATH]),
    (
        "check-policy nosuch.so --allow-plugins",
        2,
        &["nosuch.so: it can't be loaded", "help: `pageout new-policy NAME --c`"],
    ),
    ("check-policy ./picture.png", 2, &["runs with your rights", "help: allow it with --allow-plugins"]),
    (
        "check-policy ./picture.png --allow-plugins",
        2,
        &["it can't be loaded", "help: `pageout new-policy NAME --c`"],
    ),
    ("check-policy empty", 2, &["runs with your rights", "help: allow it with --allow-plugins"]),
    // Real machines.
    ("record", 2, &["missing --into <DIR>", "help: usage: pageout record"]),
    (
        "record --into out --for x -- true",
        2,
        &["--for x: `x` is not a duration", "help: write a number with ns"],
    ),
    ("record --into out --for 0 -- true", 2, &["--for: found 0", "help: for example --for 10s"]),
    (
        "record --into out --sample 1/3 -- true",
        2,
        &["--sample: invalid share", "help: for example --sample 1/8"],
    ),
    (
        "record --into out --stat-every 1us -- true",
        2,
        &["--stat-every: too short", "help: for example --stat-every 1s"],
    ),
    ("record --into out --events nosuch -- true", 2, &["--events: unknown kind: found `nosuch`", DESCRIBES]),
    (
        "record --into out --max-size x -- true",
        2,
        &["--max-size x: `x` is not a size", "help: write a number with B"],
    ),
    ("twin nosuch", 2, &["nosuch: no such folder", "help: `pageout record --into FOLDER"]),
    ("twin picture.png", 2, &["picture.png: found a file", "help: name the folder of a recording"]),
    ("twin folder", 2, &["folder: not a recording", "help: `pageout record --into FOLDER"]),
    ("diff nosuch vmstat", 2, &["cannot read nosuch: No such file", PATH]),
    ("diff folder vmstat", 2, &["cannot read folder: Is a directory", "help: name a file"]),
    ("diff picture.png vmstat", 2, &["picture.png: found bytes that are not UTF-8", "help: give snapshots"]),
    ("diff empty vmstat", 2, &["empty: found an empty file", "help: save a snapshot by `cat /proc/vmstat"]),
    ("diff good.toml vmstat", 2, &["good.toml: line 1: found", "help: save a snapshot by `cat /proc/vmstat"]),
    ("diff vmstat vmstat --interval x", 2, &["--interval x: `x` is not a duration", "help: write a number"]),
    (
        "diff vmstat vmstat --interval 0",
        2,
        &["--interval 0: expected a time above 0", "help: for example --interval 60s"],
    ),
    ("diff vmstat vmstat --page-size 3", 2, &["--page-size 3: expected 4KiB", DESCRIBES]),
    ("diff vmstat vmstat > /dev/full", 3, FULL),
    ("vmscan-report nosuch", 2, &["cannot read nosuch: No such file", PATH]),
    ("vmscan-report folder", 2, &["folder: found a directory", "help: name the files in it"]),
    ("vmscan-report picture.png", 2, &["picture.png", "help: "]),
    (
        "vmscan-report empty",
        2,
        &["empty: found an empty file", "help: write it by `cat /sys/kernel/tracing/trace`"],
    ),
    ("vmscan-report trace.txt --cpu-time 1,2", 2, &["--cpu-time: found 2 values", DESCRIBES]),
    ("vmscan-report trace.txt --elapsed x", 2, &["--elapsed: invalid value", DESCRIBES]),
    ("working-set nosuch", 2, &["nosuch", PATH]),
    ("working-set folder", 2, &["folder: found an empty directory", "help: write one by `cat"]),
    ("working-set picture.png", 2, &["picture.png", "help: "]),
    (
        "working-set dump --within x",
        2,
        &["--within x: `x` is not a duration", "help: write a number with ns"],
    ),
    ("working-set dump --job 1GiB", 2, &["--job needs the memory size", "help: add --memory"]),
    (
        "working-set dump --generations 1",
        2,
        &["--generations: invalid value: found `1`, expected 2 to 64", DESCRIBES],
    ),
    ("validate nosuch", 2, &["No such file", PATH]),
    ("validate folder", 2, &["ground-truth.json: No such file", PATH]),
    ("validate .", 2, &["ground-truth.json: No such file", PATH]),
    ("validate folder --simulations x", 2, &["--simulations: invalid value: found `x`", WHOLE, DESCRIBES]),
    ("validate folder --without nosuch", 2, &["--without: invalid value: found `nosuch`", DESCRIBES]),
    // Reference.
    ("keys nosuch", 2, &["FILTER: found `nosuch`", "help: "]),
    ("keys --at x", 2, &["--at: found `x`: unknown kernel version", DESCRIBES]),
    ("keys > /dev/full", 3, FULL),
    ("completions nosuch", 2, &["<SHELL>: invalid value: found `nosuch`, expected one of bash", DESCRIBES]),
    ("completions bash > /dev/full", 3, FULL),
    // No command.
    ("rum", 2, &["pageout: unknown command: found `rum`", "help: did you mean `run`?"]),
    ("--wrong", 2, &["pageout: unknown option: found `--wrong`", "help: `pageout -h` lists the commands"]),
    ("-h > /dev/full", 3, FULL),
];

/// The folder that [`ROWS`] is about.
fn inputs() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let shared = |path: &str| fs::read(scenarios().join("..").join(path)).unwrap();
    let half = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("picture.png"), shared("docs/pictures/run.png")).unwrap();
    fs::write(at("empty"), "").unwrap();
    fs::write(at("empty.csv"), "").unwrap();
    fs::write(at("good.toml"), GOOD).unwrap();
    let head = GOOD.split_inclusive('\n').take_while(|line| !line.starts_with("path"));
    fs::write(at("head.toml"), head.collect::<String>()).unwrap();
    let pages: String = (0..4000).map(|at| format!("{}\n", at * 7 % 1000 * 4096)).collect();
    fs::write(at("good.csv"), format!("offset\n{pages}")).unwrap();
    check_success(&pageout(directory.path(), &["trace", "convert", "good.csv", "good.pgt"]));
    fs::write(at("half.pgt"), half(&fs::read(at("good.pgt")).unwrap())).unwrap();
    fs::write(at("half.csv.zst"), half(&shared("docs/examples/disks.csv.zst"))).unwrap();
    fs::write(at("vmstat"), shared("docs/examples/vmstat.before")).unwrap();
    fs::write(at("dump"), shared("docs/examples/web1.lru_gen")).unwrap();
    check_success(&pageout(directory.path(), &["run", "good.toml", "--trace", "trace.txt"]));
    directory
}

/// Returns the exit code and standard error of a row.
fn outcome(directory: &Path, line: &str) -> (Option<i32>, String) {
    let (arguments, file) = line.split_once(" > ").unwrap_or((line, ""));
    let mut command = Command::new(binary());
    command.current_dir(directory).args(arguments.split(' '));
    if !file.is_empty() {
        command.stdout(fs::File::options().write(true).open(file).unwrap());
    }
    let output = command.output().unwrap();
    (output.status.code(), text(&output.stderr))
}

#[test]
#[cfg(target_os = "linux")]
fn wrong_input_of_each_command_is_reported_with_help() {
    let directory = inputs();
    let mut wrong = Vec::new();
    for &(line, code, parts) in ROWS {
        let (found, stderr) = outcome(directory.path(), line);
        let error = stderr.find("error: ").map_or("", |at| &stderr[at..]);
        let missing: Vec<&&str> = parts
            .iter()
            .filter(|part| !error.contains(**part))
            .chain((!error.contains("help: ")).then_some(&"help: "))
            .collect();
        if found != Some(code) || !missing.is_empty() || stderr.contains("panicked") {
            wrong.push(format!(
                "pageout {line}: exit code {found:?}, expected {code}; without {missing:?}:\n{stderr}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), ROWS.len(), wrong.join("\n"));
}

#[test]
fn every_command_has_a_wrong_input() {
    let help = check_success(&pageout(Path::new("."), &["-h"]));
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: BTreeSet<&str> = listed
        .filter_map(|line| line.trim().split_once("  "))
        .flat_map(|(_, names)| names.trim().split(", "))
        .collect();
    assert!(names.len() > 20, "{help}");
    let tested: BTreeSet<&str> = ROWS.iter().filter_map(|(line, ..)| line.split(' ').next()).collect();
    let missing: Vec<&&str> = names.difference(&tested).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
