//! Which mechanisms a recording needs that the simulator hasn't got yet. Such a run is skipped, and the mechanism named: the run
//! says nothing about the mechanisms that exist.

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
        (is_read_ahead && has(&[Kind::Anon]) && !is_machine, "readahead beside anonymous memory"),
        (
            has(&[Kind::Half, Kind::WillNeed]) && is_machine,
            "calls for less or more than a page on a whole machine",
        ),
    ];
    let mut missing: Vec<String> =
        known.iter().filter(|(is_needed, _)| *is_needed).map(|(_, what)| what.to_string()).collect();
    missing.extend(strange_options(run).into_iter().map(|option| format!("the program's option `{option}`")));
    missing
}

/// What of a run's accesses is not modelled.
pub(super) fn mechanisms_of_accesses(
    run: &Run,
    objects: &[Object],
    sequence: &[Access],
) -> Option<&'static str> {
    let written = |is_one: fn(&Object) -> bool| {
        sequence.iter().any(|access| access.is_write() && is_one(&objects[access.object() as usize]))
    };
    let is_out_of_reach = [
        (written(Object::is_read_ahead), "writes to files that are read ahead"),
        (run.is_of_machine() && written(Object::is_regular_file), "writes to files on a whole machine"),
    ];
    is_out_of_reach.into_iter().find(|(is_needed, _)| *is_needed).map(|(_, what)| what)
}

fn is_count(word: &str) -> bool {
    word.parse::<u64>().is_ok_and(|count| count > 0)
}

/// Options of the recording program that change more than what it notes: without its flush of translations (`-f 0`), with a
/// mark an access (`-m`), with so many windows (`-w N`), with pressure and zones (`-p`), a run is played as any other. So it is where it
/// goes through its sequence several times (`-l N`) in memory that begins on the slow node (`-S`).
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
