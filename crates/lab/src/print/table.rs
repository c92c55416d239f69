//! Columns of text, aligned: names to the left, figures to the right. A table that is wider than the terminal goes on below, with its names again.

use comfy_table::{CellAlignment, Table, presets};

use super::form::Form;
use super::layout::Layout;
use super::visible;

/// Characters between two columns.
const GAP: usize = 2;

/// Characters that a column of words keeps at least, where it is wrapped to fit.
const WORDS_MIN: usize = 12;

impl Layout {
    /// Lays out `rows`; the first `left` columns are names. The first row is the heading.
    pub(crate) fn table(self, rows: &[Vec<String>], left: usize) -> String {
        self.table_by(rows, |column| column >= left)
    }

    /// Lays out `rows`; of each column it is asked whether it holds figures.
    pub(crate) fn table_by(self, rows: &[Vec<String>], is_figure: impl Fn(usize) -> bool) -> String {
        match self.form {
            Form::Markdown => markdown(rows, is_figure),
            _ => within(rows, &is_figure, &|_| false, self.room()),
        }
    }

    /// Lays out `rows` with one column of names; a joined column stays next to the one before it.
    pub(crate) fn table_joined(self, rows: &[Vec<String>], is_joined: impl Fn(usize) -> bool) -> String {
        match self.form {
            Form::Markdown => markdown(rows, |column| column > 0),
            _ => within(rows, &|column| column > 0, &is_joined, self.room()),
        }
    }

    fn room(self) -> usize {
        self.columns.unwrap_or(usize::MAX)
    }
}

/// `rows` as a table of Markdown. Its first row is a heading, whatever it is.
fn markdown(rows: &[Vec<String>], is_figure: impl Fn(usize) -> bool) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let line =
        |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    let cell = |row: &[String], column: usize| {
        let cell = row.get(column).map_or("", String::as_str);
        // Names below another name are indented.
        let depth = cell.len() - cell.trim_start().len();
        "&nbsp;".repeat(depth) + &visible::lines(cell.trim()).replace('|', "\\|").replace('\n', " ")
    };
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        text += &line(&mut (0..columns).map(|column| cell(row, column)));
        if at == 0 {
            let rule = |column| if is_figure(column) { "---:" } else { "---" }.to_string();
            text += &line(&mut (0..columns).map(rule));
        }
    }
    text
}

/// Lays out `rows` in lines of at most `room` characters, if the figures permit it.
fn within(
    rows: &[Vec<String>],
    is_figure: &impl Fn(usize) -> bool,
    is_joined: &impl Fn(usize) -> bool,
    room: usize,
) -> String {
    let all: Vec<usize> = (0..rows.iter().map(Vec::len).max().unwrap_or(0)).collect();
    let whole = table(rows, &all, is_figure);
    let taken = |widths: &[usize]| widths.iter().map(|width| width + GAP).sum::<usize>();
    let widths = widths(&whole);
    // Nothing follows the last column.
    let room = room.saturating_add(GAP);
    if taken(&widths) <= room || all.is_empty() {
        return lines(&whole);
    }
    // If all cells are figures, the first one names the row.
    let names = all.iter().take_while(|&&column| !is_figure(column)).count().max(1);
    // Other cells get the rest of the line.
    let least = |column| if is_figure(column) { widths[column] } else { widths[column].min(WORDS_MIN) };
    let widest = (names..all.len()).map(|column| least(column) + GAP).max();
    let for_names = (room.saturating_sub(widest.unwrap_or(0)) / names).saturating_sub(GAP).max(WORDS_MIN);
    let front = taken(&widths[..names].iter().map(|width| (*width).min(for_names)).collect::<Vec<_>>());
    let for_words = room.saturating_sub(front + GAP).max(WORDS_MIN);
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let cells = row.iter().enumerate();
            cells
                .map(|(column, cell)| match is_figure(column) {
                    true => cell.clone(),
                    false => wrapped(cell, if column < names { for_names } else { for_words }),
                })
                .collect()
        })
        .collect();
    let widths = self::widths(&table(&rows, &all, is_figure));
    let front = taken(&widths[..names]);
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut used = usize::MAX;
    let mut rest = &all[names..];
    while let [_, more @ ..] = rest {
        let (joined, others) =
            rest.split_at(1 + more.iter().take_while(|&&column| is_joined(column)).count());
        let width: usize = joined.iter().map(|&column| widths[column] + GAP).sum();
        if used.saturating_add(width) > room {
            parts.push(all[..names].to_vec());
            used = front;
        }
        used += width;
        parts.last_mut().expect("the first column began one").extend(joined);
        rest = others;
    }
    let parts: Vec<String> = parts.iter().map(|columns| lines(&table(&rows, columns, is_figure))).collect();
    parts.join("\n")
}

/// These columns of `rows`.
fn table(rows: &[Vec<String>], columns: &[usize], is_figure: &impl Fn(usize) -> bool) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
        .add_rows(rows.iter().map(|row| {
            columns.iter().filter_map(|&column| row.get(column)).map(|cell| visible::lines(cell))
        }));
    for (column, &index) in table.column_iter_mut().zip(columns) {
        column.set_padding((0, GAP as u16));
        column.set_cell_alignment(if is_figure(index) { CellAlignment::Right } else { CellAlignment::Left });
    }
    table
}

/// Characters of the widest line in each column.
fn widths(table: &Table) -> Vec<usize> {
    table.column_max_content_widths().into_iter().map(usize::from).collect()
}

fn lines(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_string() + "\n").collect()
}

/// Splits `cell` into lines of at most `most` characters, with equal indentation.
fn wrapped(cell: &str, most: usize) -> String {
    let lines = cell.lines().flat_map(|line| {
        let indent: String = line.chars().take_while(|c| *c == ' ').take(most / 2).collect();
        let mut lines = vec![String::new()];
        for word in line.split_whitespace() {
            let mut word = word;
            let line = lines.last_mut().expect("there is one from the beginning");
            if !line.is_empty() && indent.len() + line.chars().count() + 1 + word.chars().count() <= most {
                *line += " ";
                *line += word;
                continue;
            }
            if !line.is_empty() {
                lines.push(String::new());
            }
            // A word that is longer than a line goes on in the next.
            while let Some((at, _)) = word.char_indices().nth(most - indent.len()) {
                *lines.last_mut().expect("one was pushed") = word[..at].to_string();
                lines.push(String::new());
                word = &word[at..];
            }
            *lines.last_mut().expect("one was pushed") = word.to_string();
        }
        lines.into_iter().map(move |line| format!("{indent}{line}")).collect::<Vec<_>>()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows<const N: usize, const M: usize>(rows: [[&str; N]; M]) -> Vec<Vec<String>> {
        rows.map(|row| row.map(str::to_string).to_vec()).to_vec()
    }

    #[test]
    fn names_stand_left_and_figures_right() {
        let text = within(
            &rows([["task", "hits", "time"], ["é", "1,000", "2 us"]]),
            &|column| column >= 1,
            &|_| false,
            80,
        );
        assert_eq!(text, "task   hits  time\né     1,000  2 us\n");
    }

    #[test]
    fn a_table_wider_than_the_terminal_goes_on_below_with_its_names() {
        let table = rows([["task", "accesses", "misses", "runtime"], ["web", "1,000", "10", "2 us"]]);
        let figures = |column: usize| column >= 1;
        let narrow = within(&table, &figures, &|_| false, 24);
        assert_eq!(
            narrow,
            "task  accesses  misses\nweb      1,000      10\n\ntask  runtime\nweb      2 us\n"
        );
        assert_eq!(
            within(&table, &figures, &|_| false, 31),
            within(&table, &figures, &|_| false, usize::MAX)
        );
        assert_ne!(
            within(&table, &figures, &|_| false, 30),
            within(&table, &figures, &|_| false, usize::MAX)
        );
    }

    #[test]
    fn a_difference_stays_beside_its_figure() {
        let table = rows([["", "base", "other", "diff"], ["misses", "1,000", "10", "-99%"]]);
        let text = within(&table, &|column| column >= 1, &|column| column == 3, 22);
        assert_eq!(text, "         base\nmisses  1,000\n\n        other  diff\nmisses     10  -99%\n");
    }

    #[test]
    fn words_are_wrapped_where_they_leave_no_room_for_figures() {
        let table =
            rows([["", "a", "why"], ["  waiting for the swap device", "1,000,000", "x".repeat(50).as_str()]]);
        for room in [30, 40, 60] {
            let text = within(&table, &|column| column == 1, &|_| false, room);
            assert!(text.lines().all(|line| line.chars().count() <= room), "{room}:\n{text}");
            let letters = |text: &str| text.chars().filter(|c| *c == 'x').count();
            assert_eq!(letters(&text), 50, "nothing is lost:\n{text}");
            assert!(text.contains("  waiting"), "{text}");
        }
    }
}
