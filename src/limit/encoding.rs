//! States as bytes, for snapshots, journals and copies between processes.
//!
//! A version byte, the algorithm, then numbers of seven bits to a byte, low bits first. A log
//! stores the distances between its moments, so that an entry takes three or four bytes. Reading
//! accepts exactly what writing produces, up to the length of numbers: nothing a reader is given
//! can make it panic, allocate more than the input's length warrants, or build a state that
//! breaks an invariant.

use crate::time::{Duration, Timestamp};

use super::fixed_window::Counter;
use super::gcra::Bucket;
use super::log::Log;
use super::quota::{Algorithm, Align, WINDOW_MAX};
use super::sliding_counter::Counters;
use super::state::{Kind, State};

pub(super) const VERSION: u8 = 1;

/// Why bytes are not a state.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DecodeError {
    #[error("the state is cut short")]
    Truncated,
    #[error("the state has bytes after its end")]
    Trailing,
    #[error("the state has the unknown version {0}")]
    Version(u8),
    #[error("the state has an unknown algorithm")]
    Algorithm,
    #[error("a number of the state is out of its range")]
    Number,
}

impl State {
    /// Appends the state to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        let is_rounded = matches!(self.kind, Kind::RoundedLog(_));
        out.push(if is_rounded { ROUNDED_TAG } else { tag(self.algorithm()) });
        write(out, self.window.as_micros());
        write(out, self.last.as_micros());
        match &self.kind {
            Kind::SlidingLog(log) | Kind::RoundedLog(log) | Kind::SlidingWindow(log) => {
                write_log(out, log);
            }
            Kind::SlidingCounter(counters) => {
                write(out, counters.previous);
                write(out, counters.current);
            }
            Kind::FixedWindow(counter) => {
                write(out, counter.start_us);
                write(out, counter.used);
                write(out, align_tag(counter.align));
            }
            Kind::Gcra(bucket) => write_bucket(out, *bucket),
        }
    }

    /// Reads what [`State::encode`] wrote, all of it and nothing more.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader(bytes);
        let version = reader.byte()?;
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let tag = reader.byte()?;
        let is_rounded = tag == ROUNDED_TAG;
        let exact = if is_rounded { Some(Algorithm::SlidingLog) } else { algorithm(tag) };
        let algorithm = exact.ok_or(DecodeError::Algorithm)?;
        let window_us = reader.number()?;
        if window_us == 0 || window_us > WINDOW_MAX.as_micros() {
            return Err(DecodeError::Number);
        }
        let last_us = reader.number()?;
        let kind = match algorithm {
            Algorithm::SlidingLog if is_rounded => Kind::RoundedLog(reader.log(last_us)?),
            Algorithm::SlidingLog => Kind::SlidingLog(reader.log(last_us)?),
            Algorithm::SlidingWindow => Kind::SlidingWindow(reader.log(last_us)?),
            Algorithm::SlidingCounter => Kind::SlidingCounter(Counters {
                previous: reader.number()?,
                current: reader.number()?,
            }),
            Algorithm::FixedWindow => Kind::FixedWindow(reader.counter()?),
            Algorithm::Gcra => Kind::Gcra(reader.bucket()?),
        };
        if !reader.0.is_empty() {
            return Err(DecodeError::Trailing);
        }
        Ok(Self {
            window: Duration::from_micros(window_us),
            last: Timestamp::from_micros(last_us),
            kind,
        })
    }
}

/// The byte that stands for a sliding log begun in need.
const ROUNDED_TAG: u8 = 5;

/// The byte that stands for an algorithm; never reused for another.
const fn tag(algorithm: Algorithm) -> u8 {
    match algorithm {
        Algorithm::SlidingLog => 0,
        Algorithm::SlidingWindow => 1,
        Algorithm::SlidingCounter => 2,
        Algorithm::FixedWindow => 3,
        Algorithm::Gcra => 4,
    }
}

const fn align_tag(align: Align) -> u64 {
    match align {
        Align::Epoch => 0,
        Align::First => 1,
        Align::Calendar => 2,
    }
}

fn algorithm(byte: u8) -> Option<Algorithm> {
    Algorithm::ALL.into_iter().find(|one| tag(*one) == byte)
}

pub(super) fn write(out: &mut Vec<u8>, number: u64) {
    let mut rest = number;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

pub(super) fn write_bucket(out: &mut Vec<u8>, bucket: Bucket) {
    write(out, bucket.empty_at_us);
    write(out, u64::from(bucket.empty_at_ns));
    write(out, bucket.interval_ns);
}

fn write_log(out: &mut Vec<u8>, log: &Log) {
    write(out, log.len() as u64);
    write(out, log.coarse() as u64);
    let mut before_us = 0;
    for entry in log.entries() {
        write(out, entry.at_us - before_us);
        write(out, entry.cost);
        before_us = entry.at_us;
    }
}

/// What is left to read.
#[derive(Debug)]
pub(super) struct Reader<'bytes>(pub(super) &'bytes [u8]);

impl<'bytes> Reader<'bytes> {
    pub(super) fn byte(&mut self) -> Result<u8, DecodeError> {
        let (byte, rest) = self.0.split_first().ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(*byte)
    }

    pub(super) fn number(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(DecodeError::Number);
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(DecodeError::Number)
    }

    /// As many bytes as the number before them says.
    pub(super) fn bytes(&mut self) -> Result<&'bytes [u8], DecodeError> {
        let len = usize::try_from(self.number()?).map_err(|_| DecodeError::Truncated)?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn log(&mut self, last_us: u64) -> Result<Log, DecodeError> {
        // No log counts more entries, and no input of a sane length holds them.
        let entries = u32::try_from(self.number()?).map_err(|_| DecodeError::Number)?;
        let coarse = self.number()?;
        let mut log = Log::new();
        let mut at_us = 0_u64;
        // A slot of an earlier, longer window may lie ahead, but no further than the longest.
        let latest_us = last_us.saturating_add(WINDOW_MAX.as_micros());
        for index in 0..entries {
            let distance_us = self.number()?;
            let cost = self.number()?;
            at_us = at_us.checked_add(distance_us).ok_or(DecodeError::Number)?;
            let repeated = index > 0 && distance_us == 0;
            let too_much = cost == 0 || cost > u64::MAX - log.sum();
            if repeated || too_much || at_us > latest_us {
                return Err(DecodeError::Number);
            }
            log.push(at_us, cost);
        }
        let coarse = usize::try_from(coarse).map_err(|_| DecodeError::Number)?;
        if coarse > log.len() {
            return Err(DecodeError::Number);
        }
        log.set_coarse(coarse);
        Ok(log)
    }

    fn counter(&mut self) -> Result<Counter, DecodeError> {
        let (start_us, used) = (self.number()?, self.number()?);
        let align = match self.number()? {
            0 => Align::Epoch,
            1 => Align::First,
            2 => Align::Calendar,
            _ => return Err(DecodeError::Number),
        };
        Ok(Counter { start_us, used, align })
    }

    pub(super) fn bucket(&mut self) -> Result<Bucket, DecodeError> {
        let (empty_at_us, empty_at_ns) = (self.number()?, self.number()?);
        let interval_ns = self.number()?;
        let empty_at_ns = u16::try_from(empty_at_ns).map_err(|_| DecodeError::Number)?;
        if empty_at_ns >= 1_000 {
            return Err(DecodeError::Number);
        }
        Ok(Bucket { empty_at_us, interval_ns, empty_at_ns })
    }
}
