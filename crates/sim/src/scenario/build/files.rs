//! The files of a scenario, those of single objects included, and the devices that they are on.

use std::collections::BTreeMap;

use pageout_engine::{Bdi, BdiId, Engine, EngineBuilder, FileId, FileKind as EngineFileKind, FileSpec};

use super::problem;
use crate::TimedAction;
use crate::scenario::{Channel, DEFAULT_DEVICE, Device, FileKind, Files, Problem, Scenario, Task, TmpfsHuge};

/// The files of the engine by name.
pub(super) type OpenFiles = BTreeMap<String, OpenFile>;

/// A file of the engine, and the device of a regular one.
pub(super) struct OpenFile {
    pub(super) id: FileId,
    pub(super) device: Option<usize>,
}

impl Scenario {
    pub(super) fn create_files(
        &self,
        engine: &mut Engine,
        bdis: &[BdiId],
        sizes: &Files<'_>,
    ) -> Result<OpenFiles, Problem> {
        let (mut files, read_ahead) = (OpenFiles::new(), self.files_read_ahead());
        for (index, file) in self.file.iter().enumerate() {
            let kind = match file.kind {
                FileKind::Regular => EngineFileKind::Regular,
                FileKind::Tmpfs => EngineFileKind::Tmpfs,
            };
            let spec = FileSpec {
                name: file.name.clone(),
                pages: file.size.pages_ceil(),
                kind,
                bdi: self.bdi_of(kind, file.device.as_deref(), read_ahead.file(&file.name)),
            };
            let device = (kind == EngineFileKind::Regular).then(|| self.device_index(file.device.as_deref()));
            let id = engine.file_create_on(spec, bdis[device.unwrap_or(0)]);
            let id = id.map_err(|error| problem(&format!("file[{index}].size"), error))?;
            if file.huge != TmpfsHuge::Never {
                let huge = engine.set_tmpfs_huge(id, file.huge.into());
                huge.map_err(|error| problem(&format!("file[{index}].huge"), error))?;
            }
            files.insert(file.name.clone(), OpenFile { id, device });
        }
        for (task_index, task) in self.task.iter().enumerate() {
            for (index, object) in task.object.iter().enumerate() {
                if object.file.is_some() || object.channel == Channel::Anonymous {
                    continue;
                }
                let key = format!("task[{task_index}].object[{index}]");
                let pages =
                    sizes.pages_of(task, index).ok_or_else(|| problem(&key, "its size is not given"))?;
                let kind = match object.channel {
                    Channel::Tmpfs => EngineFileKind::Tmpfs,
                    _ => EngineFileKind::Regular,
                };
                let bdi = self.bdi_of(kind, object.device.as_deref(), read_ahead.object(task_index, index));
                let device =
                    (kind == EngineFileKind::Regular).then(|| self.device_index(object.device.as_deref()));
                let apart = object.copies_per_file().unwrap_or(task.copies);
                for copy in (0..task.copies).step_by(apart as usize) {
                    let name = own_file_name(task, index, copy);
                    let spec = FileSpec { name: name.clone(), pages, kind, bdi };
                    let id = engine.file_create_on(spec, bdis[device.unwrap_or(0)]);
                    let id = id.map_err(|error| problem(&key, error))?;
                    files.insert(name, OpenFile { id, device });
                }
            }
        }
        Ok(files)
    }

    /// The same of a file that may be read page by page, however far the device is read ahead.
    fn bdi_of(&self, kind: EngineFileKind, device: Option<&str>, is_read_ahead: bool) -> Bdi {
        let bdi = self.bdi(kind, device);
        if is_read_ahead { bdi } else { Bdi { ra_pages: 0, ..bdi } }
    }

    /// What readahead knows of the device of a file; tmpfs is on none.
    fn bdi(&self, kind: EngineFileKind, device: Option<&str>) -> Bdi {
        match (kind, self.device.get(self.device_index(device))) {
            (EngineFileKind::Tmpfs, _) => Bdi::NO_READAHEAD,
            (EngineFileKind::Regular, Some(device)) => device.bdi(),
            (EngineFileKind::Regular, None) => Device::of_preset(DEFAULT_DEVICE, DEFAULT_DEVICE).bdi(),
        }
    }

    /// Each device has a flusher thread of its own.
    pub(super) fn register_bdis(&self, builder: &mut EngineBuilder) -> Result<Vec<BdiId>, Problem> {
        let mut names: Vec<&str> = self.device.iter().map(|device| device.name.as_str()).collect();
        if names.is_empty() {
            names.push(DEFAULT_DEVICE);
        }
        let bdis = names.into_iter().map(|name| builder.bdi_register(name));
        let bdis: Vec<BdiId> = bdis.collect::<Result<_, _>>().map_err(|error| problem("device", error))?;
        for (index, (device, &bdi)) in self.device.iter().zip(&bdis).enumerate() {
            let set = builder.bdi_set_limits(bdi, device.limits());
            set.map_err(|error| problem(&format!("device[{index}]"), error))?;
        }
        Ok(bdis)
    }

    /// A sync of a device's file system opens a file there.
    pub(super) fn syncfs(&self, device: &str, files: &OpenFiles, key: &str) -> Result<TimedAction, Problem> {
        let index = self.device_index(Some(device));
        let Some(file) = files.values().find(|file| file.device == Some(index)) else {
            return Err(problem(&format!("{key}.syncfs"), format!("there is no file on `{device}`")));
        };
        Ok(TimedAction::Syncfs { file: file.id, name: device.to_string() })
    }

    /// Position of the device called `name`; without a name the first, which validation makes sure is the only one.
    pub(super) fn device_index(&self, name: Option<&str>) -> usize {
        name.and_then(|name| self.device.iter().position(|device| device.name == name)).unwrap_or(0)
    }
}

/// The name of a file that belongs to one object, of this copy and those that share it; the slash keeps it apart from the scenario's own.
pub(super) fn own_file_name(task: &Task, index: usize, copy: u32) -> String {
    let file = task.object[index].copies_per_file().map(|copies| copy / copies);
    let of = file.map_or_else(|| task.name.clone(), |file| task.copy_name(file));
    format!("{of}/object[{index}]")
}
