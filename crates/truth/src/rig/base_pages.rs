//! Base pages: the pages that a recorded memcg holds besides its objects.
//!
//! A handful of foreign pages is charged to the group. The page-cache streams identify them, because each takes memory until it is evicted.
//! A mapped page of data, touched once, gets a second round. A page of program text, touched once, is executable: it is activated and
//! leaves one round later. For files there is a busy block-device page, marked twice while it was read. It is active from the start and
//! activated again each time reclaim meets it. If the objects are mapped, the data page is not young at the first reclaim. Runs with
//! anonymous memory have one such page more than the object, by the group's last `memory.stat`: a page of the program's flags (`script`).
//! If the program marks each access in the kernel's trace, the block-device page is the only one.

use anyhow::anyhow;
use pageout_engine::{Access, Advice, FileKind, ObjectId};
use pageout_sim::cost::Channel;

use super::super::object::{Kind, Object};
use super::super::recording::{BaseKind, BasePage, Run};
use super::super::script::Flags;
use super::Unplayable;
use super::access::serve;
use super::stage::Stage;

/// The base pages of a run, in the order in which they are charged: those that are known, or what runs of its kind hold. See the head
/// of this file. A page without a number is the first one that has none yet: of the program's text from page 1 on.
pub(super) fn of(
    known: Option<&[BasePage]>,
    run: &Run,
    objects: &[Object],
) -> Result<Vec<(BaseKind, u64)>, Unplayable> {
    let by_kind = by_kind(run, objects);
    let mut taken: Vec<(BaseKind, u64)> = Vec::new();
    for &BasePage { kind, page } in known.unwrap_or(&by_kind) {
        let first = u64::from(kind == BaseKind::Text);
        let is_free = |page: &u64| !taken.contains(&(kind, *page));
        let page =
            page.unwrap_or_else(|| (first..).find(is_free).expect("there are more numbers than pages"));
        if !is_free(&page) {
            return Err(anyhow!("`base_pages`: duplicate {kind:?} page {page}").into());
        }
        if kind == BaseKind::Flags && page > 0 {
            return Err(anyhow!("`base_pages`: found several pages of `flags`, expected one").into());
        }
        taken.push((kind, page));
    }
    Ok(taken)
}

/// The default for runs that do not list their pages.
fn by_kind(run: &Run, objects: &[Object]) -> Vec<BasePage> {
    use BaseKind::{Data, Device, Flags, Text};
    let has = |kinds: &[Kind]| objects.iter().any(|object| kinds.contains(&object.kind));
    let has_files =
        has(&[Kind::Read, Kind::Mapped, Kind::MappedRandom]) || objects.iter().any(Object::is_read_ahead);
    let is_marked = run.is_marked();
    let kinds = [
        (has(&[Kind::Anon]) && !is_marked, Flags),
        (!is_marked, Data),
        (!is_marked, Text),
        (has_files || is_marked, Device),
    ];
    let kinds = kinds.into_iter().filter(|&(is_there, _)| is_there);
    kinds.map(|(_, kind)| BasePage { kind, page: None }).collect()
}

/// Pages of the program's file: its first one, and all that the group holds.
pub(super) fn program_pages(base_pages: &[(BaseKind, u64)]) -> u64 {
    let of_program = base_pages.iter().filter(|(kind, _)| matches!(kind, BaseKind::Data | BaseKind::Text));
    of_program.map(|&(_, page)| page + 1).max().unwrap_or(1)
}

impl Stage {
    /// Charges a page before the first access.
    pub(super) fn add_base_page(
        &mut self,
        kind: BaseKind,
        page: u64,
        objects: &[Object],
    ) -> Result<(), Unplayable> {
        match kind {
            BaseKind::Flags => {
                let object = self.channels.len() as u32;
                let flags = self.engine.map_anon(self.task, 1, Advice::Normal)?;
                self.channels.push(Channel::Mapped);
                let anon = objects.iter().filter(|object| object.kind == Kind::Anon);
                let pages = anon.map(|object| object.pages).sum();
                if pages == 0 {
                    return Err(anyhow!(
                        "`base_pages` has `flags` of first touches, but no object is anonymous"
                    )
                    .into());
                }
                self.flags = Some(Flags { object, pages });
                self.touch_for(flags, 0, true)
            }
            BaseKind::Data => {
                let data = self.map_program(false)?;
                self.touch(data, page)?;
                if objects.iter().any(Object::is_mapped_file) {
                    self.engine.mark_idle(self.task, data, page)?;
                }
                Ok(())
            }
            BaseKind::Text => {
                let text = match self.text {
                    Some(text) => text,
                    None => self.map_program(true)?,
                };
                self.text = Some(text);
                self.touch(text, page)
            }
            BaseKind::Device => {
                let device = self.add_file("block device", page + 1, FileKind::Regular)?;
                for _ in 0..2 {
                    // Two descriptors: reading the same page twice through one of them would mark it once.
                    let opened = self.engine.open(self.task, device)?;
                    self.channels.push(Channel::File);
                    self.touch(opened, page)?;
                }
                self.engine.pin(device, page);
                Ok(())
            }
        }
    }

    fn map_program(&mut self, executable: bool) -> Result<ObjectId, Unplayable> {
        self.channels.push(Channel::Mapped);
        Ok(self.engine.map_file(self.task, self.program, Advice::Normal, executable)?)
    }

    /// An access before the clock starts.
    fn touch(&mut self, object: ObjectId, page: u64) -> Result<(), Unplayable> {
        self.touch_for(object, page, false)
    }

    fn touch_for(&mut self, object: ObjectId, page: u64, write: bool) -> Result<(), Unplayable> {
        serve(&mut self.engine, self.task, Access::new(object, page, write))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::run;
    use super::*;
    use BaseKind::{Data, Device, Flags, Text};

    fn parsed(texts: &[&str]) -> Vec<Object> {
        texts.iter().map(|text| Object::parse(text).unwrap()).collect()
    }

    #[test]
    fn the_groups_foreign_pages_follow_from_the_kind_of_run_where_nothing_is_known() {
        let pages = |objects: &[&str], change| {
            let kinds = by_kind(&run(change), &parsed(objects));
            kinds.into_iter().map(|page| page.kind).collect::<Vec<_>>()
        };
        let plain = || serde_json::json!({});
        assert_eq!(pages(&["read:9:/mnt/f"], plain()), [Data, Text, Device]);
        assert_eq!(pages(&["mmap:9:/mnt/f"], plain()), [Data, Text, Device]);
        assert_eq!(pages(&["read:9:/tmpfs/f"], plain()), [Data, Text]);
        assert_eq!(pages(&["anon:9"], plain()), [Flags, Data, Text]);
        assert_eq!(pages(&["read:9:/mnt/f", "anon:9"], plain()), [Flags, Data, Text, Device]);
        let marked = serde_json::json!({ "wl_options": "-m -w 4" });
        assert_eq!(pages(&["read:9:/mnt/f"], marked), [Device]);
    }

    #[test]
    fn pages_without_a_number_are_different_ones_and_none_is_there_twice() {
        let pages = |texts: &[&str]| {
            let known: Vec<BasePage> =
                texts.iter().map(|text| BasePage::try_from(text.to_string()).unwrap()).collect();
            of(Some(&known), &run(serde_json::json!({})), &parsed(&["read:9:/mnt/f"]))
        };
        assert_eq!(
            pages(&["text", "text:34", "device:6459", "text"]).unwrap(),
            [(Text, 1), (Text, 34), (Device, 6459), (Text, 2)]
        );
        assert!(pages(&[]).unwrap().is_empty());
        let refused = |texts| pages(texts).unwrap_err().to_string();
        assert!(refused(&["text:1", "text", "text:2"]).contains("duplicate Text page 2"));
        assert!(refused(&["flags", "flags"]).contains("several pages of `flags`"));
        for text in ["txt", "text:", "text:x", "flags:1", "device:-1"] {
            let error = BasePage::try_from(text.to_string()).unwrap_err();
            assert!(error.contains("`flags`, `data`, `text` or `device`"), "{error}");
        }
    }
}
