//! Promises of a session: the run of the program, in any steps; frames that agree with counters; errors as answers.

#![allow(clippy::unwrap_used, reason = "a test may panic, and its helpers with it")]

use pageout_play::Session;
use serde_json::{Value, json};

const SCENARIO: &str = r#"
    [[swap]]
    size = "16MiB"
    kind = "zram"
    [[memcg]]
    path = "/web"
    memory.max = "4MiB"
    [[task]]
    name = "reader"
    memcg = "/web"
    object = [{ channel = "file", size = "8MiB", workload = { pattern = "zipf", alpha = 0.8, ops = 20_000 } }]
    [[task]]
    name = "heap"
    memcg = "/web"
    object = [{ channel = "anonymous", size = "2MiB", workload = { pattern = "uniform", ops = 5_000, write_ratio = 0.5 } }]
"#;

fn ask(session: &mut Session, request: Value) -> Value {
    let answer: Value = serde_json::from_str(&session.answer(request.to_string().as_bytes())).unwrap();
    assert!(answer.get("error").is_none(), "{request}: {answer}");
    answer
}

fn error(session: &mut Session, request: Value) -> String {
    let answer: Value = serde_json::from_str(&session.answer(request.to_string().as_bytes())).unwrap();
    answer["error"].as_str().unwrap_or_else(|| panic!("{request}: {answer}")).to_string()
}

fn opened(set: &[&str]) -> Session {
    let mut session = Session::default();
    ask(&mut session, json!({ "open": { "name": "web.toml", "text": SCENARIO, "set": set } }));
    session
}

fn run_to(session: &mut Session, to: u64) -> Value {
    ask(session, json!({ "run": { "to": to } }))
}

/// Pages by type and place, of the group that has the tasks.
fn listed(session: &mut Session, kind: &str, place: &str) -> u64 {
    let frame = ask(session, json!({ "frame": {} }));
    let lists = frame["lists"].as_array().unwrap().iter();
    lists
        .filter(|list| list["kind"] == kind && list["place"] == place)
        .map(|list| list["pages"].as_u64().unwrap())
        .sum()
}

#[test]
fn run_in_slices_has_the_result_of_one_run() {
    let mut whole = opened(&[]);
    assert_eq!(run_to(&mut whole, u64::MAX)["goes_on"], false);
    let mut slices = opened(&[]);
    let mut slice = 1_000_000;
    while run_to(&mut slices, slice)["goes_on"] == true {
        ask(&mut slices, json!("status"));
        ask(&mut slices, json!({ "frame": { "objects": true } }));
        slice += 1_000_000;
    }
    let [whole, slices] = [whole, slices].map(|mut session| ask(&mut session, json!("result")));
    assert!(whole["reclaim"]["count"].as_u64().unwrap() > 20, "{whole}");
    assert_eq!(slices, whole);
}

#[test]
fn batch_scans_pages_and_comes_to_the_end() {
    let mut session = opened(&[]);
    let (mut batches, mut scanned) = (0, 0);
    loop {
        let answer = ask(&mut session, json!("batch"));
        scanned += answer["scanned"].as_i64().unwrap();
        batches += u64::from(answer["scanned"] != 0);
        assert!(answer["scanned"].as_i64().unwrap() <= 64, "{answer}");
        if answer["goes_on"] == false {
            break;
        }
    }
    let status = ask(&mut session, json!("status"));
    let counted = ["pgscan_anon", "pgscan_file"].map(|name| status["vmstat"][name].as_i64().unwrap());
    assert_eq!(scanned, counted.iter().sum::<i64>());
    assert!(batches > 50, "{batches} batches");
}

#[test]
fn frame_has_as_many_pages_as_counters_under_any_policy() {
    for (set, places) in [
        ("kernel.lists=classic", &["active", "inactive"][..]),
        ("kernel.lists=mglru", &["generation"]),
        ("kernel.profile=sieve", &["list"]),
    ] {
        let mut session = opened(&[set]);
        run_to(&mut session, 30_000_000);
        let status = ask(&mut session, json!("status"));
        for kind in ["anon", "file"] {
            let count = |name: &str| status["vmstat"][name].as_u64().unwrap();
            let counted = count(&format!("nr_active_{kind}")) + count(&format!("nr_inactive_{kind}"));
            let found: u64 = places.iter().map(|place| listed(&mut session, kind, place)).sum();
            assert_eq!(found, counted, "{kind} under {set}");
            assert!(counted > 0, "{kind} under {set}");
        }
        let frame = ask(&mut session, json!({ "frame": { "objects": true } }));
        let folios = frame["folios"].as_u64().unwrap() as usize;
        let objects = frame["objects"].as_array().unwrap();
        let pages: u64 = objects.iter().map(|object| object["pages"].as_u64().unwrap()).sum();
        assert_eq!(session.frame().len(), 2 * folios + pages as usize, "{set}");
        let present = session.frame()[2 * folios..].iter().filter(|&&word| word >= 4).count();
        assert_eq!(present, folios, "every folio here is a page of an object, {set}");
    }
}

#[test]
fn write_takes_effect_and_is_printed_as_an_event() {
    let mut session = opened(&[]);
    run_to(&mut session, 20_000_000);
    let path = "/sys/fs/cgroup/web/memory.max";
    let answer = ask(&mut session, json!({ "write": { "path": path, "value": "2MiB" } }));
    let event = answer["toml"].as_str().unwrap().to_string();
    assert_eq!(ask(&mut session, json!("status"))["written"], event);
    run_to(&mut session, u64::MAX);
    let here = ask(&mut session, json!("result"));
    let mut program = Session::default();
    let text = format!("{SCENARIO}\n{event}");
    ask(&mut program, json!({ "open": { "name": "web.toml", "text": text } }));
    run_to(&mut program, u64::MAX);
    let there = ask(&mut program, json!("result"));
    assert_eq!(here["tasks"], there["tasks"]);
    assert_eq!(here["vmstat"], there["vmstat"]);
    let mut without = opened(&[]);
    run_to(&mut without, u64::MAX);
    assert_ne!(ask(&mut without, json!("result"))["vmstat"], there["vmstat"]);
}

#[test]
fn followed_page_has_a_story_by_its_name() {
    let mut session = opened(&[]);
    let text = error(&mut session, json!({ "story": { "width": 80 } }));
    assert!(text.starts_with("story: found no followed page"), "{text}");
    ask(&mut session, json!({ "follow": { "page": "reader/0:3" } }));
    run_to(&mut session, u64::MAX);
    let story = ask(&mut session, json!({ "story": { "width": 80 } }));
    let story = story["text"].as_str().unwrap();
    assert!(story.starts_with("reader/0:3 of /web") && story.contains("missing; read"), "{story}");
    let page = ask(&mut session, json!({ "page": { "object": [0, 3] } }));
    assert_eq!(page["page"], "reader/0:3");
    assert_eq!(ask(&mut session, json!({ "page": { "name": "reader/0:3" } })), page);
}

#[test]
fn story_counts_what_happened_to_its_page() {
    let mut session = opened(&[]);
    ask(&mut session, json!({ "follow": { "page": "heap/0:1" } }));
    run_to(&mut session, u64::MAX);
    let story = ask(&mut session, json!({ "story": { "width": 80 } }));
    assert_eq!((&story["group"], &story["is_anon"]), (&json!("/web"), &json!(true)));
    let [evictions, fills] = ["evictions", "fills"].map(|name| story[name].as_u64().unwrap());
    assert!(evictions > 0, "{story}");
    let is_in_memory = story["place"]["pfn"].is_u64();
    assert_eq!(
        fills,
        evictions + u64::from(is_in_memory),
        "each fill but the last ends in an eviction: {story}"
    );
    // A page that no task touches has no group.
    let mut session = opened(&["task.reader.object.0.workload.ops=1"]);
    ask(&mut session, json!({ "follow": { "page": "reader/0:2047" } }));
    run_to(&mut session, 1_000_000);
    let story = ask(&mut session, json!({ "story": { "width": 80 } }));
    assert_eq!((&story["group"], &story["evictions"]), (&Value::Null, &json!(0)));
    assert!(story["text"].as_str().unwrap().contains("Nothing has happened to it"), "{story}");
}

#[test]
fn runs_without_length_or_with_a_late_start_have_an_end() {
    for until in ["1ns", "1s", "3s", "10000h"] {
        let mut session = Session::default();
        let late = SCENARIO.replacen("[[task]]", "[[task]]\n    start = \"2s\"", 2);
        let text = format!("until = \"{until}\"\n{late}");
        ask(&mut session, json!({ "open": { "name": "web.toml", "text": text } }));
        assert_eq!(ask(&mut session, json!("batch"))["failed"], Value::Null, "{until}");
        let end = run_to(&mut session, u64::MAX);
        assert_eq!((&end["goes_on"], &end["failed"]), (&json!(false), &Value::Null), "{until}");
        assert_eq!(run_to(&mut session, u64::MAX), end, "{until}");
        assert_eq!(ask(&mut session, json!("batch"))["goes_on"], false, "{until}");
        ask(&mut session, json!({ "write": { "path": "/proc/sys/vm/swappiness", "value": "1" } }));
        ask(&mut session, json!("result"));
    }
}

#[test]
fn bad_requests_are_answered_with_the_cause() {
    let mut session = Session::default();
    assert!(error(&mut session, json!("status")).starts_with("request: found no open scenario"));
    let bad = SCENARIO.replace("zipf", "zipff");
    let text = error(&mut session, json!({ "open": { "name": "web.toml", "text": bad } }));
    assert!(text.contains("zipff") && text.contains("web.toml"), "{text}");
    let mut session = opened(&[]);
    let path = "/sys/fs/cgroup/web/memory.max";
    let text = error(&mut session, json!({ "write": { "path": path, "value": "a lot" } }));
    assert!(text.starts_with(path) && text.contains("a lot"), "{text}");
    for request in ["follow", "page"] {
        let name = if request == "page" { json!({ "name": "reader/7:3" }) } else { json!("reader/7:3") };
        let request = json!({ request: if request == "page" { name } else { json!({ "page": name }) } });
        let text = error(&mut session, request);
        assert!(text.contains("reader/7"), "{text}");
    }
    let read = ask(&mut session, json!({ "read": { "paths": ["/proc/nosuch", path] } }));
    assert!(read[0]["error"].is_string() && read[1]["text"] == "4194304\n", "{read}");
    assert_eq!(run_to(&mut session, u64::MAX)["failed"], Value::Null, "the run goes on");
}
