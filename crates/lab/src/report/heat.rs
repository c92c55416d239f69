//! The heat map: accesses by address and time, darker where more, with a mark where pages were promoted. Drawn here, so that it needs no
//! scripts and works on paper, too. A table next to it has its figures, for readers without a mouse or without colours.

use std::fmt::Write;

use super::escape::html;
use crate::print::figures;

/// Pixels: total width, height of a row, margin of addresses, margin of times.
const WIDTH: f64 = 900.0;
const ROW: f64 = 9.0;
const ADDRESSES: f64 = 200.0;
const TIMES: f64 = 26.0;
/// Letters of a name that fit there.
const LETTERS: usize = 32;
/// Rows and columns of the table at most.
const TABLE: (usize, usize) = (16, 8);

/// A map.
#[derive(Clone, Debug)]
pub(crate) struct Heat {
    pub(crate) title: String,
    pub(crate) says: String,
    /// How long a column is.
    pub(crate) span_ns: u64,
    /// What each row begins with.
    pub(crate) rows: Vec<String>,
    /// Accesses of each row, by column.
    pub(crate) accesses: Vec<Vec<u64>>,
    /// Pages of each row that were promoted, by column.
    pub(crate) promoted: Vec<Vec<u64>>,
    /// The regions that DAMON found, over the accesses.
    pub(crate) regions: Option<Regions>,
}

/// Regions of DAMON at the ends of windows, in order of time.
#[derive(Clone, Debug)]
pub(crate) struct Regions {
    /// The number of the map on its page, for the switch.
    pub(crate) number: usize,
    pub(crate) windows: Vec<RegionsAt>,
}

/// Regions at the end of a window.
#[derive(Clone, Debug)]
pub(crate) struct RegionsAt {
    pub(crate) at_ns: u64,
    pub(crate) regions: Vec<HeatRegion>,
}

/// A region over the rows of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeatRegion {
    /// Its first row, with the part of the row above it.
    pub(crate) from: f64,
    /// The row behind its last one.
    pub(crate) to: f64,
    /// The share of its samples that found an access, 0 to 1.
    pub(crate) share: f64,
}

impl RegionsAt {
    /// The share of samples with an access in rows, as a mean over their addresses.
    fn share(&self, from: f64, to: f64) -> f64 {
        let (mut sum, mut all) = (0.0, 0.0);
        for region in &self.regions {
            let rows = (region.to.min(to) - region.from.max(from)).max(0.0);
            sum += rows * region.share;
            all += rows;
        }
        if all > 0.0 { sum / all } else { 0.0 }
    }
}

impl Regions {
    /// The switch that shows or hides the regions of the map behind it.
    pub(super) fn switch(&self) -> String {
        let number = self.number;
        format!(
            "<input type=\"checkbox\" class=\"regions-switch\" id=\"regions-{number}\" checked><label for=\"regions-{number}\">Regions of \
             DAMON</label>"
        )
    }

    /// Edges of regions as lines, and below each row a line as long as the share of its samples that found an access. A window begins where the one
    /// before ends.
    fn draw(&self, rows: usize, x_of: impl Fn(u64) -> f64) -> String {
        let (mut edges, mut found) = (String::new(), String::new());
        let mut from = x_of(0);
        for window in &self.windows {
            let to = x_of(window.at_ns);
            let mut last = f64::NEG_INFINITY;
            let ends = window.regions.last().map(|region| region.to);
            for edge in window.regions.iter().map(|region| region.from).chain(ends) {
                let y = (2.0 * ROW * edge).round() / 2.0;
                if y > last {
                    _ = write!(edges, "M{from:.1} {y}H{to:.1}");
                    last = y;
                }
            }
            for row in 0..rows {
                let share = window.share(row as f64, row as f64 + 1.0);
                if share > 0.0 {
                    let (y, x) = (ROW * (row as f64 + 1.0) - 2.0, from + share * (to - from));
                    _ = write!(found, "M{from:.1} {y}H{x:.1}");
                }
            }
            from = to;
        }
        format!(
            "<g class=\"regions\"><path class=\"edge\" d=\"{edges}\"/><path class=\"found\" d=\"{found}\"/></g>"
        )
    }

    /// The share of samples that found an access, by row and window, for a table.
    pub(super) fn table(&self, names: &[String]) -> Vec<Vec<String>> {
        let of_row = names.len().div_ceil(TABLE.0).max(1);
        let every = self.windows.len().div_ceil(TABLE.1).max(1);
        let windows = || self.windows.iter().step_by(every);
        let mut heading = vec!["from".to_string()];
        heading.extend(windows().map(|window| figures::time(window.at_ns)));
        let rows = names.iter().enumerate().step_by(of_row).map(|(row, name)| {
            let to = (row + of_row).min(names.len()) as f64;
            let shares = windows().map(|window| format!("{:.0} %", 100.0 * window.share(row as f64, to)));
            std::iter::once(name.clone()).chain(shares).collect()
        });
        std::iter::once(heading).chain(rows).collect()
    }
}

impl Heat {
    pub(super) fn to_html(&self) -> String {
        let columns = self.accesses.first().map_or(0, Vec::len);
        let column_width = (WIDTH - ADDRESSES) / columns.max(1) as f64;
        let height = ROW * self.accesses.len() as f64 + TIMES;
        let most = self.accesses.iter().flatten().copied().max().unwrap_or(0).max(1);
        // A tenth of the accesses is half as dark, by and large: counts of pages differ by orders of magnitude.
        let shade = |accesses: u64| (accesses as f64).ln_1p() / (most as f64).ln_1p();
        let mut svg = format!(
            "<svg class=\"heat\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
            html(&format!("{}. {}", self.title, self.says))
        );
        for (row, (accesses, promoted)) in self.accesses.iter().zip(&self.promoted).enumerate() {
            let y = ROW * row as f64;
            for (column, (&accesses, &promoted)) in accesses.iter().zip(promoted).enumerate() {
                let x = ADDRESSES + column_width * column as f64;
                if accesses > 0 {
                    _ = write!(
                        svg,
                        "<rect class=\"warm\" x=\"{x:.1}\" y=\"{y}\" width=\"{column_width:.1}\" height=\"{ROW}\" opacity=\"{:.2}\"><title>{} accesses, {} \
                         pages promoted</title></rect>",
                        0.08 + 0.92 * shade(accesses),
                        figures::count(accesses),
                        figures::count(promoted)
                    );
                }
                if promoted > 0 {
                    let (x, y) = (x + column_width / 2.0, y + ROW / 2.0);
                    _ = write!(svg, "<circle class=\"promoted\" cx=\"{x:.1}\" cy=\"{y}\" r=\"2.5\"/>");
                }
            }
        }
        if let Some(regions) = &self.regions {
            let x_of = |at_ns: u64| {
                let column = at_ns as f64 / self.span_ns.max(1) as f64;
                ADDRESSES + column_width * column.min(columns as f64)
            };
            svg += &regions.draw(self.accesses.len(), x_of);
        }
        let bottom = height - TIMES / 3.0;
        for column in [0, columns / 2, columns] {
            let at = figures::time(self.span_ns * column as u64);
            let x = ADDRESSES + column_width * column as f64;
            let anchor = if column == columns { "end" } else { "start" };
            _ = write!(
                svg,
                "<text class=\"tick\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{bottom}\">{at}</text>"
            );
        }
        for row in [0, self.accesses.len() / 2, self.accesses.len().saturating_sub(1)] {
            let Some(name) = self.rows.get(row) else { continue };
            let name: String = name.chars().take(LETTERS).collect();
            let y = ROW * (row as f64 + 1.0);
            _ = write!(
                svg,
                "<text class=\"tick\" text-anchor=\"start\" x=\"0\" y=\"{y}\">{}</text>",
                html(&name)
            );
        }
        svg + "</svg>"
    }

    /// The accesses of the map in fewer rows and columns, for a table.
    pub(super) fn table(&self) -> Vec<Vec<String>> {
        let columns = self.accesses.first().map_or(0, Vec::len);
        let (of_row, of_column) =
            (self.accesses.len().div_ceil(TABLE.0).max(1), columns.div_ceil(TABLE.1).max(1));
        let mut heading = vec!["from".to_string()];
        heading.extend((0..columns).step_by(of_column).map(|at| figures::time(self.span_ns * at as u64)));
        let rows = self.accesses.chunks(of_row).zip(self.rows.iter().step_by(of_row));
        let rows = rows.map(|(rows, name)| {
            let sum =
                |at: usize| rows.iter().flat_map(|row| row.iter().skip(at).take(of_column)).sum::<u64>();
            let counts = (0..columns).step_by(of_column).map(|at| figures::count(sum(at)));
            std::iter::once(name.clone()).chain(counts).collect()
        });
        std::iter::once(heading).chain(rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accessed_most_is_darkest_and_promotions_are_marked() {
        let heat = Heat {
            title: "By <address>".to_string(),
            says: String::new(),
            span_ns: 1_000_000,
            rows: vec!["web, page 0".to_string(), "web, page 64".to_string()],
            accesses: vec![vec![0, 10], vec![1000, 0]],
            promoted: vec![vec![0, 3], vec![0, 0]],
            regions: None,
        };
        let svg = heat.to_html();
        assert_eq!(svg.matches("<rect").count(), 2);
        assert_eq!(svg.matches("<circle").count(), 1);
        assert!(svg.contains("opacity=\"1.00\"") && svg.contains("10 accesses, 3 pages promoted"), "{svg}");
        assert!(svg.contains("By &lt;address&gt;") && svg.contains("web, page 64"), "{svg}");
        let expected = [
            vec!["from", "0 ns", "1.00 ms"],
            vec!["web, page 0", "0", "10"],
            vec!["web, page 64", "1,000", "0"],
        ];
        assert_eq!(heat.table(), expected);
    }

    #[test]
    fn regions_of_damon_are_lines_over_the_accesses_with_a_switch_and_a_table() {
        let region = |from, to, share| HeatRegion { from, to, share };
        let regions = Regions {
            number: 7,
            windows: vec![
                RegionsAt { at_ns: 1_000_000, regions: vec![region(0.0, 0.5, 1.0), region(0.5, 2.0, 0.0)] },
                RegionsAt { at_ns: 2_000_000, regions: vec![region(0.0, 2.0, 0.25)] },
            ],
        };
        let heat = Heat {
            title: "By address".to_string(),
            says: String::new(),
            span_ns: 1_000_000,
            rows: vec!["0".to_string(), "4096".to_string()],
            accesses: vec![vec![0, 10], vec![1000, 0]],
            promoted: vec![vec![0, 0], vec![0, 0]],
            regions: Some(regions.clone()),
        };
        let svg = heat.to_html();
        // The first window has three edges and the second one two; the columns are from 200 to 550 and to 900.
        let edges = "M200.0 0H550.0M200.0 4.5H550.0M200.0 18H550.0M550.0 0H900.0M550.0 18H900.0";
        assert!(svg.contains(&format!("class=\"edge\" d=\"{edges}\"")), "{svg}");
        // Half of the first row is always accessed, so its line is half as long; then a quarter of both.
        let found = "M200.0 7H375.0M550.0 7H637.5M550.0 16H637.5";
        assert!(svg.contains(&format!("class=\"found\" d=\"{found}\"")), "{svg}");
        assert!(regions.switch().contains("id=\"regions-7\" checked"), "{}", regions.switch());
        let expected =
            [vec!["from", "1.00 ms", "2.00 ms"], vec!["0", "50 %", "25 %"], vec!["4096", "0 %", "25 %"]];
        assert_eq!(regions.table(&heat.rows), expected);
        assert!(!Heat { regions: None, ..heat }.to_html().contains("class=\"regions\""));
    }
}
