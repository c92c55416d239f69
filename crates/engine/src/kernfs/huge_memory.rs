//! `/sys/kernel/mm/transparent_hugepage`: whose anonymous memory is of huge pages (`enabled`), and what a fault does for one (`defrag`). All
//! words, and the one that holds in brackets. `hugepages-<N>kB/enabled`: the same for folios of a size. And `/sys/kernel/mm/hugepages`: pools of
//! them.

use super::{WRITTEN, WriteError, invalid};
use crate::access::engine::Engine;
use crate::config::{HugepageDefrag, TransparentHugepage};
use crate::kmem::PoolResize;
use crate::machine::step::Step;
use crate::units::TaskId;
use pageout_rules::folio::SizeEnabled;

/// The words of such a file, the one that holds in brackets. The kernel begins with those who do most.
fn chosen(words: &[&str], holds: &str) -> String {
    let shown = |&word: &&str| if word == holds { format!("[{word}]") } else { word.to_owned() };
    words.iter().rev().map(shown).collect::<Vec<String>>().join(" ") + "\n"
}

pub(super) fn transparent_hugepage_show(engine: &mut Engine) -> String {
    chosen(TransparentHugepage::NAMES, engine.core.mm.config.transparent_hugepage.name())
}

/// Existing huge pages stay huge. The watermarks of zones are those of a machine that booted this way.
pub(super) fn transparent_hugepage_store(
    engine: &mut Engine,
    _: TaskId,
    value: &str,
) -> Result<Step, WriteError> {
    let enabled = TransparentHugepage::by_name(value).ok_or_else(|| invalid("always, madvise or never"))?;
    engine.core.mm.config.transparent_hugepage = enabled;
    engine.core.mm.note_anon_orders();
    engine.core.mm.memory.zones.set_marks(&engine.core.mm.config);
    Ok(WRITTEN)
}

pub(super) fn hugepage_defrag_show(engine: &mut Engine) -> String {
    chosen(HugepageDefrag::NAMES, engine.core.mm.config.hugepage_defrag.name())
}

/// Faults in progress continue as they began.
pub(super) fn hugepage_defrag_store(engine: &mut Engine, _: TaskId, value: &str) -> Result<Step, WriteError> {
    let defrag = HugepageDefrag::by_name(value)
        .ok_or_else(|| invalid("always, defer, defer+madvise, madvise or never"))?;
    engine.core.mm.config.hugepage_defrag = defrag;
    Ok(WRITTEN)
}

/// `ORDER`: that of the folios.
pub(super) fn size_enabled_show<const ORDER: u8>(engine: &mut Engine) -> String {
    let enabled = engine.core.mm.config.size_enabled(ORDER).expect("a file is of an order with a switch");
    chosen(SizeEnabled::NAMES, enabled.name())
}

pub(super) fn size_enabled_store<const ORDER: u8>(
    engine: &mut Engine,
    _: TaskId,
    value: &str,
) -> Result<Step, WriteError> {
    let enabled = SizeEnabled::by_name(value).ok_or_else(|| invalid("always, inherit, madvise or never"))?;
    *engine.core.mm.config.size_enabled(ORDER).expect("a file is of an order with a switch") = enabled;
    engine.core.mm.note_anon_orders();
    Ok(WRITTEN)
}

pub(super) fn shrink_underused_show(engine: &mut Engine) -> String {
    format!("{}\n", u8::from(engine.core.mm.config.shrink_underused))
}

/// Huge pages that are remembered already stay so.
pub(super) fn shrink_underused_store(
    engine: &mut Engine,
    _: TaskId,
    value: &str,
) -> Result<Step, WriteError> {
    engine.core.mm.config.shrink_underused = match value {
        "0" => false,
        "1" => true,
        _ => return Err(invalid("0 or 1")),
    };
    Ok(WRITTEN)
}

pub(super) fn max_ptes_none_show(engine: &mut Engine) -> String {
    format!("{}\n", engine.core.mm.config.max_ptes_none)
}

pub(super) fn max_ptes_none_store(engine: &mut Engine, _: TaskId, value: &str) -> Result<Step, WriteError> {
    let pages = value.parse().ok().filter(|&pages| pages < 512);
    engine.core.mm.config.max_ptes_none = pages.ok_or_else(|| invalid("a number up to 511"))?;
    Ok(WRITTEN)
}

/// `ORDER`: that of the blocks in the pool.
pub(super) fn nr_hugepages_show<const ORDER: u8>(engine: &mut Engine) -> String {
    format!("{}\n", engine.core.mm.kmem.huge_pools.len(ORDER))
}

pub(super) fn nr_hugepages_store<const ORDER: u8>(
    engine: &mut Engine,
    task: TaskId,
    value: &str,
) -> Result<Step, WriteError> {
    let wanted = value.parse().map_err(|_| invalid("a number of blocks"))?;
    Ok(engine.current(task).resize_pool(Box::new(PoolResize::new(ORDER, wanted))))
}

#[cfg(test)]
mod tests {
    use crate::*;

    const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

    fn low(engine: &Engine) -> u64 {
        engine.figures().zones().next().unwrap().low
    }

    #[test]
    fn it_shows_what_holds_in_brackets_and_takes_the_words() {
        let config = Config { node_pages: vec![1 << 18], ..Config::default() };
        let mut engine = Engine::new(config.clone()).unwrap();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        assert_eq!(engine.read_file(ENABLED).unwrap(), "always madvise [never]\n");
        let never = low(&engine);
        for (word, text, enabled) in [
            ("always", "[always] madvise never\n", TransparentHugepage::Always),
            ("madvise", "always [madvise] never\n", TransparentHugepage::Madvise),
            ("never", "always madvise [never]\n", TransparentHugepage::Never),
        ] {
            let _ = engine.write_file(task, ENABLED, word).unwrap();
            assert_eq!(engine.read_file(ENABLED).unwrap(), text);
            let booted = Engine::new(Config { transparent_hugepage: enabled, ..config.clone() }).unwrap();
            assert_eq!(low(&engine), low(&booted), "{word}");
        }
        assert_eq!(low(&engine), never);
        let error = engine.write_file(task, ENABLED, "[always]").unwrap_err();
        assert!(error.to_string().ends_with("expected always, madvise or never"), "{error}");
    }

    #[test]
    fn defrag_shows_its_five_words_in_the_kernels_order_and_takes_them() {
        const DEFRAG: &str = "/sys/kernel/mm/transparent_hugepage/defrag";
        let mut engine = Engine::new(Config::default()).unwrap();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        assert_eq!(engine.read_file(DEFRAG).unwrap(), "always defer defer+madvise [madvise] never\n");
        for (word, text) in [
            ("defer+madvise", "always defer [defer+madvise] madvise never\n"),
            ("defer", "always [defer] defer+madvise madvise never\n"),
            ("always", "[always] defer defer+madvise madvise never\n"),
            ("never", "always defer defer+madvise madvise [never]\n"),
        ] {
            let _ = engine.write_file(task, DEFRAG, word).unwrap();
            assert_eq!(engine.read_file(DEFRAG).unwrap(), text);
        }
        let error = engine.write_file(task, DEFRAG, "[defer]").unwrap_err();
        let expected = "expected always, defer, defer+madvise, madvise or never";
        assert!(error.to_string().ends_with(expected), "{error}");
    }

    /// A file that an administrator has written before says more than what huge pages would have.
    #[test]
    fn it_leaves_marks_alone_that_were_given() {
        let mut engine = Engine::new(Config { min_free_kbytes: 2048, ..Config::default() }).unwrap();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let before = low(&engine);
        let _ = engine.write_file(task, ENABLED, "always").unwrap();
        assert_eq!(low(&engine), before);
    }
}
