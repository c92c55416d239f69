//! `pageout trace info`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use pageout_study::result::requests::{self, Deletes};
use pageout_study::scenario::interpretation;
use pageout_workload::trace::{self, Column, TraceInfo};
use serde_json::{Value, json};

use super::read_options;
use crate::cli::ReadingOptions;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::{Layout, figures, progress};

/// Reads each trace and prints what is in it. Nothing is printed of a trace that can't be read to its end.
pub(crate) fn info(traces: &[PathBuf], reading: &ReadingOptions, cx: &Context) -> Outcome {
    let read = read_options(reading)?;
    let mut infos = Vec::new();
    for path in traces {
        let bar = progress::bar(&cx.output, file_length(path), &path.to_string_lossy());
        let info = trace::info(path, &read, &mut |bytes| bar.set_position(bytes));
        bar.finish_and_clear();
        infos.push(info.map_err(|error| Failure::Input(error.into()))?);
    }
    if cx.output.is_data() {
        let list: Vec<Value> = traces.iter().zip(&infos).map(|(path, info)| to_json(path, info)).collect();
        return cx.output.print_json(&list);
    }
    let texts: Vec<String> =
        traces.iter().zip(&infos).map(|(path, info)| to_text(path, info, cx.layout())).collect();
    cx.output.print_text(&texts.join("\n"))
}

/// Bytes in a file, for the progress bar.
pub(super) fn file_length(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len())
}

fn to_json(path: &Path, info: &TraceInfo) -> Value {
    json!({
        "trace": path.to_string_lossy(),
        "format": info.interpretation.format.name(),
        "file_bytes": file_length(path).unwrap_or(info.file_bytes),
        "page_bytes": info.interpretation.page_size,
        "columns": info.interpretation.columns.iter().map(column).collect::<Vec<_>>(),
        "doubts": info.interpretation.doubts,
        "records": info.records,
        "requests": info.requests.as_ref().map(requests::json),
        "has_neighbours": info.interpretation.has_neighbours,
        "records_without_access": info.records_without_access,
        "accesses": info.accesses,
        "reads": info.writes.map(|writes| info.accesses - writes),
        "writes": info.writes,
        "objects": info.objects,
        "distinct_pages": info.distinct_pages,
        "pages_accessed_once": info.pages_accessed_once,
        "request_bytes": info.request_bytes,
        "time_span": info.time_span.map(|span| json!({ "first": span.first, "last": span.last, "unit": span.unit })),
        "share_of_top_1_percent": info.share_of_top_1_percent,
        "share_of_top_10_percent": info.share_of_top_10_percent,
        "reuse_gaps_log2": info.reuse_gaps_log2,
    })
}

fn column(column: &Column) -> Value {
    json!({
        "place": column.place,
        "name": (!column.name.is_empty()).then_some(&column.name),
        "holds": column.holds.name(),
        "unit_bytes": column.holds.unit(),
    })
}

fn to_text(path: &Path, info: &TraceInfo, layout: Layout) -> String {
    let page_size = u64::from(info.interpretation.page_size);
    let pages =
        |pages: u64| format!("{} pages ({})", figures::count(pages), figures::bytes(pages * page_size));
    let mut text = format!("{}\n", path.display());
    // The file's own length, since a reader that jumps about in it does not count every byte once.
    let length = file_length(path).unwrap_or(info.file_bytes);
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<20}{value}");
    };
    row("format", format!("{}, {}", info.interpretation.format, figures::bytes(length)));
    if !info.interpretation.columns.is_empty() {
        row("columns", interpretation::columns(&info.interpretation));
    }
    row("page size", figures::bytes(page_size));
    let idle = match info.records_without_access {
        None | Some(0) => String::new(),
        Some(idle) => {
            format!(
                ", {} of them without an access (syncs, deletes, skipped operations, sizes of 0)",
                figures::count(idle)
            )
        }
    };
    row("records", format!("{}{idle}", figures::count(info.records)));
    let writes = match info.writes {
        Some(writes) => format!("{} are writes", figures::percent(figures::share(writes, info.accesses))),
        None => "it is not said which are writes".to_string(),
    };
    row("accesses", format!("{}, {writes}", figures::count(info.accesses)));
    row("objects", figures::count(info.objects));
    row("distinct pages", pages(info.distinct_pages));
    let once = figures::percent(figures::share(info.pages_accessed_once, info.distinct_pages));
    row("accessed only once", format!("{}, {once} of the pages", pages(info.pages_accessed_once)));
    row(
        "least miss ratio",
        format!("{} (first accesses)", figures::percent(figures::share(info.distinct_pages, info.accesses))),
    );
    if let Some(bytes) = info.request_bytes {
        row("bytes asked for", figures::bytes(bytes));
    }
    if let Some(span) = info.time_span {
        row("time", format!("{} to {} {}", span.first, span.last, span.unit));
    }
    row(
        "popularity",
        format!(
            "the top 1% of the pages get {} of the accesses, the top 10% get {}",
            figures::percent(info.share_of_top_1_percent),
            figures::percent(info.share_of_top_10_percent)
        ),
    );
    text += &reuse(info);
    let says = info.requests.iter().flat_map(|of| requests::says(of, Deletes::Played));
    for says in says {
        text += &layout.wrap(&format!("{says}."), "  ");
    }
    for doubt in &info.interpretation.doubts {
        text += &layout.wrap(&format!("Note: {doubt}."), "  ");
    }
    text
}

/// How soon pages come back, as bars: where the bulk lies is about the memory it takes to catch it.
fn reuse(info: &TraceInfo) -> String {
    const BAR: u64 = 40;
    let (sum, most) =
        (info.reuse_gaps_log2.iter().sum::<u64>(), info.reuse_gaps_log2.iter().max().copied().unwrap_or(0));
    if most == 0 {
        return "  no page is accessed twice\n".to_string();
    }
    let mut text = "  accesses from one of a page to its next:\n".to_string();
    for (power, &count) in info.reuse_gaps_log2.iter().enumerate() {
        let bar = "#".repeat((count * BAR).div_ceil(most) as usize);
        let share = figures::percent(figures::share(count, sum));
        let _ =
            writeln!(text, "  {:>14} {share:>8} {bar}", format!("{} or more", figures::count(1 << power)));
    }
    text
}
