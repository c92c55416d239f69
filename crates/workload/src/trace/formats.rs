//! The formats of traces, one row each: together with a reader, that is all that a new format needs.
//!
//! A row has the variant of [`Format`](super::format::Format), the name by which an option forces it, what it is, its
//! row of facts, and what makes its reader. Two files expand the table: `format.rs` makes the names of it, which readers
//! use, and `open.rs` makes the readers. So no reader has to be known to know the names.

/// Hands all rows to the macro `$made`.
macro_rules! for_each_format {
    ($made:ident) => {
        $made! {
            Pgt = "pgt", "pageout's own", Row {
                suffixes: &[".pgt"],
                magic: b"\x89PGT\r\n\x1a\n",
                has_header: true,
                uses: &[],
                ..BYTES
            }, |source, options| Ok(Box::new(super::pgt::PgtReader::new(source)?.with_page_size(options.page_size)?));
            OracleGeneral = "oracle-general", "of libCacheSim", Row {
                suffixes: &[".oraclegeneral", ".oraclegeneral.bin"],
                uses: &[Use::IgnoreSize, Use::PageIds, Use::ImplausibleOk],
                ..BYTES
            }, |source, options| Ok(Box::new(Replay::new(super::oracle_general::OracleGeneral::new(source, options), options)));
            Lcs = "lcs", "libCacheSim's, with a header", Row {
                suffixes: &[".lcs"],
                magic: b"\xf0\xde\xbc\x9a\x78\x56\x34\x12",
                uses: &[Use::IgnoreSize, Use::PageIds, Use::ImplausibleOk],
                ..BYTES
            }, |source, options| Ok(Box::new(Replay::new(super::lcs::Lcs::new(source, options)?, options)));
            Csv = "csv", "text with columns under their usual names: timestamp, volume, disk, host, file, offset, lba, size, op, ...", Row {
                suffixes: &[".csv", ".tsv"],
                has_header: true,
                uses: &[Use::IgnoreSize, Use::PageIds, Use::UnterminatedOk, Use::ImplausibleOk, Use::Columns],
                ..COLUMNS
            }, columns;
            Msr = "msr", "MSR Cambridge: text with known columns and units, with or without a header line, as in the next seven", COLUMNS, columns;
            Alibaba = "alibaba", "its block traces", COLUMNS, columns;
            Tencent = "tencent", "Alibaba's block storage", COLUMNS, columns;
            Spc = "spc", "the SPC file format, of UMass", Row { suffixes: &[".spc"], ..COLUMNS }, columns;
            Lis = "lis", "lines of a first block and a number of blocks, each as large as a page", Row { suffixes: &[".lis"], ..COLUMNS }, columns;
            Twitter = "twitter", "cache traces of Twitter's clusters: timestamp, key, key size, value size, client, operation, TTL", Row { uses: IDS, ..COLUMNS }, columns;
            Wikipedia = "wikipedia", "Wikimedia's caching data set of 2019, upload or text, with tabs", Row { uses: IDS, ..COLUMNS }, columns;
            Lrb = "lrb", "LRB's: time, id and size, with blanks", Row { uses: IDS, ..COLUMNS }, columns;
            Parquet = "parquet", "columns as in csv, in releases and in Python", Row {
                suffixes: &[".parquet"],
                magic: b"PAR1",
                has_header: true,
                uses: &[Use::IgnoreSize, Use::PageIds, Use::ImplausibleOk, Use::Columns],
                ..BYTES
            }, super::parquet::open;
            Vscsi = "vscsi", "SPC trace files (UMass)", Row {
                suffixes: &[".vscsi", ".vscsi1", ".vscsi2"],
                uses: &[Use::PageIds, Use::ImplausibleOk],
                ..BYTES
            }, |source, options| Ok(Box::new(Replay::new(super::vscsi::Vscsi::new(source, options)?, options)));
            FioIolog = "fio-iolog", "fio's I/O log, versions 2 and 3", Row {
                suffixes: &[".iolog", ".fio"],
                magic: b"fio version ",
                has_header: true,
                ..COLUMNS
            }, |source, options| Ok(Box::new(Replay::new(super::fio_iolog::FioIolog::new(source, options)?, options)));
            // A list of u32 pages below 2^28 reads the same as words, so the ground truth's `.u32` may mean the latter. From 2^28 on they differ, and
            // no word shows which one was meant; see [`Format::says_words`].
            Words = "words", "u32: bit 31 write, bits 30..28 object, bits 27..0 page; the meaning of .u32, unless the numbers can hardly be words", Row {
                suffixes: &[".u32", ".words"],
                ..BYTES
            }, |source, options| Ok(Box::new(Replay::new(super::words::Words::new(source, options), options)));
            PagesText = "pages-text", "one page number per line, decimal or 0x", Row {
                suffixes: &[".pages-text", ".pages"],
                is_text: true,
                uses: &[Use::PageIds, Use::UnterminatedOk],
                ..BYTES
            }, |source, options| Ok(Box::new(Replay::new(super::pages_text::PagesText::new(source, options), options)));
            PagesU32 = "pages-u32", "page numbers, which are not words from 2^28 on", Row { suffixes: &[".pages-u32", ".pages32"], ..BYTES },
                |source, options| Ok(Box::new(Replay::new(super::page_list::PageList::of_u32(source), options)));
            PagesU64 = "pages-u64", "page numbers", Row {
                suffixes: &[".pages-u64", ".pages64", ".u64"],
                ..BYTES
            }, |source, options| Ok(Box::new(Replay::new(super::page_list::PageList::of_u64(source), options)));
        }
    };
}
pub(super) use for_each_format;
