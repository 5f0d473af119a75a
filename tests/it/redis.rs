//! A real Redis on a free port, for as long as a test needs it.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

pub(crate) struct Redis {
    child: Child,
    pub(crate) port: u16,
}

impl Redis {
    /// Starts it and waits until it says that it is ready.
    pub(crate) fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let mut child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", ""])
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-server is installed: `make test` sees to it");
        let log = BufReader::new(child.stdout.take().expect("it is piped"));
        let ready = log.lines().map_while(Result::ok).any(|line| line.contains("Ready to accept"));
        assert!(ready, "redis-server did not start");
        Self { child, port }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
