//! The connection's life: reach the server, carry calls, and come back when it is lost.
//!
//! The first attempt after a loss comes at once, and calls wait for it, each up to its deadline.
//! After a failed attempt they are refused with the reason, at once, until the next one begins:
//! waits between attempts double, and each is spread over its upper half. What gives something back
//! waits on for its deadline instead, since it is worth another attempt.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::dice::Dice;
use super::error::Error;
use super::memory::Memory;
use super::options::Options;
use super::pipeline::{Ended, Queues, carry};
use super::stats::Counters;
use crate::protocol::{Answers, Part, write_request};
use crate::time::Duration;

/// What a client and its task have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) counters: Counters,
    pub(super) memory: Option<Memory>,
    pub(super) dice: Dice,
    pub(super) state: watch::Sender<State>,
}

/// Where the connection is.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Under way, and calls wait for it; what ended the last one.
    Connecting {
        last: Option<Error>,
    },
    Connected,
    /// The last attempt failed.
    Down(Error),
}

impl Shared {
    /// What was spent on `subject` may have become less.
    pub(super) fn forget(&self, subject: &[u8]) {
        if let Some(memory) = &self.memory {
            memory.forget(subject);
        }
    }

    /// Why a call was dropped unanswered.
    pub(super) fn failure(&self) -> Error {
        match &*self.state.borrow() {
            State::Connecting { last: Some(why) } | State::Down(why) => why.clone(),
            // It was lost and stands again before the caller looked; or it was never reached.
            State::Connected | State::Connecting { last: None } => {
                Error::lost("it ended before the answer")
            }
        }
    }
}

/// Keeps a connection until nobody is left who could ask.
pub(super) async fn keep(shared: Arc<Shared>, mut queues: Queues) {
    let options = &shared.options;
    let mut pause = options.backoff_min;
    loop {
        let opened = timeout(options.connect_timeout.as_std(), open(options)).await;
        let why = match opened {
            Err(_) => Error::not_connected("the server does not greet in time"),
            Ok(Err(why)) => why,
            Ok(Ok(stream)) => {
                shared.counters.connected();
                shared.state.send_replace(State::Connected);
                let ended = carry(stream, &mut queues, options.silence_max, &shared.counters).await;
                if let Some(memory) = &shared.memory {
                    memory.forget_all();
                }
                match ended {
                    Ended::Finished => return,
                    Ended::Lost { why, answered } if answered > 0 => {
                        pause = options.backoff_min;
                        shared.state.send_replace(State::Connecting { last: Some(why) });
                        continue;
                    }
                    Ended::Lost { why, .. } => why,
                }
            }
        };
        shared.state.send_replace(State::Down(why.clone()));
        let wait = shared.dice.between(Duration::from_micros(pause.as_micros() / 2), pause);
        if timeout(wait.as_std(), queues.refuse_calls()).await.is_ok() {
            return;
        }
        pause = doubled(pause, options);
        shared.state.send_replace(State::Connecting { last: Some(why) });
    }
}

fn doubled(pause: Duration, options: &Options) -> Duration {
    Duration::from_micros(pause.as_micros().saturating_mul(2)).min(options.backoff_max)
}

/// Connects and introduces itself.
async fn open(options: &Options) -> Result<TcpStream, Error> {
    let mut stream = TcpStream::connect(&options.address).await.map_err(Error::not_connected)?;
    stream.set_nodelay(true).map_err(Error::not_connected)?;
    let mut words = vec!["HELLO", "3"];
    if let Some(login) = &options.login {
        words.push("AUTH");
        words.extend(login.words());
    }
    words.extend(["SETNAME", &options.name]);
    let mut hello = Vec::new();
    write_request(&words, &mut hello);
    stream.write_all(&hello).await.map_err(Error::not_connected)?;
    let mut answers = Answers::default();
    let mut unread = Vec::new();
    loop {
        if stream.read_buf(&mut unread).await.map_err(Error::not_connected)? == 0 {
            return Err(Error::not_connected("the server closed the connection"));
        }
        if let Some((reply, _)) = answers.read(&unread).map_err(Error::not_connected)? {
            return match reply.part(0) {
                Some(Part::Error(text)) => Err(Error::not_connected(String::from_utf8_lossy(text))),
                _ => Ok(stream),
            };
        }
    }
}
