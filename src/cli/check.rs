//! `tollgate check`: ask a running server whether one more request may pass.
//!
//! It sends one `RL.LIMIT` and tells the answer in words, for people and for shell scripts.
//! The window and the numbers are read by the server's own parser before anything is sent, so
//! that a slip names its argument. Being denied is an answer, not a failure: it has an exit
//! code of its own.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, anyhow};

use super::resp::{Decision, Reply, Verdict};
use super::target::{Target, TargetArgs};
use crate::limit::{Algorithm, Align};
use crate::time::Duration;

/// The exit code that says "denied"; 1 is a failure and 2 wrong usage.
const DENIED: u8 = 3;

const AFTER_HELP: &str = "\
Exit codes: 0 allowed, 3 denied, 1 failed (no server, or it answered an error), 2 wrong usage.

Examples:
  tollgate check user:42 100 1s             spend one of a hundred a second
  tollgate check user:42 100 1s --peek      look only
  tollgate check user:42 5 1m --cost 2 && send-mail";

/// Ask a running server whether a request may pass.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Check {
    /// What is counted, such as user:42
    key: String,
    /// How many may pass in one window
    #[arg(allow_negative_numbers = true, value_parser = count)]
    limit: u64,
    /// The window: 500ms, 30s, 5m, 1h, 1d, or whole milliseconds
    #[arg(allow_negative_numbers = true, value_parser = window)]
    window: Duration,
    /// How much this request spends; 0 only looks
    #[arg(long, allow_negative_numbers = true, value_parser = count)]
    cost: Option<u64>,
    /// How to count: sliding-log, sliding-window, sliding-counter, fixed-window, gcra or
    /// token-bucket; the server's default is sliding-log
    #[arg(long, value_name = "NAME", value_parser = algorithm)]
    algorithm: Option<String>,
    /// So many more on top of the limit; for gcra, how many may pass at once
    #[arg(long, allow_negative_numbers = true, value_parser = count)]
    burst: Option<u64>,
    /// Where fixed windows begin: epoch, or first for the first request; only for fixed-window
    #[arg(long, value_name = "PLACE", value_parser = align)]
    align: Option<&'static str>,
    /// Look without spending
    #[arg(long)]
    peek: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArgs,
}

impl Check {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let json = self.json;
        let request = self.request();
        let target = self.target.into_target();
        let decision = target.connect()?.ask(&request, |reply| match reply {
            Reply::Decision(decision) => Ok(decision),
            Reply::Error(text) => Err(explain(&target, text)),
            Reply::Other => Err(anyhow!("{target} did not answer a decision; is it Tollgate?")),
        })??;
        let line = if json { as_json(&decision) } else { as_words(&decision) };
        writeln!(std::io::stdout(), "{line}").context("cannot write the answer")?;
        Ok(match decision.verdict {
            Verdict::Allowed => ExitCode::SUCCESS,
            Verdict::Denied => ExitCode::from(DENIED),
        })
    }

    fn request(&self) -> Vec<String> {
        let mut args = vec![
            "RL.LIMIT".to_owned(),
            self.key.clone(),
            self.limit.to_string(),
            self.window.to_string(),
        ];
        let mut option = |word: &str, value: Option<String>| {
            if let Some(value) = value {
                args.extend([word.to_owned(), value]);
            }
        };
        option("ALGORITHM", self.algorithm.clone());
        option("ALIGN", self.align.map(str::to_owned));
        option("BURST", self.burst.map(|burst| burst.to_string()));
        option("COST", self.cost.map(|cost| cost.to_string()));
        if self.peek {
            args.push("PEEK".to_owned());
        }
        args
    }
}

/// Counts are at most what a reply's integer holds.
fn count(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| i64::try_from(*number).is_ok());
    number.ok_or_else(|| "expected a whole number from 0 to 2^63-1".into())
}

pub(super) fn window(text: &str) -> Result<Duration, String> {
    let window = Duration::parse(text.as_bytes()).map_err(|err| err.to_string())?;
    if window.is_zero() { Err("a window has to be longer than nothing".into()) } else { Ok(window) }
}

fn explain(target: &Target, error: &[u8]) -> anyhow::Error {
    if error.starts_with(b"ERR unknown command") {
        return anyhow!("{target} does not know RL.LIMIT; is it Tollgate?");
    }
    target.explain(error)
}

fn as_words(decision: &Decision) -> String {
    let Decision { verdict, limit, remaining, retry_after_ms, reset_after_ms } = *decision;
    let figures = format!("limit {limit}  remaining {remaining}");
    let reset = span(reset_after_ms);
    match verdict {
        Verdict::Allowed => format!("allowed  {figures}  resets in {reset}"),
        Verdict::Denied if retry_after_ms < 0 => {
            format!("denied   {figures}  can never pass: it asks for more than the limit")
        }
        Verdict::Denied => {
            format!("denied   {figures}  retry in {}  resets in {reset}", span(retry_after_ms))
        }
    }
}

fn as_json(decision: &Decision) -> String {
    let Decision { verdict, limit, remaining, retry_after_ms, reset_after_ms } = *decision;
    serde_json::json!({
        "allowed": verdict == Verdict::Allowed,
        "limit": limit,
        "remaining": remaining,
        // Null where there is nothing to wait for, or no wait that helps.
        "retry_after_ms": u64::try_from(retry_after_ms).ok(),
        "reset_after_ms": reset_after_ms,
    })
    .to_string()
}

fn algorithm(word: &str) -> Result<String, String> {
    Algorithm::parse(word.as_bytes())
        .map(|algorithm| algorithm.name().to_owned())
        .ok_or_else(|| format!("expected {}", Algorithm::NAMES))
}

fn align(word: &str) -> Result<&'static str, String> {
    let align = Align::parse(word.as_bytes()).map(Align::name);
    align.ok_or_else(|| "expected epoch or first".into())
}

/// As people say it: up to ten seconds to the millisecond, then rounded up to seconds.
fn span(ms: i64) -> Duration {
    /// Beyond this nobody waits to the millisecond.
    const EXACT_MAX_MS: u64 = 10_000;
    let ms = u64::try_from(ms).unwrap_or(0);
    if ms > EXACT_MAX_MS {
        Duration::from_secs(ms.div_ceil(1_000))
    } else {
        Duration::from_millis(ms)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn parsed(line: &str) -> Result<Check, clap::Error> {
        let matches = Check::augment_args(Command::new("check").no_binary_name(true))
            .try_get_matches_from(line.split(' '))?;
        Check::from_arg_matches(&matches)
    }

    #[test]
    fn options_become_words_of_the_request() {
        let check = parsed("k 100 90s --burst 7 --cost 2 --peek --algorithm gcra").expect("valid");
        let words = "RL.LIMIT k 100 90s ALGORITHM gcra BURST 7 COST 2 PEEK";
        assert_eq!(check.request().join(" "), words);
        let check = parsed("k 1 1m --algorithm fixed-window --align first").expect("valid");
        assert_eq!(check.request().join(" "), "RL.LIMIT k 1 1m ALGORITHM fixed-window ALIGN first");
        assert_eq!(parsed("k 1 500").expect("valid").request().join(" "), "RL.LIMIT k 1 500ms");
    }

    #[test]
    fn wrong_argument_is_named() {
        for (line, name) in [
            ("k x 1s", "<LIMIT>"),
            ("k -1 1s", "<LIMIT>"),
            ("k 9223372036854775808 1s", "<LIMIT>"),
            ("k 1 1w", "<WINDOW>"),
            ("k 1 -1", "<WINDOW>"),
            ("k 1 0s", "<WINDOW>"),
            ("k 1 1s --cost x", "--cost"),
            ("k 1 1s --cost -1", "expected a whole number from 0"),
            ("k 1 1s --burst -1", "--burst"),
            ("k 1 1s --align end", "expected epoch or first"),
            ("k 1", "<WINDOW>"),
        ] {
            let error = parsed(line).expect_err(line).to_string();
            assert!(error.contains(name), "{line}: {error}");
        }
    }

    fn decision(verdict: Verdict, retry_after_ms: i64) -> Decision {
        Decision { verdict, limit: 5, remaining: 0, retry_after_ms, reset_after_ms: 1_000 }
    }

    #[test]
    fn answer_reads_as_a_line() {
        for (decision, line) in [
            (decision(Verdict::Allowed, -1), "allowed  limit 5  remaining 0  resets in 1s"),
            (
                decision(Verdict::Denied, 340),
                "denied   limit 5  remaining 0  retry in 340ms  resets in 1s",
            ),
            (
                decision(Verdict::Denied, -1),
                "denied   limit 5  remaining 0  can never pass: it asks for more than the limit",
            ),
        ] {
            assert_eq!(as_words(&decision), line);
        }
    }

    #[test]
    fn no_wait_is_null_in_json() {
        let denied = as_json(&decision(Verdict::Denied, 340));
        assert!(denied.contains(r#""allowed":false"#), "{denied}");
        assert!(denied.contains(r#""retry_after_ms":340"#), "{denied}");
        let allowed = as_json(&decision(Verdict::Allowed, -1));
        assert!(allowed.contains(r#""retry_after_ms":null"#), "{allowed}");
    }
}
