//! A page for whoever asks: the tries of a request, and what is counted.

use crate::core::Core;
use crate::page_alloc::request::{Request, Rights};
use crate::page_alloc::watermark::Watermark;
use crate::stat::PGALLOC;
use crate::units::{MemcgId, Pfn};

impl Core {
    /// Pages for a request. Where no zone passes the low mark, nor the minimum, any free page will do.
    #[inline]
    pub(crate) fn alloc_pages(&mut self, request: &Request, memcg: MemcgId) -> Option<Pfn> {
        self.try_alloc(request, Watermark::Low, Rights::empty(), memcg)
            .or_else(|| self.try_alloc(request, Watermark::Min, Rights::empty(), memcg))
            .or_else(|| self.try_alloc(request, Watermark::Min, Rights::NO_WATERMARKS, memcg))
    }

    /// One walk over the zones of a request's list. `None`: none of them passes the mark.
    #[inline]
    pub(crate) fn try_alloc(
        &mut self,
        request: &Request,
        mark: Watermark,
        rights: Rights,
        memcg: MemcgId,
    ) -> Option<Pfn> {
        let (zone, pfn) = self.memory.alloc(request, mark, rights, memcg)?;
        let node = self.memory.folios[pfn].node;
        self.count_node(node, PGALLOC[zone as usize], 1 << request.order);
        Some(pfn)
    }
}
