//! A whole machine as a snapshot found it: memory of others on the recorded frames and lists, and the recorded rest free.
//!
//! Others' pages are brought in one by one, in the order of their lists, from frames laid ready for them. Then the lists become the recorded
//! ones, what waits in add batches comes, and the free memory is what was recorded; what is in nobody's hands then is the kernel's. What
//! pages hold follows from how many there are: those that a program fills before it begins came last.

use anyhow::anyhow;
use pageout_engine::{
    Access, Advice, Bdi, Compressibility, CpuId, Engine, FileKind, FileSpec, FoundFolio, FreeBlocks,
    FreeOfCpu, MemcgId, MigrateType, NodeId, ObjectId, Pfn, Served, TaskId, Touched, ZoneType,
};

use super::super::found::{Found, Holds, Place};
use super::Unplayable;
use super::machine::INCOMPRESSIBLE;
use super::serve::serve_to;

const NODE: NodeId = NodeId(0);
/// Frames of the kernel's, by type, from which it takes on each CPU what others' pages and stacks need: what is left over is its own again.
const KERNEL_FRAMES: [(MigrateType, usize); 2] =
    [(MigrateType::Unmovable, 128), (MigrateType::Reclaimable, 32)];

/// `program`: the task that begins. `own`: what programs have beside their objects, in pages, and what that comes to.
pub(super) fn restore(
    engine: &mut Engine,
    found: &Found,
    program: TaskId,
    own: &[(u64, Compressibility)],
) -> Result<(), Unplayable> {
    let zone = engine.figures().zones().next().expect("a machine has memory").zone;
    lay_ready(engine, zone, found)?;
    if found.has_tiny_slabs() {
        engine.use_tiny_slabs();
    }
    let mut others = Others::new(engine, found, own)?;
    let (batched, listed): (Vec<_>, Vec<_>) =
        found.lists.iter().partition(|list| matches!(list.place, Place::AddBatch(_)));
    let folios: Vec<_> = listed.iter().flat_map(|list| &list.folios).copied().collect();
    let last_anon = folios.iter().rposition(|&(_, holds)| holds == Holds::Anon);
    for (at, &folio) in folios.iter().enumerate() {
        if Some(at) == last_anon {
            // The program that begins has run before: it has its stack and its upper page tables.
            let touched = engine.map_anon(program, 1, Advice::Normal)?;
            touch(engine, program, Access::new(touched, 0, true), folio.0.pfn)?;
        } else {
            others.bring_in(engine, 0, folio)?;
        }
    }
    engine.set_lists(MemcgId::ROOT, NODE, &found.lruvec())?;
    for list in batched {
        let Place::AddBatch(cpu) = list.place else { continue };
        for &folio in &list.folios {
            others.bring_in(engine, cpu, folio)?;
        }
    }
    engine.set_free_memory(NODE, zone, &found.free)?;
    Ok(())
}

/// Free memory as recorded, with the frames of others' pages before everything else: on the CPU that brings them in.
fn lay_ready(engine: &mut Engine, zone: ZoneType, found: &Found) -> Result<(), Unplayable> {
    let mut free = found.free.clone();
    let mut kernel = found.kernel.iter().copied();
    for (cpu, of) in free.cpus.iter_mut().enumerate() {
        let is_here = |place| match place {
            Place::AddBatch(other) => usize::from(other) == cpu,
            Place::TwoLists | Place::Generation(_) => cpu == 0,
        };
        let lists = found.lists.iter().filter(|list| is_here(list.place));
        let folios: Vec<Pfn> = lists.flat_map(|list| &list.folios).map(|&(folio, _)| folio.pfn).collect();
        let mut ready = vec![FreeBlocks { order: 0, kind: MigrateType::Movable, first: folios }];
        for (kind, count) in KERNEL_FRAMES {
            ready.push(FreeBlocks { order: 0, kind, first: kernel.by_ref().take(count).collect() });
        }
        ready.append(&mut of.blocks);
        // The CPU's housekeeping gives nothing back of a list that has not grown.
        *of = FreeOfCpu { high: 0, blocks: ready, ..FreeOfCpu::default() };
    }
    engine.set_free_memory(NODE, zone, &free)?;
    Ok(())
}

/// Who else has memory: nobody uses it any more.
struct Others {
    task: TaskId,
    /// Mappings to be filled one after the other: of each, the pages that are filled, and all.
    anon: Vec<(ObjectId, u64, u64)>,
    regular: (ObjectId, u64),
    shmem: (ObjectId, u64),
}

impl Others {
    fn new(engine: &mut Engine, found: &Found, own: &[(u64, Compressibility)]) -> Result<Others, Unplayable> {
        let count = |holds| found.folios().filter(|&(_, other)| other == holds).count() as u64;
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let of_programs: u64 = own.iter().map(|&(pages, _)| pages).sum();
        let of_others = (count(Holds::Anon).saturating_sub(of_programs), INCOMPRESSIBLE);
        let mut anon = Vec::new();
        for &(pages, compressibility) in [of_others].iter().chain(own).filter(|(pages, _)| *pages > 0) {
            let memory = engine.map_anon(task, pages, Advice::Normal)?;
            engine.set_compressibility(task, memory, compressibility)?;
            anon.push((memory, 0, pages));
        }
        let mut file = |name: &str, kind, pages: u64| {
            let spec = FileSpec { name: name.to_string(), pages: pages.max(1), kind, bdi: Bdi::NO_READAHEAD };
            let file = engine.file_create(spec)?;
            engine.map_file(task, file, Advice::Random, false)
        };
        let regular = file("others' files", FileKind::Regular, count(Holds::File))?;
        let shmem = file("others' files in memory", FileKind::Tmpfs, count(Holds::Shmem))?;
        engine.set_compressibility(task, shmem, INCOMPRESSIBLE)?;
        Ok(Others { task, anon, regular: (regular, 0), shmem: (shmem, 0) })
    }

    /// Another page, on a CPU.
    fn bring_in(
        &mut self,
        engine: &mut Engine,
        cpu: u16,
        (folio, holds): (FoundFolio, Holds),
    ) -> Result<(), Unplayable> {
        let (object, page) = match holds {
            Holds::Anon => {
                let next = self.anon.iter_mut().find(|(_, filled, pages)| filled < pages);
                let (object, filled, _) = next.expect("there are as many as were counted");
                (*object, filled)
            }
            Holds::File => (self.regular.0, &mut self.regular.1),
            Holds::Shmem => (self.shmem.0, &mut self.shmem.1),
        };
        let access = Access::new(object, *page, holds != Holds::File);
        *page += 1;
        if cpu >= engine.figures().cpus() {
            return Err(anyhow!("the snapshot has a CPU {cpu}, which the machine has not").into());
        }
        engine.set_cpu(self.task, CpuId(cpu));
        touch(engine, self.task, access, folio.pfn)
    }
}

/// The first touch of a page, which comes to the frame laid ready for it.
fn touch(engine: &mut Engine, task: TaskId, access: Access, wanted: Pfn) -> Result<(), Unplayable> {
    match serve_to(engine, task, access)? {
        Served::Minor(Touched::Frame(pfn)) | Served::Major(Touched::Frame(pfn)) if pfn == wanted => Ok(()),
        other => {
            Err(anyhow!("a page that was found in frame {} is brought in as {other:?}", wanted.0).into())
        }
    }
}
