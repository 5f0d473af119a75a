//! Markdown tables, and the figures in them: medians, to the digits a measurement is good for.

use std::fmt::Write;

/// A table with a heading for each column.
#[derive(Debug)]
pub(crate) struct Table(String);

impl Table {
    pub(crate) fn new(headings: &[&str]) -> Self {
        let rule = format!("|---|{}", "---:|".repeat(headings.len() - 1));
        Self(format!("| {} |\n{rule}\n", headings.join(" | ")))
    }

    pub(crate) fn row(&mut self, cells: &[String]) {
        writeln!(self.0, "| {} |", cells.join(" | ")).expect("a string takes everything");
    }

    pub(crate) fn into_markdown(self) -> String {
        self.0
    }
}

/// The middle value; the upper one of an even number. None of nothing.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// A figure, or a dash where there is none.
pub(crate) fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), figure)
}

/// Three digits or so.
pub(crate) fn figure(value: f64) -> String {
    match value.abs() {
        0.0..1.0 => format!("{value:.3}"),
        1.0..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
