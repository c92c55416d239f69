//! Checks of `[[device]]`, `[[swap]]` and `[[file]]`: parameters that make sense, and names that exist.

use super::{Check, Problem};
use crate::scenario::compressed::Compressed;
use crate::scenario::{Device, File, FileKind, Size, Swap, SwapKind, TmpfsHuge};

impl Check<'_> {
    pub(super) fn device(&mut self, prefix: &str, device: &Device) {
        self.ranges(&format!("{prefix}."), device);
        // The rest needs the device itself, such as a p99 below the median; its preset was checked above.
        if let Err(problem) = device.spec()
            && problem.key.is_empty()
        {
            self.report(Problem { key: prefix.to_string(), ..problem });
        }
        self.read_ahead(prefix, device);
        if device.min_ratio > device.max_ratio {
            let message =
                format!("`min_ratio` {} % is above `max_ratio` {} %", device.min_ratio, device.max_ratio);
            self.report(
                Problem::new(format!("{prefix}.min_ratio"), message).help("lower it, or raise `max_ratio`"),
            );
        }
    }

    /// The shares reserved for all devices can't exceed the total.
    pub(super) fn min_ratios(&mut self) {
        let sum: u32 = self.scenario.device.iter().map(|device| device.min_ratio).sum();
        if sum > 100 {
            let message = format!("the sum of `min_ratio` of all devices is {sum} %, more than 100 %");
            self.report(Problem::new("device", message).help("100 at most"));
        }
    }

    /// A window that the device can't even have waiting is a mistake of units.
    fn read_ahead(&mut self, prefix: &str, device: &Device) {
        let Ok(spec) = device.spec() else { return };
        let most = u64::from(spec.nr_requests.max(spec.queue_depth)) * u64::from(device.max_sectors_kb);
        if u64::from(device.window_kb()) > most {
            let message = format!(
                "`read_ahead_kb`: a window of {} exceeds the device's capacity: {} requests of {}",
                Size(u64::from(device.window_kb()) << 10),
                spec.nr_requests.max(spec.queue_depth),
                Size(u64::from(device.max_sectors_kb) << 10)
            );
            let problem = Problem::new(format!("{prefix}.read_ahead_kb"), message);
            self.report(problem.help(format!("at most {most}, in KiB; the default of Linux is 128")));
        }
    }

    /// A key that names a device, or none when it is clear which one is meant.
    pub(super) fn on_device(&mut self, path: &str, device: Option<&String>) {
        let known = &self.known.devices;
        match device {
            Some(name) => self.reference(path, known, name),
            None if known.listed.len() > 1 => {
                let message = "there are several devices, but no `device` selects one of them";
                self.report(Problem::new(path, message).help(format!("device = one of: {}", known.told())));
            }
            None => {}
        }
    }

    pub(super) fn swap(&mut self, prefix: &str, swap: &Swap) {
        self.ranges(&format!("{prefix}."), swap);
        let device = format!("{prefix}.device");
        match (swap.kind, &swap.device) {
            (SwapKind::Disk, name) => self.on_device(&device, name.as_ref()),
            (SwapKind::Zram, None) => {}
            (SwapKind::Zram, Some(name)) => {
                let problem =
                    Problem::new(device, format!("zram compresses into memory and can't be on `{name}`"));
                self.report(problem.help("leave `device` out, or use kind = \"disk\""));
            }
        }
        let compressed = Compressed::of_swap(swap);
        let limit = swap.memory_limit.map(|_| "memory_limit");
        if swap.kind == SwapKind::Disk
            && let Some(key) = compressed.of_compression().or(limit)
        {
            let problem = Problem::new(
                format!("{prefix}.{key}"),
                format!("`{key}` is for zram; a disk does not compress"),
            );
            self.report(problem.help("use kind = \"zram\", or leave it out"));
        }
        self.compressed(prefix, compressed);
    }

    /// Keys of compression that go together.
    pub(super) fn compressed(&mut self, prefix: &str, compressed: Compressed) {
        if let Err(message) = compressed.engine() {
            let problem = Problem::new(prefix, message);
            self.report(
                problem.help(
                    "one of the two is enough; without both, pages are compressed to a third to a half",
                ),
            );
        }
    }

    pub(super) fn file(&mut self, prefix: &str, file: &File) {
        self.ranges(&format!("{prefix}."), file);
        if file.kind == FileKind::Regular && file.huge != TmpfsHuge::Never {
            let problem = Problem::new(format!("{prefix}.huge"), "only tmpfs has this mount option");
            self.report(problem.help("use kind = \"tmpfs\"; `device.file_system` decides for regular files"));
        }
        let device = format!("{prefix}.device");
        match (file.kind, &file.device) {
            (FileKind::Regular, name) => self.on_device(&device, name.as_ref()),
            (FileKind::Tmpfs, None) => {}
            (FileKind::Tmpfs, Some(name)) => {
                let problem =
                    Problem::new(device, format!("a tmpfs file lives in memory and can't be on `{name}`"));
                self.report(problem.help("leave `device` out, or use kind = \"regular\""));
            }
        }
    }
}
