//! A Tollgate inside the test, under a clock that the test moves; or the program itself.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};

use tollgate::cli::{Running, start};
use tollgate::time::{Clock, Duration, Timestamp};

use crate::resp::Connection;

/// 2023-11-14T22:13:20Z.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub(crate) struct Tollgate {
    running: Running,
    clock: Clock,
}

impl Tollgate {
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_with(flags, Clock::manual(START))
    }

    pub(crate) fn start_with(flags: &[&str], clock: Clock) -> Self {
        // What this machine is busy with must not decide what a test sees.
        let own = ["--port", "0", "--http-port", "0", "--set", "load.enabled=false"];
        let flags = [&own, flags].concat();
        let running = start(&flags, clock.clone()).expect("the flags are right");
        Self { running, clock }
    }

    pub(crate) fn port(&self) -> u16 {
        self.running.port()
    }

    pub(crate) fn http_port(&self) -> u16 {
        self.running.http_port().expect("it was not turned off")
    }

    pub(crate) fn has_http(&self) -> bool {
        self.running.http_port().is_some()
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.port())
    }

    /// A second one, under the clock of another.
    #[cfg(feature = "client-central")]
    pub(crate) fn start_under(flags: &[&str], clock: Clock) -> Self {
        Self::start_with(flags, clock)
    }

    #[cfg(feature = "client-central")]
    pub(crate) fn clock(&self) -> Clock {
        self.clock.clone()
    }

    pub(crate) fn advance(&self, span: &str) {
        self.clock.advance(span.parse::<Duration>().expect("a span such as 59s"));
    }

    pub(crate) fn stop(self) {
        self.running.stop().expect("it stops in order");
    }
}

/// The program, started as a person would.
pub(crate) struct Program {
    child: Child,
    pub(crate) port: u16,
}

impl Program {
    /// Starts `tollgate` on a free port and waits until it says where it listens.
    pub(crate) fn start(flags: &[&str]) -> Self {
        // What this machine is busy with must not decide what a test sees.
        let own = ["--port", "0", "--http-port", "0", "--set", "load.enabled=false"];
        let mut child = command(&[&own, flags].concat())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program is built");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let port = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, rest) = line.split_once("listens on port ")?;
                rest.split(|byte: char| !byte.is_ascii_digit()).next()?.parse().ok()
            })
            .expect("it says where it listens");
        // Its log goes on: somebody must read it, or it would wait for its reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port }
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.port)
    }

    /// Where it answers by HTTP, as it says itself.
    pub(crate) fn http_port(&self) -> u16 {
        let info = self.connect().line("INFO everything");
        let port = info.split_once("http_port:").expect("it says so").1;
        let digits = port.split(|byte: char| !byte.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse().ok()).expect("a port")
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end, which somebody has asked for.
    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }

    /// Sends a signal by its name and waits for the end.
    pub(crate) fn end_by(mut self, signal: &str) -> ExitStatus {
        self.send(signal);
        self.child.wait().expect("it ends")
    }

    /// Sends a signal again and again until the end: two that come close together may be one.
    pub(crate) fn end_by_insisting(mut self, signal: &str) -> ExitStatus {
        for _ in 0..10_000 {
            self.send(signal);
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                return status;
            }
        }
        panic!("it does not end");
    }

    pub(crate) fn send(&self, signal: &str) {
        let sent = Command::new("kill").args(["-s", signal, &self.id().to_string()]).status();
        assert!(sent.expect("kill is there").success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The program with these arguments, and nothing of our environment that would change it.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.args(arguments);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TOLLGATE_")) {
        command.env_remove(name);
    }
    command
}
