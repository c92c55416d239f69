//! Memory that is there before a run begins: mmap with MAP_POPULATE, on a node of one's choice.
//!
//! Each page is accessed once, and device reads complete immediately: time has not begun.

use pageout_engine::{Access, CpuId, Engine, MemPolicy, NodeId, ObjectId, Op, Served, Step, TaskId};

/// Brings in all pages of a mapping, preferably of a node: anonymous ones by writing, those of files by reading. The error says what is
/// wrong.
pub(super) fn populate(
    engine: &mut Engine,
    task: TaskId,
    object: ObjectId,
    is_anonymous: bool,
    node: NodeId,
) -> Result<(), String> {
    let mm = engine.mm_of(task);
    let before = engine.figures().mempolicy(mm);
    let preferred = MemPolicy::Preferred(node);
    engine.set_mempolicy(mm, preferred).map_err(|error| format!("`populate_node`: {error}"))?;
    for page in 0..engine.figures().object_pages(task, object).unwrap_or(0) {
        let access = Access::new(object, page, is_anonymous);
        match finish(engine, task, access) {
            Served::Hit(_) | Served::Minor(_) | Served::Major(_) => {}
            served => return Err(format!("page {page} can't be allocated: {served:?}")),
        }
    }
    engine.set_mempolicy(mm, before).map_err(|error| error.to_string())
}

/// Continues an access until it is served. Waiting tasks are woken immediately.
fn finish(engine: &mut Engine, task: TaskId, access: Access) -> Served {
    let (mut ops, mut woken) = (Vec::new(), Vec::new());
    let mut step = engine.start(task, access);
    loop {
        engine.take_ops(&mut ops);
        for op in ops.drain(..) {
            if let Op::ReadFile { io, .. } | Op::WriteFile { io, .. } = op {
                engine.io_done(io, CpuId(0), Ok(()));
            }
        }
        engine.take_woken(&mut woken);
        woken.clear();
        match step {
            Step::Done(served) => return served,
            Step::Again | Step::Wait(_) => step = engine.resume(task),
        }
    }
}
