//! `tollgate health`: ask a server's HTTP port whether it is well.
//!
//! For whoever supervises the server and has no HTTP client at hand, such as the health check of
//! a container. It asks over HTTP and not over RESP, because health is answered by a thread of
//! its own: a server that is busy, or sheds load, is not ill and must not be restarted for it.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use axum::body::{Body, to_bytes};
use axum::http::{Request, Uri, header};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::FAILED;
use crate::time::Duration;

/// A server that does not answer within this time is ill.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// The answers of health pages are a line.
const ANSWER_BYTES_MAX: usize = 4 << 10;

const AFTER_HELP: &str = "\
Exit codes: 0 well, 1 not (or nobody answers), 2 wrong usage.

Examples:
  tollgate health                                  is the server on this machine alive?
  tollgate health --ready                          does it take clients?
  tollgate health --url http://127.0.0.1:8379";

/// Ask a running server's HTTP port whether it is well
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Health {
    /// The HTTP port of the server
    #[arg(long, default_value = "http://127.0.0.1:7379", value_parser = url)]
    url: Uri,
    /// Ask whether it takes clients, not only whether it answers: false while it stops
    #[arg(long)]
    ready: bool,
}

impl Health {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let path = if self.ready { "/health/ready" } else { "/health/live" };
        let (is_well, answer) = runtime.block_on(async {
            let answer = tokio::time::timeout(ANSWER_TIME_MAX.as_std(), ask(&self.url, path)).await;
            answer.unwrap_or_else(|_| Err(anyhow!("{} does not answer", self.url)))
        })?;
        writeln!(std::io::stdout(), "{}", answer.trim_end()).context("cannot write the answer")?;
        Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
    }
}

/// Whether the answer was good, and its text.
async fn ask(url: &Uri, path: &str) -> anyhow::Result<(bool, String)> {
    let authority = url.authority().context("the address names no host")?;
    let address = (url.host().unwrap_or_default(), url.port_u16().unwrap_or(80));
    let address = (address.0.trim_matches(['[', ']']), address.1);
    let stream =
        TcpStream::connect(address).await.with_context(|| format!("cannot reach {url}"))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get(path).header(header::HOST, authority.as_str()).body(Body::empty())?;
    let answer = async {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = to_bytes(Body::new(answer.into_body()), ANSWER_BYTES_MAX).await?;
        drop(sender);
        anyhow::Ok((status, body))
    };
    let (answer, _) = tokio::join!(answer, connection);
    let (status, body) = answer.with_context(|| format!("{url} does not speak HTTP as we do"))?;
    let text = String::from_utf8_lossy(&body).into_owned();
    if !status.is_success() && !status.is_server_error() {
        bail!("http://{authority}{path} answered {status}: {}", text.trim_end());
    }
    Ok((status.is_success(), text))
}

fn url(text: &str) -> Result<Uri, String> {
    let wanted = "expected an address such as http://127.0.0.1:7379";
    let url: Uri = text.parse().map_err(|_| wanted.to_owned())?;
    let is_plain = url.scheme_str() == Some("http") && matches!(url.path(), "" | "/");
    if is_plain && url.query().is_none() { Ok(url) } else { Err(wanted.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_of_an_http_port_is_taken() {
        for good in ["http://127.0.0.1:7379", "http://localhost", "http://[::1]:7379/"] {
            assert!(url(good).is_ok(), "{good}");
        }
        for bad in ["127.0.0.1:7379", "https://x:1", "http://x:1/metrics", "http://x/?a", "", "x"] {
            assert!(url(bad).is_err(), "{bad}");
        }
    }
}
