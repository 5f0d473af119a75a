//! The generator: requests at their moments, whatever the server does, from one thread.
//!
//! Each tier has connections of its own, which say so. A request is due at its moment and is
//! written then; what a connection cannot take, because the server does not read, waits in a
//! buffer that is bounded, and past that is lost as it would be at a caller that gives up. Replies
//! come in the order of requests, so a list of moments tells which is whose.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use tollgate::load::Tier;
use tollgate::time::{Clock, Duration, Timestamp};

use crate::server::{Server, request};

const CONNECTIONS_PER_TIER: usize = 4;

/// How a hundred requests are spread over the tiers.
const SHARES: [u32; 6] = [5, 10, 15, 20, 25, 25];

/// What a connection keeps of what the server does not read.
const UNSENT_BYTES_MAX: usize = 64 << 10;

/// What the system may keep of it besides.
const SOCKET_BYTES: usize = 32 << 10;

/// A reply after this is of no use.
const DEADLINE: Duration = Duration::from_secs(1);

/// Until the server has seen what happens to it.
const LEFT_OUT: Duration = Duration::from_secs(5);

const USERS: u64 = 1_000;

/// What is asked, how often, for how long.
pub(crate) struct Load {
    what: What,
    per_second: f64,
    span: Duration,
}

enum What {
    Script(String),
    Check,
}

/// What became of the requests of each tier.
pub(crate) struct Outcome {
    pub(crate) tiers: [TierOutcome; 6],
    pub(crate) span_s: f64,
    pub(crate) resident_mb: f64,
}

#[derive(Default)]
pub(crate) struct TierOutcome {
    pub(crate) offered: u64,
    pub(crate) good: u64,
    pub(crate) refused: u64,
    /// Milliseconds, of good replies.
    pub(crate) latencies: Vec<f64>,
}

impl TierOutcome {
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_by(f64::total_cmp);
        let at = (sorted.len() as f64 * share) as usize;
        sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    }
}

struct Line {
    stream: TcpStream,
    tier: usize,
    unsent: Vec<u8>,
    /// When those that were sent and not answered were due.
    due: VecDeque<Timestamp>,
    /// The beginning of a reply.
    torn: Vec<u8>,
}

impl Load {
    pub(crate) fn of_scripts(script: String, per_second: f64, seconds: u64) -> Self {
        Self { what: What::Script(script), per_second, span: Duration::from_secs(seconds) }
    }

    pub(crate) fn of_checks(seconds: u64) -> Self {
        Self { what: What::Check, per_second: 400_000.0, span: Duration::from_secs(seconds) }
    }

    fn request(&self, user: u64) -> Vec<u8> {
        let user = format!("user{user}");
        match &self.what {
            What::Script(script) => request(&["EVAL", script, "1", &user]),
            What::Check => request(&["RL.CHECK", "acme", "-", "CALLER", &user]),
        }
    }

    pub(crate) fn run(&self, server: &Server) -> anyhow::Result<Outcome> {
        let mut lines = Self::open(server)?;
        let requests: Vec<Vec<u8>> = (0..USERS).map(|user| self.request(user)).collect();
        let clock = Clock::system();
        let began = clock.now();
        let mut outcome = Outcome { tiers: Default::default(), span_s: 0.0, resident_mb: 0.0 };
        let (mut sent, mut dice) = (0_u64, 1_u64);
        loop {
            let now = clock.now();
            let passed = now.since(began);
            if passed >= self.span {
                break;
            }
            let due = (passed.as_micros() as f64 / 1e6 * self.per_second) as u64;
            // A generator that is behind sends no more than it can at once.
            sent = sent.max(due.saturating_sub(20_000));
            let is_counted = self.is_counted(passed);
            while sent < due {
                sent += 1;
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let tier = tier_of((dice >> 33) as u32 % 100);
                let line = &mut lines
                    [tier * CONNECTIONS_PER_TIER + (dice >> 40) as usize % CONNECTIONS_PER_TIER];
                let bytes = &requests[(dice >> 45) as usize % requests.len()];
                outcome.tiers[tier].offered += u64::from(is_counted);
                if line.unsent.len() + bytes.len() <= UNSENT_BYTES_MAX {
                    line.unsent.extend_from_slice(bytes);
                    line.due.push_back(now);
                }
            }
            for line in &mut lines {
                line.flush()?;
                let is_counted = |due: Timestamp| self.is_counted(due.since(began));
                line.read(&clock, is_counted, &mut outcome)?;
            }
            outcome.resident_mb = outcome.resident_mb.max(server.resident_mb());
        }
        let left_out_us = LEFT_OUT.as_micros() + DEADLINE.as_micros();
        outcome.span_s = (self.span.as_micros() - left_out_us) as f64 / 1e6;
        Ok(outcome)
    }

    /// Whether a request that is due then has had the time to be seen and answered.
    fn is_counted(&self, due: Duration) -> bool {
        let last_us = self.span.as_micros().saturating_sub(DEADLINE.as_micros());
        due >= LEFT_OUT && due.as_micros() < last_us
    }

    fn open(server: &Server) -> anyhow::Result<Vec<Line>> {
        let mut lines = Vec::new();
        for (number, tier) in Tier::ALL.into_iter().enumerate() {
            for _ in 0..CONNECTIONS_PER_TIER {
                let mut stream = server.connect()?;
                socket2::SockRef::from(&stream).set_send_buffer_size(SOCKET_BYTES)?;
                stream.write_all(&request(&["CLIENT", "SETINFO", "TIER", tier.name()]))?;
                stream.read_exact(&mut [0; 5])?;
                stream.set_nonblocking(true)?;
                lines.push(Line {
                    stream,
                    tier: number,
                    unsent: Vec::new(),
                    due: VecDeque::new(),
                    torn: Vec::new(),
                });
            }
        }
        Ok(lines)
    }
}

fn tier_of(percent: u32) -> usize {
    let mut below = 0;
    let place = SHARES.iter().position(|share| {
        below += share;
        percent < below
    });
    place.unwrap_or(SHARES.len() - 1)
}

impl Line {
    fn flush(&mut self) -> anyhow::Result<()> {
        let mut sent = 0;
        while sent < self.unsent.len() {
            match self.stream.write(&self.unsent[sent..]) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.unsent.drain(..sent);
        Ok(())
    }

    fn read(
        &mut self,
        clock: &Clock,
        is_counted: impl Fn(Timestamp) -> bool,
        outcome: &mut Outcome,
    ) -> anyhow::Result<()> {
        let mut buffer = [0; 16 << 10];
        let read = match self.stream.read(&mut buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let now = clock.now();
        self.torn.extend_from_slice(&buffer[..read]);
        let bytes = std::mem::take(&mut self.torn);
        let mut rest = &bytes[..];
        while let Some(end) = reply_end(rest) {
            self.note(rest[0], now, &is_counted, outcome);
            rest = &rest[end..];
        }
        self.torn = rest.to_vec();
        Ok(())
    }

    fn note(
        &mut self,
        sign: u8,
        now: Timestamp,
        is_counted: impl Fn(Timestamp) -> bool,
        outcome: &mut Outcome,
    ) {
        let due = self.due.pop_front();
        let Some(due) = due.filter(|due| is_counted(*due)) else { return };
        let tier = &mut outcome.tiers[self.tier];
        let took = now.since(due);
        if sign == b'-' {
            tier.refused += 1;
        } else if took <= DEADLINE {
            tier.good += 1;
            tier.latencies.push(took.as_micros() as f64 / 1_000.0);
        }
    }
}

/// Where a reply of one line, or of an array of such, ends.
fn reply_end(bytes: &[u8]) -> Option<usize> {
    let line = |from: usize| {
        let rest = bytes.get(from..)?;
        rest.windows(2).position(|pair| pair == b"\r\n").map(|at| from + at + 2)
    };
    let mut end = line(0)?;
    if bytes[0] == b'*' {
        let count: usize = std::str::from_utf8(&bytes[1..end - 2]).ok()?.parse().ok()?;
        for _ in 0..count {
            end = line(end)?;
        }
    }
    Some(end)
}
