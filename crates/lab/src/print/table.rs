//! Columns of text, aligned: names to the left, figures to the right.

use comfy_table::{CellAlignment, Table, presets};

/// Lays out `rows`; the first `left` columns are names. The first row is the heading.
pub(crate) fn layout(rows: &[Vec<String>], left: usize) -> String {
    layout_by(rows, |column| column >= left)
}

/// Lays out `rows`; of each column it is asked whether it holds figures.
pub(crate) fn layout_by(rows: &[Vec<String>], is_figure: impl Fn(usize) -> bool) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        column.set_cell_alignment(if is_figure(index) { CellAlignment::Right } else { CellAlignment::Left });
    }
    table.lines().map(|line| line.trim_end().to_string() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_left_and_figures_right() {
        let row = |cells: [&str; 3]| cells.map(str::to_string).to_vec();
        let text = layout(&[row(["task", "hits", "time"]), row(["é", "1,000", "2 us"])], 1);
        assert_eq!(text, "task   hits  time\né     1,000  2 us\n");
    }
}
