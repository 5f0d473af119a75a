//! Servers and generators as child processes: started on free ports, bounded, stopped by pid.
//!
//! A server is killed when its handle is dropped, so that no failure leaves one behind. What it
//! used is read from `/proc`: processor time in ticks of usually 10 ms, resident memory in
//! kilobytes.

use std::fmt;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};
use tollgate::time::{Clock, Duration};

/// A server that does not answer PING by then has failed to start.
const START_MAX: Duration = Duration::from_secs(10);

/// No single run of a generator takes longer on a machine worth measuring on.
const RUN_MAX: Duration = Duration::from_secs(300);

const POLL_PERIOD: Duration = Duration::from_millis(10);

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const PONG: &[u8; 7] = b"+PONG\r\n";

/// The programs of a comparison, and how each is started.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program<'a> {
    Tollgate(&'a Path),
    /// With so many workers.
    TollgateOf(&'a Path, u32),
    /// Tollgate's listener, answering PONG to everything.
    Floor(&'a Path),
    Redis(&'a Path),
    /// Each keeping its data in a folder, synced every second.
    TollgateIn(&'a Path, &'a Path),
    RedisIn(&'a Path, &'a Path),
}

impl Program<'_> {
    fn command(self, number: u16) -> anyhow::Result<Command> {
        let port = number.to_string();
        Ok(match self {
            Self::TollgateOf(path, workers) => {
                let mut command = Self::Tollgate(path).command(number)?;
                command.args(["--set", &format!("server.workers={workers}")]);
                command
            }
            Self::Tollgate(path) => {
                let mut command = Command::new(path);
                let http_port = free_port()?.to_string();
                command.args(["serve", "--bind", "127.0.0.1", "--port", &port]);
                command.args(["--http-port", &http_port]);
                command
            }
            Self::Floor(path) => {
                let mut command = Command::new(path);
                command.args(["floor", "--port", &port, "--set", "server.http.enabled=false"]);
                command
            }
            Self::TollgateIn(path, folder) => {
                let mut command = Self::Tollgate(path).command(number)?;
                command.arg("--data-dir").arg(folder);
                command
            }
            Self::RedisIn(path, folder) => {
                // What is said last counts.
                let mut command = Self::Redis(path).command(number)?;
                command.args(["--appendonly", "yes", "--appendfsync", "everysec", "--dir"]);
                command.arg(folder);
                command
            }
            Self::Redis(path) => {
                let mut command = Command::new(path);
                command.args(["--port", &port, "--bind", "127.0.0.1", "--daemonize", "no"]);
                command.args(["--save", "", "--appendonly", "no", "--maxclients", "10200"]);
                command
            }
        })
    }
}

impl fmt::Display for Program<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tollgate(_) | Self::TollgateOf(..) | Self::TollgateIn(..) => "Tollgate",
            Self::Floor(_) => "Tollgate's floor",
            Self::Redis(_) | Self::RedisIn(..) => "Redis",
        })
    }
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
}

impl Server {
    pub(crate) fn start(program: Program<'_>) -> anyhow::Result<Self> {
        let port = free_port()?;
        let mut command = program.command(port)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {program}: {command:?}"))?;
        let mut server = Self { child, port };
        let clock = Clock::system();
        let start = clock.now();
        while server.connect().is_err() {
            if let Some(status) = server.child.try_wait()? {
                bail!("{program} ended at once ({status}); try it by hand: {command:?}");
            }
            if clock.now().since(start) > START_MAX {
                bail!("{program} does not answer within {START_MAX}: {command:?}");
            }
            pause(POLL_PERIOD);
        }
        Ok(server)
    }

    /// A connection that has had one PING answered.
    pub(crate) fn connect(&self) -> anyhow::Result<TcpStream> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(START_MAX.as_std()))?;
        stream.write_all(PING)?;
        let mut answer = [0; PONG.len()];
        stream.read_exact(&mut answer)?;
        if answer != *PONG {
            bail!("PING was answered by {:?}", String::from_utf8_lossy(&answer));
        }
        Ok(stream)
    }

    /// Processor seconds used so far, user and system.
    pub(crate) fn cpu_s(&self) -> anyhow::Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name may hold anything, so count from the parenthesis that ends it: utime and
        // stime are the twelfth and thirteenth fields from there.
        let (_, fields) = stat.rsplit_once(')').context("/proc/PID/stat has no name")?;
        let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u64>);
        let mut ticks = || fields.next().context("/proc/PID/stat is short")?.context("no number");
        let ticks: u64 = ticks()? + ticks()?;
        Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Resident memory.
    pub(crate) fn rss_bytes(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kilobytes = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next())
            .context("/proc/PID/status has no VmRSS")?;
        Ok(kilobytes.parse::<u64>()? * 1_024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only where the server is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program to its end and returns what it printed; a small output is expected.
pub(crate) fn output_of(command: &mut Command) -> anyhow::Result<String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let clock = Clock::system();
    let start = clock.now();
    while child.try_wait()?.is_none() {
        if clock.now().since(start) > RUN_MAX {
            child.kill()?;
            child.wait()?;
            bail!("not done within {RUN_MAX}: {command:?}");
        }
        pause(POLL_PERIOD);
    }
    let output = child.wait_with_output()?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?} failed ({}): {}{}", output.status, printed.trim(), complaint.trim());
    }
    Ok(printed)
}

#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
pub(crate) fn pause(span: Duration) {
    std::thread::sleep(span.as_std());
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
