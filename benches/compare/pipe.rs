//! A generator for what `redis-benchmark` cannot send: batches of several commands, whose replies
//! together always have the same length.
//!
//! Each connection sends a batch, and all are read before the next round: pipelined, and with all
//! connections busy at once. Whether the replies are right is looked at once, before anything is
//! measured.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::ensure;
use tollgate::time::Clock;

use crate::process::Server;

/// Words of requests, one request a line.
pub(crate) fn requests<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines {
        let words: Vec<_> = line.split(' ').collect();
        bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
        }
    }
    bytes
}

/// What is sent, and what comes back for it.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) requests: Vec<u8>,
    pub(crate) replies: Vec<u8>,
}

/// Sends each connection its batch, `rounds` times. Returns batches per second.
pub(crate) fn run(
    server: &Server,
    connections: usize,
    rounds: u64,
    batch: &(dyn Fn(usize, u64) -> Batch + Sync),
) -> anyhow::Result<f64> {
    let mut streams: Vec<TcpStream> =
        (0..connections).map(|_| server.connect()).collect::<anyhow::Result<_>>()?;
    let mut buffer = Vec::new();
    let clock = Clock::system();
    let start = clock.now();
    for round in 0..rounds {
        let mut lengths = Vec::with_capacity(connections);
        for (number, stream) in streams.iter_mut().enumerate() {
            let Batch { requests, replies } = batch(number, round);
            stream.write_all(&requests)?;
            lengths.push(replies);
        }
        for (stream, expected) in streams.iter_mut().zip(&lengths) {
            buffer.resize(expected.len(), 0);
            stream.read_exact(&mut buffer)?;
            ensure!(
                round > 0 || buffer == *expected,
                "answered {:?}, expected {:?}",
                String::from_utf8_lossy(&buffer),
                String::from_utf8_lossy(expected)
            );
        }
    }
    let seconds = clock.now().since(start).as_micros() as f64 / 1e6;
    Ok((rounds * connections as u64) as f64 / seconds)
}
