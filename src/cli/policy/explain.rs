//! `tollgate policy explain`: RL.EXPLAIN as a table.

use std::process::ExitCode;

use super::documents::say;
use crate::cli::{
    table::{maps, table},
    target::TargetArgs,
};

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
