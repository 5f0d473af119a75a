//! A server of the release build, its own process, and what a script costs there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use tollgate::time::Clock;

use crate::Manager;

/// One tenant, with more than anybody will ask of it, and a caller's bucket for each user.
const POLICY: &str =
    "name: acme\nrules: [{per: [caller], limit: 1000000, window: 1m, algorithm: gcra}]\n";

pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    _folder: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start(program: &Path, manager: Manager) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let policies = folder.path().join("acme.yaml");
        std::fs::write(&policies, POLICY)?;
        let enabled = format!("load.enabled={}", manager == Manager::On);
        let policies = policies.display().to_string();
        let mut child = Command::new(program)
            .args(["--port", "0", "--http-port", "0", "--set", "server.workers=1"])
            .args(["--set", &enabled, "--policies", &policies])
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {}: build it first", program.display()))?;
        let stderr = child.stderr.take().context("it is piped")?;
        let mut lines = BufReader::new(stderr).lines();
        let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, rest) = line.split_once("listens on port ")?;
            rest.split(|byte: char| !byte.is_ascii_digit()).next()?.parse().ok()
        });
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                eprintln!("    {line}");
            }
        });
        Ok(Self { child, port: port.context("it says where it listens")?, _folder: folder })
    }

    pub(crate) fn connect(&self) -> anyhow::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// A script that takes about a millisecond, and how many of it run in a second.
    pub(crate) fn calibrate(&self) -> anyhow::Result<(String, f64)> {
        const SCRIPTS: u32 = 300;
        let mut loops = 10_000.0;
        let mut per_second = 0.0;
        for _ in 0..9 {
            let script = script(loops);
            let clock = Clock::system();
            let began = clock.now();
            let mut stream = self.connect()?;
            for _ in 0..SCRIPTS {
                stream.write_all(&request(&["EVAL", &script, "1", "calibrate"]))?;
                stream.read_exact(&mut [0; 4])?;
            }
            let took_s = clock.now().since(began).as_micros() as f64 / 1e6;
            per_second = f64::from(SCRIPTS) / took_s;
            if (800.0..1_250.0).contains(&per_second) {
                return Ok((script, per_second));
            }
            loops *= per_second / 1_000.0;
        }
        anyhow::bail!("the machine is too busy to measure a script: {per_second:.0} a second")
    }

    /// Resident memory in megabytes.
    pub(crate) fn resident_mb(&self) -> f64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("");
        let kilobytes = line.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
        kilobytes.unwrap_or(0.0) / 1_024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Answers `:1`.
fn script(loops: f64) -> String {
    format!(
        "local sum = 0 for number = 1, {loops:.0} do sum = sum + number end redis.call('SET', \
         KEYS[1], sum) return 1"
    )
}

pub(crate) fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}
