//! `[[device]]`, `[[swap]]` and `[[file]]`: where pages that are not in memory live.

use serde::{Deserialize, Serialize};

use super::{Bandwidth, Share, Size, TimeSpan};

/// A block device: a preset by class, and what differs from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// The name files and swap areas refer to.
    pub name: String,
    /// The class that gives every figure not overridden here.
    #[serde(default = "default_preset")]
    pub preset: String,
    /// Median latency of one random read with nothing else queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_latency: Option<TimeSpan>,
    /// 99th percentile of the same; equal to the median means no tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_p99: Option<TimeSpan>,
    /// Median latency of one write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_latency: Option<TimeSpan>,
    /// 99th percentile of the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_p99: Option<TimeSpan>,
    /// Latency of a request that begins where the one before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential_latency: Option<TimeSpan>,
    /// Bytes a second that reads share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bandwidth: Option<Bandwidth>,
    /// Bytes a second that writes share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bandwidth: Option<Bandwidth>,
    /// Requests served at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    /// Requests in service or waiting at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nr_requests: Option<u32>,
    /// Requests a second at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
    /// Share of reads that fail with an I/O error, drawn from the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_reads: Option<Share>,
    /// Share of writes that fail with an I/O error, drawn from the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_writes: Option<Share>,
}

impl Device {
    /// A device that is its preset and nothing else.
    pub fn of_preset(name: &str, preset: &str) -> Device {
        Device {
            name: name.to_string(),
            preset: preset.to_string(),
            read_latency: None,
            read_p99: None,
            write_latency: None,
            write_p99: None,
            sequential_latency: None,
            read_bandwidth: None,
            write_bandwidth: None,
            queue_depth: None,
            nr_requests: None,
            iops: None,
            fail_reads: None,
            fail_writes: None,
        }
    }
}

fn default_preset() -> String {
    super::DEFAULT_DEVICE.to_string()
}

/// A swap area.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Swap {
    /// How much it holds, uncompressed.
    pub size: Size,
    /// On a device, or compressed in memory.
    #[serde(default)]
    pub kind: SwapKind,
    /// The device of `kind = "disk"`; without it the only device there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// How a swap area works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SwapKind {
    /// A partition or file on a block device: a page out waits for the device.
    #[default]
    Disk,
    /// Compressed memory with synchronous I/O: a page out costs CPU and is over when the call returns.
    Zram,
}

/// A file that objects refer to by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The name objects refer to.
    pub name: String,
    /// Its size; the last page counts whole.
    pub size: Size,
    /// Regular or tmpfs.
    #[serde(default)]
    pub kind: FileKind,
    /// The device a regular file lives on; without it the only device there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// What backs a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A file system on a block device.
    #[default]
    Regular,
    /// Memory and swap.
    Tmpfs,
}
