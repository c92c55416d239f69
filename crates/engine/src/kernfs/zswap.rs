//! Files of zswap: its statistics in `/sys/kernel/debug/zswap`, and its parameters in `/sys/module/zswap/parameters`. [reclaim 6.8]

use super::numa::kernel_bool;
use crate::config::Parameter;
use crate::serve::engine::Engine;
use crate::units::PAGE_SIZE;
use pageout_rules::Values;

/// A file of zswap in debugfs, which shows one number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ZswapFile {
    DuplicateEntry,
    PoolLimitHit,
    PoolTotalSize,
    RejectAllocFail,
    RejectCompressPoor,
    RejectReclaimFail,
    SameFilledPages,
    StoredIncompressiblePages,
    StoredPages,
    WrittenBackPages,
    /// A count of what never fails here: there are always entries to be had, and compressors make no mistakes.
    NeverFails,
}

impl Engine {
    pub(super) fn zswap_figure(&self, file: ZswapFile) -> u64 {
        let zswap = &self.core.zswap;
        match file {
            ZswapFile::DuplicateEntry => zswap.stat.duplicate_entry,
            ZswapFile::PoolLimitHit => zswap.stat.pool_limit_hit,
            ZswapFile::PoolTotalSize => zswap.pool.pages() * PAGE_SIZE,
            ZswapFile::RejectAllocFail => zswap.stat.reject_alloc_fail,
            ZswapFile::RejectCompressPoor => zswap.stat.reject_compress_poor,
            ZswapFile::RejectReclaimFail => zswap.stat.reject_reclaim_fail,
            ZswapFile::SameFilledPages => zswap.stat.same_filled_pages,
            ZswapFile::StoredIncompressiblePages => zswap.stat.stored_incompressible_pages,
            ZswapFile::StoredPages => zswap.stored(),
            ZswapFile::WrittenBackPages => zswap.stat.written_back_pages,
            ZswapFile::NeverFails => 0,
        }
    }

    /// A parameter of a module: a number, or `Y` or `N`.
    pub(super) fn module_parameter(&self, name: &'static str) -> String {
        let text = self.sysctl(name);
        match text.as_str() {
            "true" => "Y".to_owned(),
            "false" => "N".to_owned(),
            _ => text,
        }
    }

    pub(super) fn set_module_parameter(&mut self, name: &'static str, value: &str) -> Result<(), String> {
        let is_bool = Parameter::by_name(name).is_some_and(|parameter| parameter.values == Values::Bool);
        let flag = is_bool.then(|| kernel_bool(value).ok_or("`Y` or `N`")).transpose()?;
        let value = flag.map_or(value.to_owned(), |flag| flag.to_string());
        self.set_sysctl(name, &value)?;
        self.core.zswap_start_worker();
        Ok(())
    }
}
