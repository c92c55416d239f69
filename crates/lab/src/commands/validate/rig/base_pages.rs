//! Base pages: the pages that a recorded memcg holds besides its objects.
//!
//! A handful of foreign pages is charged to the group. The page-cache streams tell what they are, because each
//! takes up room until it is evicted. A mapped page of data, touched once, gets a second round. A page of program text, touched
//! once, is executable: it is activated and leaves one round later. For files there is a busy block-device page, marked twice
//! while it was read: it is active from the start and activated again each time reclaim meets it. Where the objects are mapped,
//! the data page is not young when reclaim first comes. Runs with anonymous memory have one such page more than the object, by
//! the group's last `memory.stat`: a page of the program's flags (`script`). Where the program marks each access in the kernel's
//! trace, the block-device page is the only one.

use anyhow::anyhow;
use pageout_engine::{Access, Advice, FileKind, ObjectId};
use pageout_sim::cost::Channel;

use super::super::object::{Kind, Object};
use super::super::recording::{BasePage, Run};
use super::super::script::Flags;
use super::Unplayable;
use super::serve::serve;
use super::stage::Stage;

/// In the order in which they are charged. See the head of this file.
pub(super) fn base_pages(run: &Run, objects: &[Object]) -> Vec<BasePage> {
    use BasePage::{Data, Device, Flags, Text};
    let has = |kinds: &[Kind]| objects.iter().any(|object| kinds.contains(&object.kind));
    let has_files =
        has(&[Kind::Read, Kind::Mapped, Kind::MappedRandom]) || objects.iter().any(Object::is_read_ahead);
    match &run.base_pages {
        Some(declared) => declared.clone(),
        None if run.is_marked() => vec![Device],
        None => {
            let kinds = [(has(&[Kind::Anon]), Flags), (true, Data), (true, Text), (has_files, Device)];
            kinds.into_iter().filter_map(|(is_there, page)| is_there.then_some(page)).collect()
        }
    }
}

impl Stage {
    /// Charges a page before the first access.
    pub(super) fn add_base_page(&mut self, page: BasePage, objects: &[Object]) -> Result<(), Unplayable> {
        match page {
            BasePage::Flags => {
                let object = self.channels.len() as u32;
                let flags = self.engine.map_anon(self.task, 1, Advice::Normal)?;
                self.channels.push(Channel::Mapped);
                let anon = objects.iter().filter(|object| object.kind == Kind::Anon);
                let pages = anon.map(|object| object.pages).sum();
                if pages == 0 {
                    return Err(anyhow!(
                        "`base_pages` has flags of first touches, but no object is anonymous"
                    )
                    .into());
                }
                self.flags = Some(Flags { object, pages });
                self.touch_for(flags, 0, true)
            }
            BasePage::Data => {
                let data = self.map_program(false)?;
                self.touch(data, 0)?;
                if objects.iter().any(Object::is_mapped_file) {
                    self.engine.mark_idle(self.task, data, 0)?;
                }
                Ok(())
            }
            BasePage::Text => {
                let text = self.map_program(true)?;
                self.touch(text, 1)
            }
            BasePage::Device => {
                let device = self.add_file("block device", 1, FileKind::Regular)?;
                for _ in 0..2 {
                    // Two descriptors: reading the same page twice through one of them would mark it once.
                    let opened = self.engine.open(self.task, device)?;
                    self.channels.push(Channel::File);
                    self.touch(opened, 0)?;
                }
                self.engine.pin(device, 0);
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
    use BasePage::{Data, Device, Flags, Text};

    #[test]
    fn the_groups_foreign_pages_follow_from_the_kind_of_run_unless_they_are_declared() {
        let pages = |objects: &[&str], change| {
            let objects: Vec<Object> = objects.iter().map(|text| Object::parse(text).unwrap()).collect();
            base_pages(&run(change), &objects)
        };
        let plain = || serde_json::json!({});
        assert_eq!(pages(&["read:9:/mnt/f"], plain()), [Data, Text, Device]);
        assert_eq!(pages(&["mmap:9:/mnt/f"], plain()), [Data, Text, Device]);
        assert_eq!(pages(&["read:9:/tmpfs/f"], plain()), [Data, Text]);
        assert_eq!(pages(&["anon:9"], plain()), [Flags, Data, Text]);
        assert_eq!(pages(&["read:9:/mnt/f", "anon:9"], plain()), [Flags, Data, Text, Device]);
        let marked = serde_json::json!({ "wl_options": "-m -w 4" });
        assert_eq!(pages(&["read:9:/mnt/f"], marked), [Device]);
        let declared = serde_json::json!({ "wl_options": "-m", "base_pages": ["text", "data"] });
        assert_eq!(pages(&["read:9:/mnt/f"], declared), [Text, Data]);
    }
}
