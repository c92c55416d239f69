//! Textbook policies over traces: known misses, curves, bounds, estimates, and what is refused.

use std::path::Path;

use serde_json::Value;

use super::{check_failure, check_success, pageout, text};

/// A recorded sequence.
fn sequence(name: &str) -> String {
    format!("{}/../../ground-truth/sequences/{name}.u32.zst", env!("CARGO_MANIFEST_DIR"))
}

fn replay(arguments: &[&str]) -> std::process::Output {
    pageout(Path::new("."), &[&["replay", "--quiet"], arguments].concat())
}

fn json(arguments: &[&str]) -> Value {
    let printed = check_success(&replay(&[arguments, &["--json"]].concat()));
    serde_json::from_str(&printed).unwrap()
}

/// Misses of all cells of the first trace, in their order.
fn misses(arguments: &[&str]) -> Vec<u64> {
    let result = json(arguments);
    let cells = result["traces"][0]["cells"].as_array().unwrap();
    cells.iter().map(|cell| cell["misses"].as_u64().unwrap()).collect()
}

/// So many pages, as many times, in order.
fn rounds(directory: &Path, pages: u32, times: u32) -> String {
    let words: Vec<u8> = (0..times).flat_map(|_| 0..pages).flat_map(u32::to_le_bytes).collect();
    let path = directory.join("loop.u32");
    std::fs::write(&path, words).unwrap();
    path.to_string_lossy().into_owned()
}

const SIZES: [(&str, &str); 2] =
    [("zipfscan", "573pages,5733pages,11466pages"), ("shift", "159pages,1597pages,3195pages")];

#[test]
fn misses_of_textbook_policies_are_those_of_independent_implementations() {
    let known: [(&str, [[u64; 3]; 2]); 7] = [
        ("fifo", [[181_411, 90_940, 86_945], [193_943, 110_977, 83_103]]),
        ("lru", [[170_425, 88_533, 81_338], [180_173, 98_178, 71_940]]),
        ("clock", [[167_323, 88_481, 71_499], [176_048, 95_287, 69_740]]),
        ("sieve", [[149_162, 70_509, 62_319], [148_080, 85_232, 69_929]]),
        ("lfu", [[151_027, 70_509, 62_319], [221_310, 126_087, 97_406]]),
        ("arc", [[151_101, 70_467, 60_733], [149_037, 83_642, 64_572]]),
        ("opt", [[122_458, 60_850, 57_331], [123_907, 57_375, 39_553]]),
    ];
    let policies = known.map(|(name, _)| name).join(",");
    for (at, (name, sizes)) in SIZES.into_iter().enumerate() {
        let expected: Vec<u64> = known.iter().flat_map(|(_, misses)| misses[at]).collect();
        assert_eq!(misses(&[&sequence(name), "--memory", sizes, "--policy", &policies]), expected, "{name}");
    }
}

#[test]
fn where_a_paper_leaves_a_choice_parameters_agree_with_the_reference_within_a_hundredth() {
    let known: [(&str, [[u64; 3]; 2]); 4] = [
        ("2q", [[153_325, 83_991, 67_002], [152_963, 86_439, 66_937]]),
        ("lirs", [[150_784, 70_167, 61_304], [148_250, 83_671, 64_221]]),
        ("s3-fifo:fill=1", [[148_531, 70_337, 61_917], [147_083, 82_489, 63_645]]),
        (
            "w-tinylfu:protected=0.75,segments=4,sample=20,count=255,ties=1",
            [[147_868, 70_468, 61_015], [148_267, 84_927, 66_043]],
        ),
    ];
    let policies = known.map(|(name, _)| name).join(",");
    for (at, (name, sizes)) in SIZES.into_iter().enumerate() {
        let ours = misses(&[&sequence(name), "--memory", sizes, "--policy", &policies]);
        let expected = known.iter().flat_map(|(policy, misses)| misses[at].map(|misses| (policy, misses)));
        for (ours, (policy, known)) in ours.into_iter().zip(expected) {
            assert!(ours.abs_diff(known) * 100 <= known, "{policy} on {name}: {ours}, and {known} is known");
        }
    }
}

#[test]
fn in_a_loop_larger_than_memory_the_bound_misses_what_does_not_fit_and_others_all() {
    let (all, best) = (102_400, |size: u64| 10_240 + 9 * (10_240 - size));
    let loop_of = sequence("loop");
    let found =
        misses(&[&loop_of, "--memory", "1024pages,5120pages", "--policy", "opt,fifo,lru,clock,sieve,arc"]);
    assert_eq!(found[..2], [best(1_024), best(5_120)]);
    assert!(found[2..].iter().all(|&misses| misses == all), "{found:?}");
}

#[test]
fn a_curve_of_lru_is_what_single_runs_find_by_marks_and_by_distances() {
    let shift = sequence("shift");
    // 100 sizes are marks in one stack, 400 are distances.
    for (range, every) in [("1%..100%/100", 9), ("0.25%..100%/400", 37)] {
        let curve = json(&[&shift, "--memory", range, "--policy", "lru"]);
        for cell in curve["traces"][0]["cells"].as_array().unwrap().iter().step_by(every) {
            let size = format!("{}pages", cell["memory_pages"]);
            assert_eq!(
                misses(&[&shift, "--memory", &size, "--policy", "lru"]),
                [cell["misses"].as_u64().unwrap()]
            );
        }
    }
}

#[test]
fn no_policy_beats_the_bound() {
    let policies = "fifo,lru,mru,clock,sieve,slru,lfu,lfu-da,lru-2,lru-k,mq,2q,arc,lirs,\
        clock-pro,qd-lp,s3-fifo,w-tinylfu,hyperbolic,lhd,lecar,cacheus,random,opt";
    let found = misses(&[&sequence("shift"), "--memory", "0.5%..100%/6log", "--policy", policies]);
    let (others, bound) = found.split_at(found.len() - 6);
    for row in others.chunks(6) {
        assert!(row.iter().zip(bound).all(|(misses, bound)| misses >= bound), "{row:?} below {bound:?}");
    }
}

#[test]
fn policies_are_rows_and_sizes_columns_and_a_textbook_has_no_time() {
    let shift = sequence("shift");
    let printed = check_success(&replay(&[
        &shift,
        "--memory",
        "5%,20%",
        "--policy",
        "lru,opt,classic@6.12,lru@machine",
    ]));
    for said in [
        "miss ratio    readahead      5%     20%\n",
        "opt (bound)           -  0.2552  0.1318\n",
        "policy        readahead  memory   misses  runtime  pages read  refaults  reclaim p99\n",
        "classic@6.12, lru@machine run in the machine, on nvme:",
        "percentages are of the 15,979 distinct pages\n",
    ] {
        assert!(printed.contains(said), "{said:?} in:\n{printed}");
    }
    let one = check_success(&replay(&[&shift, "--memory", "20%", "--policy", "lru,classic@6.12"]));
    let lru = one.lines().find(|line| line.starts_with("lru ")).unwrap();
    assert_eq!(lru.split_whitespace().collect::<Vec<_>>()[6..], ["-", "-", "-", "-"], "{one}");
}

#[test]
fn a_machine_has_no_figure_below_its_least_size_and_a_textbook_has() {
    let printed = check_success(&replay(&[
        &sequence("shift"),
        "--memory",
        "1pages,159pages",
        "--policy",
        "lru,classic@6.12",
    ]));
    assert!(printed.contains("- below 64 pages, the minimum of the simulated machine\n"), "{printed}");
    let machine = printed.lines().find(|line| line.starts_with("classic@6.12  ")).unwrap();
    assert_eq!(machine.split_whitespace().nth(3), Some("-"), "{printed}");
}

#[test]
fn several_traces_have_a_table_each_and_one_that_cannot_be_read_takes_nothing_from_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let short = rounds(directory.path(), 100, 3);
    let result = json(&[&short, &sequence("loop"), "--memory", "50%", "--policy", "lru,opt"]);
    let accesses = |at: usize| result["traces"][at]["accesses"].as_u64();
    assert_eq!([accesses(0), accesses(1)], [Some(300), Some(102_400)]);
    let broken = directory.path().join("cut.pgt");
    std::fs::write(&broken, "no trace").unwrap();
    let output = replay(&[broken.to_str().unwrap(), &short, "--memory", "50%", "--policy", "lru"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains("loop.u32: 300 accesses"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("cut.pgt"), "{}", text(&output.stderr));
}

#[test]
fn what_warms_up_does_not_count() {
    let directory = tempfile::tempdir().unwrap();
    let trace = rounds(directory.path(), 1000, 4);
    for policies in ["lru,fifo,opt", "arc,lirs"] {
        let found = misses(&[&trace, "--memory", "100%,200%", "--policy", policies, "--warm-up", "25%"]);
        assert!(found.iter().all(|&misses| misses == 0), "all of it fits, and was seen: {found:?}");
    }
    let half = misses(&[&trace, "--memory", "50%", "--policy", "lru,opt", "--warm-up", "1000"]);
    assert_eq!(half, [3_000, 1_500]);
    for (warm_up, why) in [
        ("4000", "none is left to count"),
        ("100%", "from 0 to below 100"),
        ("much", "found `much`, expected a number or a percentage"),
    ] {
        let output = replay(&[&trace, "--policy", "lru", "--warm-up", warm_up]);
        check_failure(&output, 2, &["--warm-up", why]);
    }
}

#[test]
fn an_estimate_is_marked_and_has_its_spread() {
    let zipfscan = sequence("zipfscan");
    let sampled = ["--memory", "5%,20%", "--policy", "lru,s3-fifo,opt", "--sample", "0.1"];
    let printed = check_success(&replay(&[&[zipfscan.as_str()], &sampled[..]].concat()));
    assert!(printed.contains("~ estimated from 5 samples of 10% of the pages each"), "{printed}");
    assert!(
        printed.lines().filter(|line| line.contains("  ~0.") && line.contains(" ±0.0")).count() == 3,
        "{printed}"
    );
    let estimates = json(&[&[zipfscan.as_str()], &sampled[..]].concat());
    let exact = json(&[&zipfscan, "--memory", "5%,20%", "--policy", "lru,s3-fifo,opt"]);
    for at in 0..6 {
        let of = |result: &Value, key: &str| result["traces"][0]["cells"][at][key].as_f64().unwrap();
        assert!((of(&estimates, "miss_ratio") - of(&exact, "miss_ratio")).abs() < 0.03, "{at}");
        assert!(of(&estimates, "miss_ratio_least") < of(&estimates, "miss_ratio_most"));
    }
    let refused = replay(&[&zipfscan, "--policy", "lru", "--sample", "0.001"]);
    check_failure(&refused, 2, &["--sample 0.001", "pages is too small (minimum 1000): sample 0.02"]);
    let machine = replay(&[&zipfscan, "--policy", "lru,classic@6.12", "--sample", "0.1"]);
    check_failure(&machine, 2, &["classic@6.12 runs in the full simulator"]);
}

#[test]
fn a_trace_that_is_not_kept_in_memory_has_the_same_misses() {
    let shift = sequence("shift");
    let asked = ["--memory", "2%..80%/7log", "--policy", "lru,arc,s3-fifo,lru-2", "--warm-up", "100000"];
    let kept = misses(&[&[shift.as_str()], &asked[..]].concat());
    assert_eq!(misses(&[&[shift.as_str(), "--trace-memory", "64KiB"], &asked[..]].concat()), kept);
    assert_eq!(misses(&[&[shift.as_str(), "--jobs", "1"], &asked[..]].concat()), kept);
    let bound = replay(&[&shift, "--policy", "lru,opt", "--trace-memory", "64KiB"]);
    let printed = check_success(&bound);
    assert!(
        printed.contains("increase --trace-memory") && printed.contains("exceeds the limit"),
        "{printed}"
    );
}

#[test]
fn who_called_a_policy_of_the_machine_by_its_bare_name_is_told_what_it_is_called_now() {
    let shift = sequence("shift");
    let output = replay(&[&shift, "--policy", "sieve", "--read-ahead-kb", "0"]);
    let said = text(&output.stderr);
    assert!(
        said.contains("--read-ahead-kb has no effect on textbook policies")
            && said.contains("`sieve@machine`"),
        "{said}"
    );
    let output = replay(&[&shift, "--policy", "lru", "--print-scenario"]);
    check_failure(&output, 2, &["--print-scenario: lru runs without the full simulator", "lru@machine"]);
    let scenario = check_success(&replay(&[&shift, "--policy", "lru@machine", "--print-scenario"]));
    assert!(scenario.contains("profile = \"lru\""), "{scenario}");
    check_failure(&replay(&[&shift, "--policy", "arc@machine"]), 2, &["sieve@machine"]);
    check_failure(&replay(&[&shift, "--policy", "lru,arc,lru"]), 2, &["--policy: found `lru` twice"]);
    check_failure(&replay(&[&shift, "--policy", "s3-fifo:smal=0.1"]), 2, &["do you mean `small`?"]);
    check_failure(
        &replay(&[&shift, "--policy", "lru", "--memory", "0.001%"]),
        2,
        &["0 pages", "expected at least 1 page"],
    );
}

#[test]
fn a_page_has_the_curves_of_all_policies() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("curves.html");
    let report = page.to_str().unwrap();
    check_success(&replay(&[
        &sequence("shift"),
        "--memory",
        "1%..100%/9log",
        "--policy",
        "lru,arc,opt",
        "--report",
        report,
    ]));
    let page = std::fs::read_to_string(&page).unwrap();
    for said in ["Miss ratio over memory, shift.u32.zst", "\"name\":\"opt (bound)\"", "\"name\":\"arc\""] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn keys_tell_every_textbook_policy_with_its_parameters_and_a_public_source() {
    let printed = check_success(&pageout(Path::new("."), &["keys", "policy"]));
    for said in ["policy.lru\n", "policy.s3-fifo\n", "    s3-fifo:small\n", "default: 0.1 (the paper's 10 %)"]
    {
        assert!(printed.contains(said), "{said}");
    }
    let listed: Value =
        serde_json::from_str(&check_success(&pageout(Path::new("."), &["keys", "policy", "--json"])))
            .unwrap();
    let policies: Vec<&Value> =
        listed.as_array().unwrap().iter().filter(|row| row.get("policy").is_some()).collect();
    assert_eq!(policies.len(), 24);
    assert!(policies.iter().all(|row| row["source"].as_str().unwrap().contains("https://")));
    let one = check_success(&pageout(Path::new("."), &["keys", "s3-fifo"]));
    assert!(one.starts_with("policy.s3-fifo\n"), "{one}");
}

#[test]
fn a_bound_past_the_budget_of_memory_is_estimated_and_says_so() {
    let shift = sequence("shift");
    let asked = ["--memory", "5%,20%", "--policy", "lru,opt"];
    let past = [&[shift.as_str(), "--trace-memory", "1MiB"], &asked[..]].concat();
    let printed = check_success(&replay(&past));
    assert!(printed.contains("~ estimated from 5 samples of 8.738% of the pages each"), "{printed}");
    assert!(printed.contains("so it is estimated (~): increase --trace-memory"), "{printed}");
    let bound = printed.lines().find(|line| line.starts_with("opt (bound)")).unwrap();
    assert_eq!(bound.matches("~0.").count(), 2, "{printed}");
    let (exact, estimates) = (json(&[&[shift.as_str()], &asked[..]].concat()), json(&past));
    let cell = |result: &Value, at: usize| result["traces"][0]["cells"][at].clone();
    for at in 0..4 {
        let (exact, estimate) = (cell(&exact, at), cell(&estimates, at));
        let of = |cell: &Value| cell["miss_ratio"].as_f64().unwrap();
        assert_eq!(estimate["is_estimate"] == true, at >= 2, "LRU needs no memory for accesses");
        assert!((of(&exact) - of(&estimate)).abs() < if at < 2 { 1e-12 } else { 0.03 }, "{exact} {estimate}");
    }
    // Samples are drawn as the trace is read again, too.
    let sampled = [&[shift.as_str()], &asked[..], &["--sample", "0.2"]].concat();
    let kept = json(&sampled)["traces"][0]["cells"].clone();
    let read_again =
        json(&[&sampled[..], &["--trace-memory", "64KiB"]].concat())["traces"][0]["cells"].clone();
    assert_eq!(kept, read_again);
}

#[cfg(unix)]
#[test]
fn what_takes_long_is_told_and_estimated_first_and_a_signal_leaves_what_there_is() {
    use std::io::{BufRead, BufReader};
    let shift = sequence("shift");
    // Two thousand sizes: a minute, if nobody ended it.
    let asked = ["replay", &shift, "--memory", "1%..100%/2000", "--policy", "w-tinylfu,lfu", "--jobs", "1"];
    let mut command = std::process::Command::new("env");
    // Whoever runs tests in the background has the signal ignored.
    command.args(["--default-signal=INT", &super::binary()]).args(asked);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut told = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    while !told.contains("  ~0.") && stderr.read_line(&mut told).unwrap() > 0 {}
    assert!(
        told.contains("4,000 simulations over 300,000 accesses, about ") && told.contains(" of memory"),
        "{told}"
    );
    assert!(told.contains("~ estimated from 5 samples of "), "{told}");
    std::thread::sleep(std::time::Duration::from_millis(500));
    let interrupt = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let printed = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains("Not complete: interrupted by SIGINT after "), "{printed}");
    let words: Vec<&str> = printed.split(' ').collect();
    let is_part = |words: &[&str]| words[0].starts_with("0.") && words[1] == "of" && words[2].ends_with('%');
    // One was under way, unless the signal came just between two.
    let parts = words.windows(3).filter(|words| is_part(words)).count();
    assert!(parts <= 1, "{printed}");
    assert_eq!(
        printed.contains("A figure `of` a share refers to that share of the accesses, from the first."),
        parts == 1,
        "{printed}"
    );
    let quiet = ["--memory", "10%", "--policy", "lru,opt", "--exact"];
    let output = replay(&[&[shift.as_str()], &quiet[..]].concat());
    assert!(!text(&output.stderr).contains("simulations over"));
}
