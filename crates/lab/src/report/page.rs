//! The page: sentences, charts, bars, tables and texts in order, as one HTML document.

use std::fmt::Write;

use serde_json::Value;

use super::bars::Bars;
use super::chart::{Band, Chart, Lanes};
use super::cover_letter::{self, Letter};
use super::escape::{html, json};
use super::heat::{Heat, Regions};

const CSS: &str = include_str!("assets/page.css");
const JS: &str = include_str!("assets/page.js");
pub(crate) const UPLOT_CSS: &str = include_str!("assets/uPlot.min.css");
pub(crate) const UPLOT_JS: &str = include_str!("assets/uPlot.iife.min.js");
pub(crate) const UPLOT_LICENCE: &str = include_str!("assets/LICENSE-uPlot");

/// The looks of all pages.
pub(crate) fn page_css() -> &'static str {
    CSS
}

/// A page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    /// What it is about.
    pub(crate) title: String,
    /// How it was asked for.
    pub(crate) of: String,
    /// What happened, in sentences: the first thing to read.
    pub(crate) story: Vec<String>,
    pub(crate) parts: Vec<Part>,
}

/// A part of it.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Chart(Chart),
    /// Lines that are estimates, with the spread of each.
    Estimates {
        chart: Chart,
        bands: Vec<Band>,
    },
    /// Lines of runs, with the spread of each over what is not known.
    Spread {
        chart: Chart,
        bands: Vec<Band>,
    },
    Lanes(Lanes),
    Bars(Bars),
    Heat(Heat),
    Table(Table),
    /// All publications that the page is about.
    Letters {
        title: String,
        says: String,
        letters: Vec<Letter>,
    },
    /// One of them; parts that follow are about it.
    Letter(Letter),
    /// Sentences, a paragraph per line; indented lines belong to the one above. They wrap at every width.
    Prose {
        title: String,
        text: String,
    },
    /// A text as the terminal has it, whose columns stay; folded away unless it is open. Sentences are [`Part::Prose`].
    Text {
        title: String,
        text: String,
        is_open: bool,
    },
}

/// Rows below a heading, the first of them.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) says: String,
    pub(crate) rows: Vec<Vec<String>>,
    /// So many columns are words; the others are figures.
    pub(crate) words: usize,
    /// Words again in the last columns.
    pub(crate) last_words: usize,
}

impl Page {
    pub(super) fn to_html(&self) -> String {
        let mut charts: Vec<Value> = Vec::new();
        let mut body = format!(
            "<header><h1>{}</h1><p class=\"of\">{}</p></header>\n",
            html(&self.title),
            html(&self.of)
        );
        if !self.story.is_empty() {
            body += "<section class=\"story\" aria-label=\"What happened\">";
            self.story.iter().for_each(|says| _ = write!(body, "<p>{}</p>", html(says)));
            body += "</section>\n";
        }
        for part in &self.parts {
            part.to_html(&mut body, &mut charts);
        }
        let data = json(&Value::Array(charts));
        let title = html(&self.title);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src \
             'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <link rel=\"icon\" href=\"data:,\">\n<style>{UPLOT_CSS}\n{CSS}</style>\n</head>\n<body>\n\
             <button id=\"theme\" type=\"button\" hidden>light or dark</button>\n<main>\n{body}</main>\n\
             <footer><p>pageout {}. Lines are drawn by uPlot; its licence is in the source of this page.</p></footer>\n\
             <script type=\"application/json\" id=\"charts\">{data}</script>\n\
             <script>\n/*\nuPlot\n{UPLOT_LICENCE}*/\n{UPLOT_JS}\n</script>\n<script>\n{JS}</script>\n</body>\n</html>\n",
            env!("CARGO_PKG_VERSION"),
        )
    }
}

impl Part {
    fn to_html(&self, body: &mut String, charts: &mut Vec<Value>) {
        let (title, says) = match self {
            Part::Chart(Chart { title, says, .. })
            | Part::Estimates { chart: Chart { title, says, .. }, .. }
            | Part::Spread { chart: Chart { title, says, .. }, .. }
            | Part::Lanes(Lanes { title, says, .. })
            | Part::Bars(Bars { title, says, .. })
            | Part::Heat(Heat { title, says, .. })
            | Part::Table(Table { title, says, .. })
            | Part::Letters { title, says, .. } => (title.as_str(), says.as_str()),
            Part::Letter(letter) => {
                let (id, title) = (html(&letter.id), html(&letter.title));
                _ = writeln!(
                    body,
                    "<section id=\"{id}\"><h2>{title}</h2>{}</section>",
                    cover_letter::head(letter)
                );
                return;
            }
            Part::Prose { title, text } => {
                let lines = text.lines().filter(|line| !line.trim().is_empty());
                let paragraph = |line: &str| {
                    let class = if line.starts_with(' ') { " class=\"below\"" } else { "" };
                    format!("<p{class}>{}</p>", html(line.trim()))
                };
                let paragraphs: String = lines.map(paragraph).collect();
                _ = writeln!(
                    body,
                    "<details open><summary>{}</summary><div class=\"prose\">{paragraphs}</div></details>",
                    html(title)
                );
                return;
            }
            Part::Text { title, text, is_open } => {
                let open = if *is_open { " open" } else { "" };
                _ = writeln!(
                    body,
                    "<details{open}><summary>{}</summary><div class=\"copyable\"><pre>{}</pre></div></details>",
                    html(title),
                    html(text)
                );
                return;
            }
        };
        _ = write!(body, "<section><h2>{}</h2>", html(title));
        if !says.is_empty() {
            _ = write!(body, "<p>{}</p>", html(says));
        }
        let mut place = |chart: Value| {
            let label = html(&format!("{title}. {says} The tables have the figures."));
            _ = write!(
                body,
                "<div class=\"chart\" data-chart=\"{}\" tabindex=\"0\" role=\"group\" aria-label=\"{label}\"><noscript>This chart \
                 needs scripts; the tables have its figures.</noscript></div>",
                charts.len()
            );
            charts.push(chart);
        };
        match self {
            Part::Chart(chart) | Part::Estimates { chart, .. } => place(chart.json()),
            Part::Spread { chart, bands } => place(chart.json_with(bands)),
            Part::Lanes(lanes) => place(lanes.json()),
            Part::Bars(bars) => *body += &bars.to_html(),
            Part::Heat(heat) => {
                let (title, says) = (String::new(), String::new());
                let table = Table { title, says, rows: heat.table(), words: 1, last_words: 0 };
                _ = write!(
                    body,
                    "{}{}<details class=\"heat-table\"><summary>The same as a table</summary>{}</details>",
                    heat.regions.as_ref().map_or(String::new(), Regions::switch),
                    heat.to_html(),
                    table.to_html()
                );
                if let Some(regions) = &heat.regions {
                    let rows = regions.table(&heat.rows);
                    let (title, says) = (String::new(), String::new());
                    let table = Table { title, says, rows, words: 1, last_words: 0 };
                    _ = write!(
                        body,
                        "<details class=\"regions-table\"><summary>What DAMON found, as a table</summary>{}</details>",
                        table.to_html()
                    );
                }
            }
            Part::Table(table) => *body += &table.to_html(),
            Part::Letters { letters, .. } => *body += &cover_letter::list(letters),
            Part::Letter(_) | Part::Prose { .. } | Part::Text { .. } => unreachable!("done above"),
        }
        *body += "</section>\n";
    }
}

impl Table {
    fn to_html(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut text = "<div class=\"copyable\"><table>".to_string();
        for (at, row) in self.rows.iter().enumerate() {
            let is_heading = at == 0 && row.iter().any(|cell| !cell.is_empty());
            text += if is_heading { "<thead><tr>" } else { "<tr>" };
            for column in 0..columns {
                let cell = row.get(column).map_or("", String::as_str);
                let is_word = column < self.words || column + self.last_words >= columns;
                let class = if is_word { "" } else { " class=\"n\"" };
                // Names below another name are indented.
                let depth = cell.len() - cell.trim_start().len();
                let indent = if depth > 0 {
                    format!(" style=\"padding-left:{}ch\"", depth + 1)
                } else {
                    String::new()
                };
                let cell = html(cell.trim());
                _ = match (is_heading, column) {
                    // Nothing can be the heading of nothing: readers of screens would announce it.
                    _ if cell.is_empty() => write!(text, "<td{class}></td>"),
                    (true, _) => write!(text, "<th scope=\"col\"{class}>{cell}</th>"),
                    (_, 0) => write!(text, "<th scope=\"row\"{indent}>{cell}</th>"),
                    _ => write!(text, "<td{class}>{cell}</td>"),
                };
            }
            text += if is_heading { "</tr></thead>" } else { "</tr>" };
        }
        text + "</table></div>"
    }
}
