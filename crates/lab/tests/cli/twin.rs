//! The twin of a shipped recording: the same way from file to answer as that of one made here.

use std::path::{Path, PathBuf};

use pageout_workload::trace::PgtWriter;
use serde_json::Value;

use super::{check_failure, check_success, pageout};

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/twin").join(name)
}

fn reads() -> PathBuf {
    shipped("reads")
}

/// A copy of the recording of reads in which `from` of its manifest is `to`.
fn changed(from: &str, to: &str) -> tempfile::TempDir {
    changed_of("reads", from, to)
}

/// A copy of a recording in which `from` of its manifest is `to`.
fn changed_of(name: &str, from: &str, to: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let rec = directory.path().join("rec");
    std::fs::create_dir(&rec).unwrap();
    for entry in std::fs::read_dir(shipped(name)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), rec.join(entry.file_name())).unwrap();
    }
    let path = rec.join("recording.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from:?} is not in the manifest");
    std::fs::write(path, text.replacen(from, to, 1)).unwrap();
    directory
}

fn twin(more: &[&str]) -> Value {
    twin_of(&reads(), more)
}

fn twin_of(recording: &Path, more: &[&str]) -> Value {
    let arguments: Vec<&str> =
        ["twin", recording.to_str().unwrap(), "--json"].iter().chain(more).copied().collect();
    serde_json::from_str(&check_success(&pageout(Path::new("."), &arguments))).unwrap()
}

/// By how many percent a figure of the twin is off.
fn off(found: &Value, counter: &str) -> f64 {
    let recorded = found["recorded"][counter].as_f64().unwrap();
    (found["twin"][counter]["value"].as_f64().unwrap() / recorded - 1.0).abs() * 100.0
}

#[test]
fn the_twin_of_recorded_reads_counts_as_the_machine_did() {
    let found = twin(&[]);
    for (counter, percent) in
        [("insertions", 1.0), ("misses", 1.0), ("refaults", 4.0), ("reclaim_calls", 4.0), ("reclaimed", 2.0)]
    {
        assert!(off(&found, counter) <= percent, "{counter}: {found}");
    }
    // Insertions less refaults; the program's list has as many distinct pages, but for those of the interpreter.
    assert_eq!(found["distinct_pages_at_most"], 8719 - 1521);
}

#[test]
fn the_twin_of_a_mapped_file_counts_as_the_machine_did_and_as_it_would_with_more_memory() {
    let found = twin_of(&shipped("mapped"), &["--ask", "memory=20MiB,memory=-10%"]);
    for (counter, percent) in [("insertions", 1.0), ("refaults", 1.0), ("reclaim_calls", 2.0)] {
        assert!(off(&found, counter) <= percent, "{counter}: {found}");
    }
    // The same run on the machine, in 20 MiB instead of 16.
    let real = 12_407.0;
    let answer = &found["asked"][0]["answer"]["insertions"];
    let (least, most) = (answer["least"].as_f64().unwrap(), answer["most"].as_f64().unwrap());
    assert!((answer["value"].as_f64().unwrap() / real - 1.0).abs() < 0.03, "{answer}");
    assert!(least <= real * 1.001 && real <= most, "{answer}");
    assert!(found["asked"][1]["not_answered"].as_str().unwrap().contains("only faults of mapped files"));
    // By faults alone it is not known how often pages are used.
    let directory = changed_of("mapped", "format_version = 1", "format_version = 1");
    std::fs::remove_file(directory.path().join("rec/evictions.csv")).unwrap();
    let alone = twin_of(&directory.path().join("rec"), &["--ask", "memory=20MiB"]);
    let alone = alone["asked"][0]["answer"]["insertions"]["value"].as_f64().unwrap();
    assert!(alone < real * 0.96, "{alone}");
    let rec = directory.path().join("rec");
    for (lines, line) in [("5,9\n", 2), ("9,5\n9,6\n", 3), ("9\n", 2)] {
        std::fs::write(rec.join("evictions.csv"), format!("access,evicted\n{lines}")).unwrap();
        let place = format!("evictions.csv:{line}");
        check_failure(&pageout(&rec, &["twin", "."]), 2, &[&place, "two numbers"]);
    }
}

#[test]
fn the_twin_of_a_database_reads_ahead_what_the_machine_did_in_large_folios() {
    // Nothing is reclaimed, so what comes in is what readahead decides.
    let found = twin_of(&shipped("lookups"), &[]);
    assert!(off(&found, "insertions") < 1.0, "{found}");
    let directory = changed_of("lookups", "format_version = 1", "format_version = 1");
    check_success(&pageout(directory.path(), &["twin", "rec", "--scenario", "twin.toml"]));
    let text = std::fs::read_to_string(directory.path().join("twin.toml")).unwrap();
    assert!(text.contains("file_system = \"ext4\""), "{text}");
    // If no file system is named that has large folios, one is assumed, and the answer says so.
    let overlay = changed_of("lookups", "file_system = \"ext4 ", "file_system = \"overlay ");
    let printed = check_success(&pageout(overlay.path(), &["twin", "rec"]));
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("xfs is assumed; to use another, set `file_system` of this device"), "{printed}");
    let printed = check_success(&pageout(directory.path(), &["twin", "rec"]));
    assert!(!printed.contains("is assumed"), "{printed}");
    // Without them it is another one. Recordings without large folios have none of it.
    let sums = format!("insertions_large = {}", large_insertions("lookups"));
    let single = changed_of("lookups", &sums, "insertions_large = 0");
    let found = twin_of(&single.path().join("rec"), &[]);
    assert!(off(&found, "insertions") > 5.0, "{found}");
}

#[test]
fn twin_of_programs_with_huge_pages_says_what_it_lacks_of_them() {
    let told = |directory: &tempfile::TempDir| {
        let printed = check_success(&pageout(directory.path(), &["twin", "rec"]));
        printed.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let lack = "neither their faults, splits and charges of 512 pages, nor copies after fork, khugepaged and compaction";
    let few = changed("[group.stat_end]\n", "[group.stat_end]\nanon_thp = 4194304\n");
    let printed = told(&few);
    assert!(
        printed.contains("4 MiB of huge pages in memory of programs") && printed.contains(lack),
        "{printed}"
    );
    let always = changed("transparent_hugepage = \"madvise\"", "transparent_hugepage = \"always\"");
    let printed = told(&always);
    assert!(printed.contains("transparent_hugepage = always") && printed.contains(lack), "{printed}");
    let none = changed("format_version = 1", "format_version = 1");
    assert!(!told(&none).contains("huge pages"), "{}", told(&none));
}

fn large_insertions(name: &str) -> u64 {
    let text = std::fs::read_to_string(shipped(name).join("recording.toml")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("insertions_large = ")).unwrap();
    line.parse().unwrap()
}

#[test]
fn the_twin_of_a_file_that_comes_and_goes_counts_as_the_machine_did() {
    let found = twin_of(&shipped("journal"), &[]);
    for (counter, percent) in [("insertions", 1.0), ("refaults", 2.0), ("reclaim_calls", 5.0)] {
        assert!(off(&found, counter) <= percent, "{counter}: {found}");
    }
    let directory = changed_of("journal", "format_version = 1", "format_version = 1");
    std::fs::remove_file(directory.path().join("rec/file_calls.csv")).unwrap();
    let kept = twin_of(&directory.path().join("rec"), &[]);
    assert!(off(&kept, "insertions") > 30.0, "{kept}");
}

#[test]
fn memory_of_programs_comes_and_goes_in_the_twin_where_it_did() {
    let found = twin_of(&shipped("tide"), &[]);
    for (counter, percent) in [("insertions", 1.0), ("refaults", 2.0), ("reclaim_calls", 5.0)] {
        assert!(off(&found, counter) <= percent, "{counter}: {found}");
    }
    let text = check_success(&pageout(&shipped("tide"), &["twin", "."]));
    assert!(text.contains("according to reclaim calls"), "{text}");
    check_failure(
        &pageout(&shipped("tide"), &["twin", ".", "--ask", "memory=9MiB"]),
        2,
        &["the group's programs and the kernel", "the OOM killer would end it"],
    );
    // Where it is not known when it came and went, its mean is all there is.
    let directory = changed_of("tide", "format_version = 1", "format_version = 1");
    let rec = directory.path().join("rec");
    std::fs::remove_file(rec.join("rooms.csv")).unwrap();
    assert!(off(&twin_of(&rec, &[]), "insertions") > 2.0);
    // And of one that says little nothing is said.
    let samples = std::fs::read_to_string(rec.join("samples.csv")).unwrap();
    let heading = samples.lines().next().unwrap();
    let sample = |at: u64, programs: u64| format!("{at},20000000,1000000,{programs},1000000,0,0,0,0,\n");
    let swings: String = (0..6).map(|at| sample(at, 1_000_000 + at % 2 * 15_000_000)).collect();
    std::fs::write(rec.join("samples.csv"), format!("{heading}\n{swings}")).unwrap();
    let found = twin_of(&rec, &["--ask", "memory=+10%"]);
    assert!(found["twin"].is_null(), "{found}");
    assert!(
        found["asked"][0]["not_answered"].as_str().unwrap().contains("changed at unknown times"),
        "{found}"
    );
    for (lines, line) in [("5\n", 2), ("5,9\n5,9\n", 3), ("5,x\n", 2)] {
        std::fs::write(rec.join("rooms.csv"), format!("access,pages\n{lines}")).unwrap();
        let place = format!("rooms.csv:{line}");
        check_failure(&pageout(&rec, &["twin", "."]), 2, &[&place, "two numbers"]);
    }
    // If others evicted pages, too, events do not say what files had.
    let directory = changed_of("tide", "evictions = ", "evictions = 9");
    let text = check_success(&pageout(directory.path(), &["twin", "rec"]));
    assert!(text.contains("the twin keeps this amount constant"), "{text}");
}

#[test]
fn twin_off_by_more_than_a_tenth_answers_nothing() {
    // Any row does: pages that came in, and refaults alone.
    for (from, to, row) in [
        ("insertions = 8719", "insertions = 18719", "pages brought in: twin 8,698, recorded 18,719, off by"),
        (
            "workingset_refault_file = 1521",
            "workingset_refault_file = 721",
            "refaults: twin 1,495, recorded 721, off by 107.35%",
        ),
    ] {
        let directory = changed(from, to);
        let text = check_success(&pageout(directory.path(), &["twin", "rec", "--ask", "memory=+10%"]));
        let refusal = format!(
            "memory=+10%: not answered, as the twin does not reproduce its recording at this memory: {row}"
        );
        assert!(text.contains(&refusal) && text.contains("not known"), "{text}");
        let found = twin_of(&directory.path().join("rec"), &["--ask", "memory=+10%"]);
        assert!(found["asked"][0]["answer"].is_null(), "{found}");
    }
    // A handful of pages is what a CPU charges at once.
    let directory = changed("workingset_refault_file = 1521", "workingset_refault_file = 1550");
    let text = check_success(&pageout(directory.path(), &["twin", "rec", "--ask", "memory=+10%"]));
    assert!(!text.contains("not answered"), "{text}");
}

#[test]
fn answers_of_a_twin_outside_its_range_are_marked() {
    let text = check_success(&pageout(&reads(), &["twin", ".", "--ask", "memory=+10%"]));
    assert!(text.contains("\nmemory=+10% *") && text.contains("\n* Recorded figures outside"), "{text}");
    assert!(text.contains("pages brought in by 0.24%"), "{text}");
    let found = twin(&["--ask", "memory=+10%"]);
    assert_eq!(found["asked"][0]["marked"], true, "{found}");
    assert_eq!(found["off"][0]["row"], "pages brought in", "{found}");
}

#[test]
fn recorded_time_stands_beside_the_twins_and_refuses_times_alone() {
    let found = twin(&[]);
    assert_eq!(found["recorded"]["runtime_ns"], 2_259_424_999u64);
    let directory = changed("duration_ns = 2259424999", "duration_ns = 1259424999");
    let manifest = directory.path().join("rec/recording.toml");
    // Reads that took longer than all of it: what is left is what the twin's disk needs.
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("read_latency_ns = ", "read_latency_ns = 9")).unwrap();
    let text = check_success(&pageout(directory.path(), &["twin", "rec", "--ask", "memory=+10%"]));
    assert!(text.contains("\ntime ") && text.contains("1.26 s"), "{text}");
    assert!(text.contains("Times are not answered, as time: twin"), "{text}");
    assert!(!text.contains("memory=+10%: not answered"), "{text}");
}

#[test]
fn figure_without_its_events_is_unknown_and_names_them() {
    let directory = changed("    \"filemap:mm_filemap_add_to_page_cache\",\n", "");
    let text = check_success(&pageout(directory.path(), &["twin", "rec"]));
    assert!(text.contains("pages brought in: unknown: no mm_filemap_add_to_page_cache events"), "{text}");
    let found = twin_of(&directory.path().join("rec"), &[]);
    assert_eq!(found["unknown"]["insertions"][0], "no mm_filemap_add_to_page_cache events");
    assert!(found["recorded"]["insertions"].is_null());
    // Reads of several pages do not say which of these were missing.
    let directory = changed("requests = 60452", "requests = 6045");
    let text = check_success(&pageout(directory.path(), &["twin", "rec"]));
    assert!(text.contains("accesses that missed: unknown: reads ask for several pages"), "{text}");
}

#[test]
fn floor_is_by_first_insertions_whatever_was_forgotten() {
    // A kernel that forgot most of what it evicted counts few refaults.
    for refaults in ["4633", "633"] {
        let to = format!("workingset_refault_file = {refaults}");
        let directory = changed_of("tide", "workingset_refault_file = 4633", &to);
        let text = check_success(&pageout(directory.path(), &["twin", "rec"]));
        let says =
            "By first insertions: 11,050 pages came in, 4,633 of them again. So 6,417 distinct pages did";
        assert!(text.contains(says), "{text}");
    }
    assert_eq!(twin_of(&shipped("tide"), &[])["distinct_pages"], 6417);
    // Without first insertions refaults are a bound, and no more.
    let found = twin(&[]);
    assert!(found["distinct_pages"].is_null() && found["distinct_pages_at_most"] == 7198, "{found}");
}

#[test]
fn counters_of_the_first_version_make_no_floor() {
    let directory = changed("accesses = 61057", "accesses = 0");
    let manifest = directory.path().join("rec/recording.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let events = text.find("events = [").unwrap();
    let end = events + text[events..].find("\n]").unwrap() + 2;
    std::fs::write(&manifest, format!("{}events = []{}", &text[..events], &text[end..])).unwrap();
    for name in ["accesses.pgt", "before.pgt"] {
        let mut bytes = Vec::new();
        PgtWriter::new(&mut bytes, 4096, true).unwrap().finish(&[], None, 0).unwrap();
        std::fs::write(directory.path().join("rec").join(name), bytes).unwrap();
    }
    let text = check_success(&pageout(directory.path(), &["twin", "rec"]));
    assert!(text.contains("unknown: memory.stat of cgroup v1 counts a large folio as one charge"), "{text}");
    assert!(!text.contains("distinct pages did"), "{text}");
}

#[test]
fn recording_without_rooms_is_reported() {
    let directory = changed_of("tide", "format_version = 1", "format_version = 1");
    std::fs::remove_file(directory.path().join("rec/rooms.csv")).unwrap();
    let text = check_success(&pageout(directory.path(), &["twin", "rec"]));
    assert!(text.contains("(rooms.csv) is missing"), "{text}");
    let text = check_success(&pageout(&shipped("tide"), &["twin", "."]));
    assert!(!text.contains("rooms.csv"), "{text}");
}

#[test]
fn swap_on_shows_both_ends() {
    for name in ["reads", "tide"] {
        let found = twin_of(&shipped(name), &["--ask", "swap=on"]);
        let of = |what: &str| found["asked"][0]["answer"]["insertions"][what].as_u64().unwrap();
        assert!(of("all_in_swap") < of("none_in_swap") * 97 / 100, "{name}: {found}");
    }
    let text = check_success(&pageout(&reads(), &["twin", ".", "--ask", "swap=on"]));
    assert!(text.contains("pages come in with none of programs' memory in swap"), "{text}");
}

#[test]
fn readers_of_the_same_pages_go_in_step_on_one_cpu_or_are_apart() {
    let found = twin(&["--ask", "readers=2"]);
    let of = |what: &str| found["asked"][0]["answer"]["insertions"][what].as_u64().unwrap();
    let alone = found["twin"]["insertions"]["value"].as_u64().unwrap();
    // On CPUs of their own the first uses of a page are one; who starts late reads nearly all again.
    assert!(alone < of("least") && of("least") < of("value") && of("value") < of("most"), "{found}");
}

#[test]
fn what_swap_could_take_of_programs_is_a_range() {
    let directory = changed("[kernel.swap]", "[kernel.swap]\n\"/dev/zram0\" = 1073741824");
    let found =
        twin_of(&directory.path().join("rec"), &["--ask", "memory=-15%,swap=off+memory=-15%,swap=off"]);
    let of = |at: usize, what: &str| found["asked"][at]["answer"]["insertions"][what].as_u64().unwrap();
    // From nothing in swap to all of it: as much memory more for files.
    assert_eq!(of(0, "most"), of(1, "most"));
    assert!(of(0, "least") < of(1, "least") * 95 / 100, "{found}");
    assert_eq!(of(2, "value"), found["twin"]["insertions"]["value"].as_u64().unwrap());
    let text = check_success(&pageout(directory.path(), &["twin", "rec"]));
    assert!(text.contains("such answers are a range") && text.contains("first touches"), "{text}");
}

#[test]
fn what_if_is_answered_where_the_recording_can_say() {
    let found = twin(&["--ask", "memory=-15%,memory=+50%,zswap=on,policy=mglru@6.12"]);
    let now = found["twin"]["insertions"]["value"].as_u64().unwrap();
    let asked = found["asked"].as_array().unwrap();
    let answer = |at: usize| asked[at]["answer"]["insertions"]["value"].as_u64();
    assert!(answer(0).unwrap() > now * 21 / 20, "{asked:?}");
    assert!(
        answer(1).unwrap() < now * 19 / 20
            && answer(1).unwrap() >= found["distinct_pages_at_most"].as_u64().unwrap(),
        "{asked:?}"
    );
    assert!(asked[2]["not_answered"].as_str().unwrap().contains("without swap"), "{asked:?}");
    assert!(answer(3).is_some());
    let text = check_success(&pageout(&reads(), &["twin", ".", "--ask", "zswap=on"]));
    assert!(text.contains("zswap=on: not answered, as without swap"), "{text}");
}

#[test]
fn a_question_that_makes_no_sense_is_refused_with_what_would() {
    let refused =
        |ask: &str, parts: &[&str]| check_failure(&pageout(&reads(), &["twin", ".", "--ask", ask]), 2, parts);
    refused("memry=-25%", &["memry=-25%", "did you mean `memory`"]);
    refused("memory=-90%", &["of the group's programs and the kernel"]);
    refused("memory=lots", &["memory=lots"]);
    refused("memory", &["KEY=VALUE"]);
    refused("readers=0", &["1 to 1000"]);
    refused("policy=mglru@1.0", &["mglru@1.0"]);
    refused("device=tape", &["tape"]);
}

#[test]
fn a_recording_with_losses_needs_a_word() {
    let directory = changed("lost_events = 0", "lost_events = 5");
    check_failure(
        &pageout(directory.path(), &["twin", "rec"]),
        2,
        &["the recording lost 5 events", "--allow-loss"],
    );
    let text = check_success(&pageout(directory.path(), &["twin", "rec", "--allow-loss"]));
    assert!(text.contains("5 events lost"), "{text}");
}

#[test]
fn what_is_no_whole_recording_is_told_apart() {
    let directory = changed("format_version = 1", "format_version = 9");
    check_failure(&pageout(directory.path(), &["twin", "rec"]), 2, &["found format_version 9"]);

    let directory = changed("accesses = 61057", "accesses = 61056");
    check_failure(&pageout(directory.path(), &["twin", "rec"]), 2, &["they belong to different recordings"]);

    let directory = changed("page_size = 4096", "page_size = 16384");
    check_failure(
        &pageout(directory.path(), &["twin", "rec"]),
        2,
        &["found pages of 16 KiB", "expected 4 KiB"],
    );
    let directory = changed("sample = 1", "sample = 0");
    check_failure(
        &pageout(directory.path(), &["twin", "rec"]),
        2,
        &["recording.sample: found 0", "power of two"],
    );

    let directory = changed("format_version = 1", "format_version = 1");
    let rec = directory.path().join("rec");
    let samples = std::fs::read_to_string(rec.join("samples.csv")).unwrap();
    for (left, what) in [(20, "no sample"), (samples.len() - 10, "ten numbers")] {
        std::fs::write(rec.join("samples.csv"), &samples[..left]).unwrap();
        check_failure(&pageout(directory.path(), &["twin", "rec"]), 2, &["samples.csv", what]);
    }
    std::fs::remove_file(rec.join("samples.csv")).unwrap();
    check_failure(&pageout(directory.path(), &["twin", "rec"]), 2, &["samples.csv", "not complete"]);
    std::fs::write(rec.join("samples.csv"), samples).unwrap();
    let whole = std::fs::read(rec.join("accesses.pgt")).unwrap();
    for length in [0, 20, 1000, whole.len() - 1] {
        std::fs::write(rec.join("accesses.pgt"), &whole[..length]).unwrap();
        check_failure(&pageout(directory.path(), &["twin", "rec"]), 2, &["accesses.pgt"]);
    }
    std::fs::remove_file(rec.join("recording.toml")).unwrap();
    std::fs::rename(rec.join("accesses.pgt"), rec.join("accesses.pgt.part")).unwrap();
    check_failure(&pageout(directory.path(), &["twin", "rec"]), 2, &["incomplete recording"]);
    check_failure(&pageout(directory.path(), &["twin", "nothing"]), 2, &["no such folder"]);
}

#[test]
fn the_twin_is_a_scenario_to_keep() {
    let directory = changed("format_version = 1", "format_version = 1");
    check_success(&pageout(directory.path(), &["twin", "rec", "--scenario", "twin.toml"]));
    let text = std::fs::read_to_string(directory.path().join("twin.toml")).unwrap();
    // However many files there are: they stay in the recording.
    assert!(text.lines().count() < 60 && !text.contains("file = ["), "{text}");
    assert!(text.contains("recorded = \"rec/accesses.pgt\""), "{text}");
    check_success(&pageout(directory.path(), &["run", "twin.toml"]));
    // Paths start where the scenario is, from wherever it is run: of a trace that is played as recorded, and of one with something put in.
    let elsewhere = tempfile::tempdir().unwrap();
    check_success(&pageout(elsewhere.path(), &["run", directory.path().join("twin.toml").to_str().unwrap()]));
    let woven = changed_of("tide", "format_version = 1", "format_version = 1");
    check_success(&pageout(woven.path(), &["twin", "rec", "--scenario", "twin.toml"]));
    check_success(&pageout(elsewhere.path(), &["run", woven.path().join("twin.toml").to_str().unwrap()]));
    let printed = check_success(&pageout(directory.path(), &["twin", "rec", "--scenario", "-"]));
    assert!(printed.contains("[[task]]"));
}

#[test]
fn a_task_of_a_recording_has_its_objects_and_nothing_else() {
    let directory = changed("format_version = 1", "format_version = 1");
    let scenario = |task: &str| {
        let text = format!("[[task]]\nname = \"t\"\n{task}\n");
        std::fs::write(directory.path().join("s.toml"), text).unwrap();
        pageout(directory.path(), &["run", "s.toml", "--json"])
    };
    let run: Value =
        serde_json::from_str(&check_success(&scenario("recorded = \"rec/accesses.pgt\""))).unwrap();
    assert!(run.to_string().contains("\"t\""));
    check_failure(
        &scenario("recorded = \"rec/other.pgt\""),
        2,
        &["s.toml:3", "expected accesses.pgt or before.pgt"],
    );
    check_failure(&scenario("recorded = \"none/accesses.pgt\""), 2, &["s.toml:3", "no such folder"]);
    let both = "recorded = \"rec/accesses.pgt\"\nobject = [{ channel = \"anonymous\", size = \"1MiB\" }]";
    check_failure(&scenario(both), 2, &["s.toml:3", "sets the objects of the task"]);
}

#[test]
fn files_end_where_they_did_in_the_recording() {
    let directory = changed("format_version = 1", "format_version = 1");
    let rec = directory.path().join("rec");
    let calls = |lines: &str| {
        let text = format!("access,object,call,first,end\n{lines}");
        std::fs::write(rec.join("file_calls.csv"), text).unwrap();
        pageout(directory.path(), &["twin", "rec", "--json"])
    };
    let insertions = |lines: &str| {
        let found: Value = serde_json::from_str(&check_success(&calls(lines))).unwrap();
        found["twin"]["insertions"]["value"].as_u64().unwrap()
    };
    let without = insertions("");
    // The object that is read is the one with most pages, and what goes has to come in again.
    let manifest = std::fs::read_to_string(rec.join("recording.toml")).unwrap();
    let objects: Vec<usize> = (0..manifest.matches("object = ").count()).collect();
    let deleted: String = objects.iter().map(|object| format!("50000,{object},delete\n")).collect();
    let truncated: String = objects.iter().map(|object| format!("50000,{object},truncate,0\n")).collect();
    assert!(insertions(&deleted) > without + 1000);
    assert!(insertions(&truncated) > without + 1000);
    // What others took comes back as well, and is known again.
    let manifest = std::fs::read_to_string(rec.join("recording.toml")).unwrap();
    let told = manifest.replace("[sums]", "[sums]\ntaken = 2000");
    std::fs::write(rec.join("recording.toml"), told).unwrap();
    let taken: String = objects.iter().map(|object| format!("50000,{object},evict,0,99999\n")).collect();
    let found: Value = serde_json::from_str(&check_success(&calls(&taken))).unwrap();
    assert!(found["twin"]["insertions"]["value"].as_u64().unwrap() > without + 1000);
    assert!(found["twin"]["refaults"]["value"].as_u64().unwrap() > 1521 + 1000, "{found}");
    assert!(found["limits"].to_string().contains("2,000 pages of the group reclaimed by kswapd or DAMON"));
    check_failure(&calls("7,0,sync\n"), 2, &["file_calls.csv", "line 2", "`7,0,sync`"]);
    check_failure(&calls("7,0,fsync\n6,0,fsync\n"), 2, &["line 3", "lower than on the line above"]);
    check_failure(&calls("7,9999,delete\n"), 2, &["file_calls.csv", "unknown object 9999"]);
}

#[test]
fn counters_alone_give_the_floor_and_say_what_they_never_give() {
    let directory = changed("accesses = 61057", "accesses = 0");
    for name in ["accesses.pgt", "before.pgt"] {
        let mut bytes = Vec::new();
        PgtWriter::new(&mut bytes, 4096, true).unwrap().finish(&[], None, 0).unwrap();
        std::fs::write(directory.path().join("rec").join(name), bytes).unwrap();
    }
    let text = check_success(&pageout(directory.path(), &["twin", "rec", "--ask", "memory=-10%"]));
    for part in ["7,198 distinct pages", "Never identified", "Identified", "memory=-10%: not answered"] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    check_failure(
        &pageout(directory.path(), &["twin", "rec", "--scenario", "x.toml"]),
        2,
        &["a recording of counters only has no accesses"],
    );
}

#[test]
fn repeats_say_how_much_the_machine_differs_from_itself() {
    let text = check_success(&pageout(&reads(), &["twin", ".", "."]));
    assert!(text.contains("repeats") && text.contains("8,719 to 8,719"), "{text}");
}

#[test]
fn less_memory_than_was_ever_short_is_unknown_if_programs_varied() {
    let directory = changed("reclaim_calls = 69", "reclaim_calls = 0");
    let rec = directory.path().join("rec");
    let samples = |swing: u64| {
        let sample = |at: u64, programs: u64| format!("{at},15000000,1000000,{programs},1000000,0,0,0,0,\n");
        let lines: String = (0..6).map(|at| sample(at, 3_000_000 + at % 2 * swing)).collect();
        let text = std::fs::read_to_string(rec.join("samples.csv")).unwrap();
        std::fs::write(rec.join("samples.csv"), format!("{}\n{lines}", text.lines().next().unwrap()))
            .unwrap();
        let found = twin_of(&rec, &["--ask", "memory=-10%,memory=+10%"]);
        let why = |at: usize| found["asked"][at]["not_answered"].as_str().unwrap_or_default().to_string();
        (why(0), why(1))
    };
    let (less, more) = samples(8_000_000);
    assert!(less.contains("never short of memory") && !more.contains("never short"), "{less}; {more}");
    let (less, _) = samples(500_000);
    assert!(!less.contains("never short"), "{less}");
}

#[test]
fn predictions_are_compared_with_recordings_at_other_limits() {
    let own = reads();
    let own = own.to_str().unwrap();
    let limit = |bytes: u64| changed("limit_bytes = 25165824", &format!("limit_bytes = {bytes}"));
    // The same figures at less memory: the twin is wrong about that machine, and its answers say by how much.
    let less = limit(22_650_880);
    let less = less.path().join("rec");
    let less = less.to_str().unwrap();
    let two = twin(&["--against", own]);
    assert_eq!(
        (&two["errors"], two["against"][0]["kind"].as_str()),
        (&serde_json::json!([]), Some("as recorded"))
    );
    let ask = "memory=-15%,memory=+10%";
    let found = twin(&["--against", own, less, "--ask", ask]);
    let alone = twin(&["--ask", ask]);
    let error = |kind: &str| {
        let errors = found["errors"].as_array().unwrap().iter();
        let mut of = errors.filter(|of| of["row"] == "pages brought in" && of["kind"] == kind);
        of.next().map(|of| (of["comparisons"].as_u64().unwrap(), of["worst_percent"].as_f64().unwrap()))
    };
    let (count, worst) = error("less memory").unwrap();
    assert!(count == 1 && worst > 10.0, "{found}");
    assert_eq!(error("as recorded").map(|(count, _)| count), Some(2));
    assert_eq!(error("more memory"), None);
    let of = |found: &Value, at: usize, what: &str| {
        found["asked"][at]["answer"]["insertions"][what].as_f64().unwrap()
    };
    assert_eq!(of(&found, 0, "value"), of(&alone, 0, "value"));
    let least = of(&found, 0, "value") / (1.0 + worst / 100.0);
    assert!((of(&found, 0, "least") - least).abs() <= 1.0, "{found}");
    assert!(of(&found, 0, "most") > of(&alone, 0, "most"), "{found}");
    assert_eq!(of(&found, 1, "least"), of(&alone, 1, "least"), "that kind was not checked");
    let told = check_success(&pageout(&reads(), &["twin", ".", "--against", ".", less, "--ask", ask]));
    for part in
        ["against ", "less memory", "predicted", "largest error", "Ranges of answers for less memory are"]
    {
        assert!(told.contains(part), "{part:?} is not in:\n{told}");
    }
    let told = check_success(&pageout(&reads(), &["twin", ".", "--against", "."]));
    assert!(told.contains("error: stated from three compared recordings on; missing 1 recording"), "{told}");
}

#[test]
fn recordings_that_cannot_be_compared_say_why() {
    let of = |command: &str| {
        changed("target = \"a command\"", &format!("target = \"a command\"\ncommand = \"{command}\""))
    };
    let (one, other) = (of("one"), of("another"));
    let rec = other.path().join("rec");
    let arguments = ["twin", "rec", "--against", rec.to_str().unwrap()];
    let expected = ["--against", "found a recording of `another`, expected one of `one`"];
    check_failure(&pageout(one.path(), &arguments), 2, &expected);
    check_failure(&pageout(&reads(), &["twin", ".", "--against", "none"]), 2, &["no such folder"]);
    // A limit that the twin can't have is a row, and no failure.
    let tiny = changed("limit_bytes = 25165824", "limit_bytes = 2097152");
    let rec = tiny.path().join("rec");
    let told = check_success(&pageout(&reads(), &["twin", ".", "--against", rec.to_str().unwrap()]));
    assert!(told.contains("not answered, as 2 MiB is less than the 3.23 MiB"), "{told}");
    // Nor is a twin that does not reproduce its own recording compared.
    let wrong = changed("insertions = 8719", "insertions = 18719");
    let own = reads();
    let arguments = ["twin", "rec", "--against", own.to_str().unwrap()];
    let told = check_success(&pageout(wrong.path(), &arguments));
    assert!(told.contains("not answered, as the twin does not reproduce its recording"), "{told}");
}

#[test]
fn the_page_has_the_twin_beside_the_machine_and_the_curve() {
    let directory = tempfile::tempdir().unwrap();
    let reads = reads();
    let arguments = ["twin", reads.to_str().unwrap(), "--ask", "memory=+50%", "--report", "twin.html"];
    check_success(&pageout(directory.path(), &arguments));
    let page = std::fs::read_to_string(directory.path().join("twin.html")).unwrap();
    for part in ["The twin compared with the machine", "you are here", "What if", "\"asked\"", "\"bands\":["]
    {
        assert!(page.contains(part), "{part:?} is not on the page");
    }
}
