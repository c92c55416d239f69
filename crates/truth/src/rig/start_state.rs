//! A whole machine as a snapshot found it: memory of others on the recorded frames and lists, and the recorded rest free.
//!
//! Pages of other processes are brought in one by one, in the order of their lists, from prepared frames. Then the lists become the
//! recorded ones, the add batches are filled, and the free memory becomes the recorded one. The rest is kernel memory. The owner of pages
//! follows from their number: pages that a program fills at its start came last.

use anyhow::anyhow;
use pageout_engine::{
    Access, Advice, Bdi, Compressibility, CpuId, Engine, FileKind, FileSpec, FreeBlocks, FreeOfCpu, MemcgId,
    MigrateType, NodeId, ObjectId, Pfn, Served, StartFolio, TaskId, Touched, ZoneType,
};

use super::super::start_state::{Holds, Place, Reached, StartState};
use super::Unplayable;
use super::access::serve_to;
use super::machine::INCOMPRESSIBLE;

const NODE: NodeId = NodeId(0);
/// Frames of the kernel's, by type, from which it takes on each CPU what others' pages and stacks need: what is left over is its own again.
const KERNEL_FRAMES: [(MigrateType, usize); 2] =
    [(MigrateType::Unmovable, 128), (MigrateType::Reclaimable, 32)];

/// `own`: memory of each program other than its objects, in pages, and the total.
pub(super) fn restore(
    engine: &mut Engine,
    found: &StartState,
    others: TaskId,
    own: &[(TaskId, [(u64, Compressibility); 2])],
) -> Result<(), Unplayable> {
    let zone = engine.figures().zones().next().expect("a machine has memory").zone;
    lay_ready(engine, zone, found)?;
    if found.has_tiny_slabs() {
        engine.use_tiny_slabs();
    }
    let mut others = Others::new(engine, others, found, own)?;
    let (batched, listed): (Vec<_>, Vec<_>) =
        found.lists.iter().partition(|list| matches!(list.place, Place::AddBatch(_)));
    let folios: Vec<_> = listed.iter().flat_map(|list| &list.folios).copied().collect();
    for folio in folios {
        others.bring_in(engine, 0, folio)?;
    }
    if found.is_placed {
        engine.set_lists(MemcgId::ROOT, NODE, &found.lruvec())?;
    }
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
fn lay_ready(engine: &mut Engine, zone: ZoneType, found: &StartState) -> Result<(), Unplayable> {
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

/// The owner of other memory, which is not accessed again.
struct Others {
    task: TaskId,
    /// Mappings to be filled one after the other.
    anon: Vec<Filled>,
    regular: OthersFile,
    shmem: OthersFile,
}

/// Anonymous memory of a task, as far as it is filled.
struct Filled {
    task: TaskId,
    object: ObjectId,
    filled: u64,
    pages: u64,
}

impl Filled {
    fn new(
        engine: &mut Engine,
        task: TaskId,
        (pages, compressibility): (u64, Compressibility),
    ) -> Result<Filled, Unplayable> {
        let object = engine.map_anon(task, pages, Advice::Normal)?;
        engine.set_compressibility(task, object, compressibility)?;
        Ok(Filled { task, object, filled: 0, pages })
    }
}

/// A file with the pages of all others' files of its kind.
struct OthersFile {
    mapping: ObjectId,
    open: ObjectId,
    /// The page that is brought in next.
    next: u64,
}

impl OthersFile {
    fn new(
        engine: &mut Engine,
        task: TaskId,
        name: &str,
        kind: FileKind,
        pages: usize,
    ) -> Result<OthersFile, Unplayable> {
        let pages = pages.max(1) as u64;
        let file =
            engine.file_create(FileSpec { name: name.to_string(), pages, kind, bdi: Bdi::NO_READAHEAD })?;
        // What programs have mapped of files is their code.
        let mapping = engine.map_file(task, file, Advice::Normal, true)?;
        let open = engine.open(task, file)?;
        engine.fadvise(task, open, Advice::Random)?;
        Ok(OthersFile { mapping, open, next: 0 })
    }

    fn next(&mut self, reached: Reached, is_write: bool) -> Access {
        let object = if reached == Reached::Mapped { self.mapping } else { self.open };
        self.next += 1;
        Access::new(object, self.next - 1, is_write)
    }
}

impl Others {
    fn new(
        engine: &mut Engine,
        task: TaskId,
        found: &StartState,
        own: &[(TaskId, [(u64, Compressibility); 2])],
    ) -> Result<Others, Unplayable> {
        let count = |is: fn(Holds) -> bool| found.folios().filter(|&(_, holds)| is(holds)).count();
        let of_programs: u64 = own.iter().flat_map(|(_, own)| own).map(|&(pages, _)| pages).sum();
        let anon_pages = count(|holds| holds == Holds::Anon) as u64;
        let of_others = anon_pages.saturating_sub(of_programs);
        let mut anon = Vec::new();
        if of_others > 0 {
            anon.push(Filled::new(engine, task, (of_others, INCOMPRESSIBLE))?);
        }
        for &(program, own) in own {
            for memory in own {
                anon.push(Filled::new(engine, program, memory)?);
            }
        }
        let files = count(|holds| matches!(holds, Holds::File(_)));
        let regular = OthersFile::new(engine, task, "others' files", FileKind::Regular, files)?;
        let shmem = count(|holds| matches!(holds, Holds::Shmem(_)));
        let shmem = OthersFile::new(engine, task, "others' files in memory", FileKind::Tmpfs, shmem)?;
        engine.set_compressibility(task, shmem.mapping, INCOMPRESSIBLE)?;
        Ok(Others { task, anon, regular, shmem })
    }

    /// Another page, on a CPU.
    fn bring_in(
        &mut self,
        engine: &mut Engine,
        cpu: u16,
        (folio, holds): (StartFolio, Holds),
    ) -> Result<(), Unplayable> {
        let (task, access) = match holds {
            Holds::Anon => {
                let next = self.anon.iter_mut().find(|own| own.filled < own.pages);
                let own = next.expect("there are as many as were counted");
                own.filled += 1;
                (own.task, Access::new(own.object, own.filled - 1, true))
            }
            Holds::File(reached) => (self.task, self.regular.next(reached, false)),
            Holds::Shmem(reached) => (self.task, self.shmem.next(reached, true)),
        };
        if cpu >= engine.figures().cpus() {
            return Err(anyhow!("the snapshot has CPU {cpu}, but the machine does not").into());
        }
        engine.set_cpu(task, CpuId(cpu));
        touch(engine, task, access, folio.pfn)
    }
}

/// The first touch of a page, which comes to the frame laid ready for it.
fn touch(engine: &mut Engine, task: TaskId, access: Access, wanted: Pfn) -> Result<(), Unplayable> {
    match serve_to(engine, task, access)? {
        Served::Minor(Touched::Frame(pfn)) | Served::Major(Touched::Frame(pfn)) if pfn == wanted => Ok(()),
        other => Err(anyhow!("cannot place a page in frame {}: found {other:?}", wanted.0).into()),
    }
}
