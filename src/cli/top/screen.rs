//! What the screen shows: a heading, the table, and how to leave. Drawn anew with every look.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row as Cells, Table};

use super::glimpse::{COLUMNS, Glimpse, NOBODY};
use crate::cli::table::{Row, cell};

/// Names may be long; figures are not.
const WIDTHS: [Constraint; 7] = [
    Constraint::Fill(2),
    Constraint::Fill(3),
    Constraint::Fill(3),
    Constraint::Length(10),
    Constraint::Length(10),
    Constraint::Length(10),
    Constraint::Length(10),
];

/// Columns that are figures, and stand to the right.
const FIRST_FIGURE: usize = 3;

/// What is known, and what is wrong.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) glimpse: Glimpse,
    /// Why the figures are old; none while they are not.
    pub(super) notice: Option<String>,
    /// Rows passed over at the top.
    pub(super) passed: usize,
}

impl Screen {
    pub(super) fn new(glimpse: Glimpse) -> Self {
        Self { glimpse, notice: None, passed: 0 }
    }

    /// Goes down, or up where `by` is less than nothing, and not past the last row.
    pub(super) fn scroll(&mut self, by: isize) {
        let last = self.glimpse.rows.len().saturating_sub(1);
        self.passed = self.passed.saturating_add_signed(by).min(last);
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let parts = [Constraint::Length(3), Constraint::Min(0), Constraint::Length(1)];
        let [heading, body, foot] = Layout::vertical(parts).areas(frame.area());
        let lines: Vec<Line<'_>> = self.glimpse.heading().into_iter().map(Line::from).collect();
        frame.render_widget(Paragraph::new(lines), heading);
        self.draw_table(frame, body);
        frame.render_widget(Paragraph::new(self.foot()), foot);
    }

    fn draw_table(&self, frame: &mut Frame<'_>, area: Rect) {
        if self.glimpse.rows.is_empty() {
            frame.render_widget(Paragraph::new(NOBODY), area);
            return;
        }
        // A shorter list than before does not leave us past its end.
        let passed = self.passed.min(self.glimpse.rows.len() - 1);
        let rows = self.glimpse.rows[passed..].iter().map(cells);
        let head = Style::new().add_modifier(Modifier::REVERSED);
        let names = COLUMNS.iter().enumerate().map(|(at, name)| placed(at, (*name).to_owned()));
        let is_old = self.notice.is_some();
        let style = if is_old { Style::new().fg(Color::DarkGray) } else { Style::new() };
        let table = Table::new(rows, WIDTHS).header(Cells::new(names).style(head)).style(style);
        frame.render_widget(table, area);
    }

    fn foot(&self) -> Line<'_> {
        match &self.notice {
            Some(notice) => Line::styled(notice.as_str(), Style::new().fg(Color::Red)),
            None => Line::from("q quits, arrows scroll"),
        }
    }
}

fn cells(row: &Row) -> Cells<'static> {
    let cells = COLUMNS.iter().enumerate().map(|(at, name)| placed(at, cell(row, name)));
    let denied_now = row["denied/s"].as_f64().is_some_and(|rate| rate >= 1.0);
    let style = if denied_now { Style::new().fg(Color::Yellow) } else { Style::new() };
    Cells::new(cells).style(style)
}

fn placed(at: usize, text: String) -> Cell<'static> {
    let line = Line::from(text);
    Cell::from(if at < FIRST_FIGURE { line } else { line.right_aligned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    fn screen(rows: usize) -> Screen {
        let row = |number: usize| {
            let values = [
                json!("acme"),
                json!("byip"),
                json!(format!("key{number}\x1b[2J")),
                json!(1_234),
                json!(5),
                json!(0.5),
                json!(0.0),
            ];
            COLUMNS.iter().map(|name| (*name).to_owned()).zip(values).collect()
        };
        let rows = (0..rows).map(row).collect();
        Screen::new(Glimpse { server: "h:1".into(), tenants: 1, rows, ..Glimpse::default() })
    }

    fn drawn(screen: &Screen, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(80, height)).expect("it is memory");
        terminal.draw(|frame| screen.draw(frame)).expect("it is memory");
        terminal.backend().to_string()
    }

    #[test]
    fn table_has_a_heading_figures_to_the_right_and_no_escapes() {
        let drawn = drawn(&screen(1), 6);
        let lines = [
            "\"h:1  1 tenants, 0 documents in force                                            \"",
            "\"0 checks and 0 denials since the start                                          \"",
            "\"                                                                                \"",
            "\"tenant    rule         key               denied   admitted   denied/s admitted/s\"",
            "\"acme      byip         key0\\u{1b}[2J      1,234          5        0.5        0.0\"",
            "\"q quits, arrows scroll                                                          \"",
        ];
        for line in lines {
            assert!(drawn.contains(line.trim_end()), "{line}\n{drawn}");
        }
    }

    #[test]
    fn lost_server_leaves_what_was_known_and_says_so() {
        let mut screen = screen(1);
        screen.notice = Some("lost the connection to h:1".into());
        let drawn = drawn(&screen, 6);
        assert!(drawn.contains("key0") && drawn.contains("lost the connection to h:1"), "{drawn}");
    }

    #[test]
    fn scrolling_ends_at_the_last_row_and_outlives_a_shorter_list() {
        let mut screen = screen(3);
        screen.scroll(99);
        assert_eq!(screen.passed, 2);
        assert!(drawn(&screen, 6).contains("key2"));
        screen.glimpse.rows.truncate(1);
        assert!(drawn(&screen, 6).contains("key0"));
        screen.scroll(-99);
        assert_eq!(screen.passed, 0);
    }

    #[test]
    fn terminal_of_any_size_is_drawn_on() {
        for (width, height) in [(1, 1), (3, 2), (10, 4), (400, 100)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("memory");
            terminal.draw(|frame| screen(50).draw(frame)).expect("it is memory");
        }
    }
}
