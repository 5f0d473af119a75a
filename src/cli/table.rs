//! Tables for people: rows of a reply under their columns' names.
//!
//! What stands in a reply may come from anybody, keys above all. Control characters are escaped
//! before a terminal sees them, so that a key cannot move its cursor.

use anyhow::bail;
use redis_protocol::resp2::types::OwnedFrame;
use serde_json::{Map, Value, json};

use super::resp::text;

/// One row: a value for each column.
pub(super) type Row = Map<String, Value>;

/// An array of maps, as RESP2 has them: flat.
pub(super) fn maps(reply: &OwnedFrame) -> anyhow::Result<Vec<Row>> {
    let OwnedFrame::Array(rows) = reply else { bail!("no list was answered; is it Tollgate?") };
    let row = |row: &OwnedFrame| {
        let OwnedFrame::Array(fields) = row else { return Map::new() };
        let pairs = fields.chunks_exact(2);
        pairs.filter_map(|pair| Some((text(&pair[0])?, value(&pair[1])))).collect()
    };
    Ok(rows.iter().map(row).collect())
}

fn value(frame: &OwnedFrame) -> Value {
    match frame {
        OwnedFrame::Integer(number) => json!(number),
        other => text(other).map_or(Value::Null, Value::String),
    }
}

/// Rows under their columns' names, each column as wide as it has to be.
pub(super) fn table(columns: &[&str], rows: &[Row]) -> Vec<String> {
    let mut lines = vec![columns.iter().map(|column| (*column).to_owned()).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|row| columns.iter().map(|name| cell(row, name)).collect()));
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let padded = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines.iter().map(padded).collect()
}

/// What a row shows in a column: nothing where it has none.
pub(super) fn cell(row: &Row, column: &str) -> String {
    match row.get(column) {
        Some(Value::String(text)) => plain(text),
        Some(Value::Number(number)) => {
            number.as_u64().map_or_else(|| number.to_string(), thousands)
        }
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// The text without anything that a terminal would obey.
pub(super) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// `1234567` as `1,234,567`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_have_to_be() {
        let row = |key: &str, used: u64| {
            Row::from_iter([("key".to_owned(), json!(key)), ("used".to_owned(), json!(used))])
        };
        let lines = table(&["key", "used", "held"], &[row("länger", 1_234_567), row("a", 1)]);
        assert_eq!(lines, ["key     used       held", "länger  1,234,567", "a       1"]);
    }

    #[test]
    fn key_cannot_move_the_cursor_of_a_terminal() {
        assert_eq!(plain("a\x1b[2J\r\nb\u{9b}é"), "a\\u{1b}[2J\\r\\nb\\u{9b}é");
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
