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
}
