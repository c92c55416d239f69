//! Mechanisms that a recording needs but the simulator does not have. Such a run is skipped with the name of the mechanism, because it
//! shows nothing about the existing mechanisms.

use pageout_workload::Access;

use super::object::{Kind, Object};
use super::recording::Run;

/// What of a run's settings and objects is not modelled; empty where all is.
pub(super) fn mechanisms(run: &Run, objects: &[Object]) -> Vec<String> {
    let has = |kinds: &[Kind]| objects.iter().any(|object| kinds.contains(&object.kind));
    let is_machine = run.is_of_machine();
    let is_read_ahead = objects.iter().any(Object::is_read_ahead);
    let known = [
        (run.second.is_some() && !is_machine, "a second task"),
        (run.cpus != 1 && !is_machine, "more than one CPU"),
        (is_read_ahead && has(&[Kind::Anon]) && !is_machine, "readahead together with anonymous memory"),
        (
            has(&[Kind::Half, Kind::WillNeed]) && is_machine,
            "reads of less or more than a page on a complete machine",
        ),
    ];
    let mut missing: Vec<String> =
        known.iter().filter(|(is_needed, _)| *is_needed).map(|(_, what)| what.to_string()).collect();
    missing.extend(strange_options(run).into_iter().map(|option| format!("the program's option `{option}`")));
    missing
}

/// Returns the kind of a run's accesses that is not modelled.
pub(super) fn mechanisms_of_accesses(
    run: &Run,
    objects: &[Object],
    sequence: &[Access],
) -> Option<&'static str> {
    let written = |is_one: fn(&Object) -> bool| {
        sequence.iter().any(|access| access.is_write() && is_one(&objects[access.object() as usize]))
    };
    let is_out_of_reach = [
        (written(Object::is_read_ahead), "writes to files with readahead"),
        (run.is_of_machine() && written(Object::is_regular_file), "writes to files on a complete machine"),
    ];
    is_out_of_reach.into_iter().find(|(is_needed, _)| *is_needed).map(|(_, what)| what)
}

fn is_count(word: &str) -> bool {
    word.parse::<u64>().is_ok_and(|count| count > 0)
}

/// Options of the recording program that change more than its recording. The following options do not: no TLB flush (`-f 0`), a mark per
/// access (`-m`), N windows (`-w N`), pressure and zones (`-p`). Several passes through its sequence (`-l N`) in memory that starts on the
/// slow node (`-S`) are supported too.
fn strange_options(run: &Run) -> Vec<String> {
    let mut words = run.wl_options.split_whitespace();
    let mut strange = Vec::new();
    while let Some(option) = words.next() {
        match option {
            "-m" | "-p" => {}
            "-S" if run.is_of_balancing() => {}
            "-w" => {
                words.next();
            }
            "-l" if run.is_of_balancing() && words.clone().next().is_some_and(is_count) => {
                words.next();
            }
            "-f" => {
                strange.extend(words.next().filter(|&every| every != "0").map(|every| format!("-f {every}")))
            }
            other => {
                let value = words.clone().next().filter(|word| !word.starts_with('-'));
                if value.is_some() {
                    words.next();
                }
                strange.push(value.map_or(other.to_string(), |value| format!("{other} {value}")));
            }
        }
    }
    strange
}
