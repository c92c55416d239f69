//! Accesses that `validate` has the engine serve without a machine: transfers take no time.

use pageout_engine::{Access, CpuId, Engine, IoId, Op, Served, Step, TaskId};

use super::Unplayable;

/// Serves an access to its end; transfers take no time.
pub(super) fn serve(engine: &mut Engine, task: TaskId, access: Access) -> Result<(), Unplayable> {
    serve_to(engine, task, access).map(|_| ())
}

/// The same, and what it came to.
pub(super) fn serve_to(engine: &mut Engine, task: TaskId, access: Access) -> Result<Served, Unplayable> {
    let step = engine.start(task, access);
    serve_step(engine, task, step, |_| {})
}

pub(super) fn serve_step(
    engine: &mut Engine,
    task: TaskId,
    mut step: Step,
    mut on_op: impl FnMut(&Op),
) -> Result<Served, Unplayable> {
    loop {
        let mut ops = Vec::new();
        engine.take_ops(&mut ops);
        ops.iter().for_each(&mut on_op);
        let transfers: Vec<IoId> = ops.iter().filter_map(transfer_of).collect();
        transfers.into_iter().for_each(|io| engine.io_done(io, CpuId(0), Ok(())));
        engine.take_woken(&mut Vec::new());
        step = match step {
            Step::Done(Served::Failed(error)) => return Err(error.into()),
            Step::Done(served) => return Ok(served),
            Step::Again | Step::Wait(_) => engine.resume(task),
        };
    }
}

pub(crate) fn transfer_of(op: &Op) -> Option<IoId> {
    match *op {
        Op::ReadFile { io, .. } | Op::ReadSwap { io, .. } | Op::WriteSwap { io, .. } => Some(io),
        _ => None,
    }
}
