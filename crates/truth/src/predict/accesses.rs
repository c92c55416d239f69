//! The accesses of tasks as files, to repeat them on a kernel.
//!
//! | a task with | becomes | made by |
//! |---|---|---|
//! | files alone | `TASK.iolog`, version 2 of fio's I/O log | `fio --read_iolog` |
//! | anonymous memory, too | `TASK.u32`, words as in recordings: bit 31 writes, 30 to 28 object, 27 to 0 page | a custom program |
//!
//! They are the accesses of the first loop of a task's first copy.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use pageout_sim::scenario::{Channel, PAGE_SIZE, Scenario, Task};
use pageout_workload::{Access, AccessStream};

use super::check::path_of;
use crate::error::Error;

/// Accesses taken from a stream at a time.
const CHUNK: usize = 4096;

/// Writes a file for each task: their names, in the order of tasks. Errors: an access can't be made, a file can't be written.
pub(super) fn write(directory: &Path, scenario: &Scenario) -> Result<Vec<String>, Error> {
    let cannot = Error::Write;
    fs::create_dir_all(directory).map_err(cannot)?;
    let mut names = Vec::new();
    for (index, task) in scenario.task.iter().enumerate() {
        let name = name_of(task);
        let accesses = scenario
            .accesses(index)
            .map_err(|problem| Error::asked(format!("{}: {}", problem.key, problem.message)))?;
        let file = File::create(directory.join(&name)).map_err(cannot)?;
        let mut out = BufWriter::new(file);
        if is_of_files(task) {
            write_iolog(&mut out, scenario, task, accesses)?;
        } else {
            each(accesses, |access| out.write_all(&word(access).to_le_bytes()))?;
        }
        out.flush().map_err(cannot)?;
        names.push(name);
    }
    Ok(names)
}

/// The name of a task's file.
pub(super) fn name_of(task: &Task) -> String {
    format!("{}.{}", task.name, if is_of_files(task) { "iolog" } else { "u32" })
}

/// Returns true if fio can make all of a task's accesses.
pub(super) fn is_of_files(task: &Task) -> bool {
    task.object.iter().all(|object| object.channel != Channel::Anonymous)
}

fn each(
    mut accesses: Box<dyn AccessStream>,
    mut take: impl FnMut(Access) -> std::io::Result<()>,
) -> Result<(), Error> {
    let mut chunk = Vec::new();
    loop {
        chunk.clear();
        let read = accesses.fill(&mut chunk, CHUNK).context("a trace ends before its end")?;
        if read == 0 {
            return Ok(());
        }
        chunk.drain(..).try_for_each(&mut take).map_err(Error::Write)?;
    }
}

fn write_iolog(
    out: &mut impl Write,
    scenario: &Scenario,
    task: &Task,
    accesses: Box<dyn AccessStream>,
) -> Result<(), Error> {
    let paths: Vec<String> = (0..task.object.len()).map(|at| path_of(scenario, task, at)).collect();
    let told = |out: &mut dyn Write, action: &str| {
        let mut once: Vec<&String> = paths.iter().collect();
        once.sort();
        once.dedup();
        once.into_iter().try_for_each(|path| writeln!(out, "{path} {action}"))
    };
    writeln!(out, "fio version 2 iolog").map_err(Error::Write)?;
    told(out, "add").and_then(|()| told(out, "open")).map_err(Error::Write)?;
    each(accesses, |access| {
        let at = access.object() as usize;
        let bytes = task.object[at].request_pages() * PAGE_SIZE;
        let what = if access.is_write() { "write" } else { "read" };
        writeln!(out, "{} {what} {} {bytes}", paths[at], access.page() * bytes)
    })?;
    told(out, "close").map_err(Error::Write)
}

fn word(access: Access) -> u32 {
    u32::from(access.is_write()) << 31 | (access.object() & 7) << 28 | access.page() as u32 & 0x0fff_ffff
}
