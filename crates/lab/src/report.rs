//! A result as a page to look at: one HTML file that needs nothing else, for `--report FILE.html`; or its curves and bars alone, for
//! `--report FILE.svg`.
//!
//! ```text
//!   command ─▶ Page: sentences, charts, bars, tables, texts ─page─▶ HTML ─file─▶ FILE.html
//!                                                             │
//!                  assets/: uPlot, page.css, page.js ─────────┘   charts are data; page.js draws them when the page opens
//! ```
//! The page has the content of the terminal output, with charts: first sentences, then the timeline, then all tables. Charts have aggregated figures,
//! so a page of millions of events opens immediately. Sentences, bars, tables and texts need no scripts.
//!
//! Names come from traces and scenarios: all text goes through [`escape`], and data through [`escape::json`]. The page's own policy
//! forbids it to load anything. Same result, same bytes.

mod bars; // differences with their intervals, as a picture that needs no script
mod chart; // lines over an axis, and spans of time: data for page.js
pub(crate) mod escape; // text that stays text
mod heat; // accesses by address and time
mod cover_letter; // publications and their reproduced rows
mod svg; // its curves and bars as a picture for papers
mod file; // whole or not at all
mod page; // parts in order, as HTML
mod scenario; // what was run

pub(crate) use bars::{Bar, Bars};
pub(crate) use chart::{Axis, Band, Chart, Colour, Lanes, Line, Shape, Span, Unit};
pub(crate) use cover_letter::{Badge, Letter};
pub(crate) use file::{Picture, check_name};
pub(crate) use heat::{Heat, HeatRegion, Regions, RegionsAt};
pub(crate) use page::{Page, Part, Table, UPLOT_CSS, UPLOT_JS, UPLOT_LICENCE, page_css};
pub(crate) use scenario::scenario;
