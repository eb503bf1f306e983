//! Tables: aligned columns that fit the terminal. Without a terminal no cell is cut.

use super::text;

const GAP: &str = "  ";
/// Without a terminal, one very wide cell does not pad all other rows beyond this width.
const WIDEST_PADDING: usize = 40;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    fit: Fit,
}

/// The widths that a column may have on a terminal.
#[derive(Debug, Clone, Copy)]
enum Fit {
    Whole,
    Between { least: usize, most: usize },
}

impl Column {
    /// A column that is never cut.
    pub(crate) const fn whole(title: &'static str) -> Self {
        let fit = Fit::Whole;
        Self { title, fit }
    }

    /// A column of at most `most` cells, which shrinks to `least` where space is short.
    pub(crate) const fn between(title: &'static str, least: usize, most: usize) -> Self {
        let fit = Fit::Between { least, most };
        Self { title, fit }
    }
}

#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, one cell for each column, with hostile text escaped. An empty cell becomes a dash.
    pub(crate) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        debug_assert_eq!(N, self.columns.len());
        let shown = cells.iter().map(|cell| match *cell {
            "" => "-".to_owned(),
            cell => text::visible(cell).into_owned(),
        });
        self.rows.push(shown.collect());
    }

    /// Removes a column with its cells.
    pub(crate) fn leave_out(&mut self, column: usize) {
        self.columns.remove(column);
        for row in &mut self.rows {
            row.remove(column);
        }
    }

    /// The lines of the table, none wider than the terminal.
    pub(crate) fn lines(&self, terminal: Option<usize>) -> Vec<String> {
        let widths = match terminal {
            Some(terminal) => self.fitting(terminal),
            None => self
                .natural()
                .into_iter()
                .map(|width| width.min(WIDEST_PADDING))
                .collect(),
        };
        let titles = self
            .columns
            .iter()
            .map(|column| column.title.to_owned())
            .collect();
        std::iter::once(&titles)
            .chain(&self.rows)
            .map(|row| match terminal {
                Some(terminal) => {
                    let cut: Vec<_> = row
                        .iter()
                        .zip(&widths)
                        .map(|(cell, &to)| text::cut(cell, to))
                        .collect();
                    text::cut(&join(&cut, &widths), terminal).into_owned()
                }
                None => join(row, &widths),
            })
            .collect()
    }

    fn natural(&self) -> Vec<usize> {
        let widest = |(index, column): (usize, &Column)| {
            let cells = self.rows.iter().map(|row| text::width(&row[index]));
            cells.chain([text::width(column.title)]).max().unwrap_or(0)
        };
        self.columns.iter().enumerate().map(widest).collect()
    }

    /// The widths on a terminal. The last column shrinks first: the first ones identify the row.
    fn fitting(&self, terminal: usize) -> Vec<usize> {
        let mut widths = self.natural();
        for (width, column) in widths.iter_mut().zip(&self.columns) {
            if let Fit::Between { most, .. } = column.fit {
                *width = (*width).min(most);
            }
        }
        let gaps = GAP.len() * self.columns.len().saturating_sub(1);
        let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(terminal);
        for (width, column) in widths.iter_mut().zip(&self.columns).rev() {
            if let Fit::Between { least, .. } = column.fit {
                let given = excess.min(width.saturating_sub(least));
                *width -= given;
                excess -= given;
            }
        }
        widths
    }
}

fn join<S: AsRef<str>>(cells: &[S], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, &to) in cells.iter().zip(widths) {
        let cell = cell.as_ref();
        line.push_str(cell);
        let missing = to.saturating_sub(text::width(cell));
        line.extend(std::iter::repeat_n(' ', missing));
        line.push_str(GAP);
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column::whole("ID"),
        Column::between("NAME", 4, 10),
        Column::between("COMMAND", 7, usize::MAX),
    ];

    fn table(rows: &[[&str; 3]]) -> Table {
        let mut table = Table::new(&COLUMNS);
        for row in rows {
            table.row(*row);
        }
        table
    }

    #[test]
    fn columns_align_and_lines_have_no_trailing_space() {
        let lines = table(&[["a", "", "x"], ["bbb", "nm", "y z"]]).lines(None);
        assert_eq!(
            lines,
            ["ID   NAME  COMMAND", "a    -     x", "bbb  nm    y z"]
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let long = "漢".repeat(100);
        let table = table(&[["shell-aaaaaaaaaa", &long, &long], ["b", "c", "d"]]);
        for terminal in [1, 10, 30, 80, 200] {
            for line in table.lines(Some(terminal)) {
                assert!(text::width(&line) <= terminal, "{terminal}: {line}");
            }
        }
    }

    #[test]
    fn the_last_column_shrinks_first() {
        let line = &table(&[["id", "name-name", "command command"]]).lines(Some(24))[1];
        assert_eq!(line, "id  name-name  command …");
        let line = &table(&[["id", "name-name", "command command"]]).lines(Some(18))[1];
        assert_eq!(line, "id  name…  comman…");
    }

    #[test]
    fn without_a_terminal_nothing_is_cut_and_one_wide_cell_pads_no_other_row() {
        let long = "x".repeat(10_000);
        let lines = table(&[["a", &long, "c"], ["b", "n", "d"]]).lines(None);
        assert!(lines[1].contains(&long));
        assert!(lines[2].len() < 60, "{}", lines[2].len());
    }

    /// S10
    #[test]
    fn a_hostile_name_stays_on_its_line() {
        let lines = table(&[["a", "x\n\x1b[31my", "c"]]).lines(None);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].contains("x\\n\\u{1b}[31my"));
    }
}
