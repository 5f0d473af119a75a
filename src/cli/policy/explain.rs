//! `tollgate policy explain`: RL.EXPLAIN as a table.

use std::process::ExitCode;

use anyhow::bail;
use redis_protocol::resp2::types::OwnedFrame;
use serde_json::{Map, Value, json};

use super::documents::say;
use crate::cli::{resp::text, target::TargetArgs};

const COLUMNS: [&str; 8] = ["rule", "key", "quota", "used", "held", "mode", "verdict", "binds"];

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Explain {
    tenant: String,
    /// The endpoint; `-` for none
    endpoint: String,
    #[arg(long)]
    caller: Option<String>,
    /// A fact of the request; may be given more than once
    #[arg(long = "attr", value_name = "NAME=VALUE", value_parser = attribute)]
    attributes: Vec<(String, String)>,
    #[arg(long)]
    cost: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArgs,
}

impl Explain {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let (words, json) = (self.words(), self.json);
        let reply = self.target.into_target().connect()?.ask_whole(&words)?;
        let rows = maps(&reply)?;
        if json {
            say(serde_json::to_string_pretty(&rows)?)?;
        } else if rows.is_empty() {
            say("no quota applies to this request")?;
        } else {
            for line in table(&COLUMNS, &rows) {
                say(line)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn words(&self) -> Vec<String> {
        let mut words = vec!["RL.EXPLAIN".to_owned(), self.tenant.clone(), self.endpoint.clone()];
        if let Some(caller) = &self.caller {
            words.extend(["CALLER".to_owned(), caller.clone()]);
        }
        for (name, value) in &self.attributes {
            words.extend(["ATTR".to_owned(), name.clone(), value.clone()]);
        }
        if let Some(cost) = self.cost {
            words.extend(["COST".to_owned(), cost.to_string()]);
        }
        words
    }
}

fn attribute(word: &str) -> Result<(String, String), String> {
    let pair = word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "expected NAME=VALUE, such as country=DE".to_owned())
}

/// An array of maps, as RESP2 has them: flat.
pub(in crate::cli) fn maps(reply: &OwnedFrame) -> anyhow::Result<Vec<Map<String, Value>>> {
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
pub(in crate::cli) fn table(columns: &[&str], rows: &[Map<String, Value>]) -> Vec<String> {
    let shown = |row: &Map<String, Value>, column: &str| match row.get(column) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let mut lines = vec![columns.iter().map(|column| (*column).to_owned()).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|row| columns.iter().map(|name| shown(row, name)).collect()));
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let padded = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines.iter().map(padded).collect()
}
