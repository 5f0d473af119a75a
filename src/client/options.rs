//! What a caller chooses: where the server is, how long to wait, what to do without it.
//!
//! Everything has a default, and every bound of what can grow stands here. Spans are those of
//! [`crate::time`].

use std::fmt;
use std::num::NonZeroUsize;

use crate::time::Duration;

/// Calls that may wait for the connection: more is a mistake, since a full pipeline is fewer.
pub const QUEUE_MAX: usize = 1 << 20;

/// How a [`Client`](super::Client) reaches its server and what it does without it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Host and port.
    pub address: String,
    pub login: Option<Login>,
    /// How the server's CLIENT LIST calls this connection.
    pub name: String,
    /// No call takes longer.
    pub deadline: Duration,
    /// Until a connection stands and the server has greeted.
    pub connect_timeout: Duration,
    /// A connection on which answers are due and nothing comes for this long is given up.
    pub silence_max: Duration,
    /// The wait before the second attempt to connect; each next one is twice as long.
    pub backoff_min: Duration,
    pub backoff_max: Duration,
    /// Calls that wait to be sent, at most [`QUEUE_MAX`]; one more is not taken.
    pub queue_max: NonZeroUsize,
    /// What a decision is when the server cannot make it.
    pub without_server: WithoutServer,
    /// `None`: every call asks the server.
    pub memory: Option<MemoryOptions>,
}

impl Options {
    /// The defaults, for a server at `address`, such as `127.0.0.1:6379`.
    pub fn at(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            login: None,
            name: "tollgate-client".to_owned(),
            deadline: Duration::from_millis(100),
            connect_timeout: Duration::from_secs(1),
            silence_max: Duration::from_secs(1),
            backoff_min: Duration::from_millis(10),
            backoff_max: Duration::from_secs(2),
            queue_max: const { NonZeroUsize::new(65_536).expect("it is above zero") },
            without_server: WithoutServer::Open,
            memory: Some(MemoryOptions::default()),
        }
    }
}

/// What AUTH is told.
#[derive(Clone, Eq, PartialEq)]
pub struct Login {
    user: String,
    password: String,
}

impl Login {
    /// The one password of a server without users.
    pub fn password(password: impl Into<String>) -> Self {
        Self::user("default", password)
    }

    pub fn user(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: user.into(), password: password.into() }
    }

    pub(super) fn words(&self) -> [&str; 2] {
        [&self.user, &self.password]
    }
}

/// The password is not shown.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// What a decision is when the server is away, late, overloaded or not willing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WithoutServer {
    /// Everything passes.
    Open,
    /// Nothing passes; callers are told to come back after up to twice this span, each after
    /// another, so that they do not return together.
    Closed { retry_after: Duration },
}

/// How denials are remembered.
#[derive(Clone, Debug)]
pub struct MemoryOptions {
    /// All entries together, about 200 bytes each beside their words.
    pub bytes_max: u64,
    /// The server is asked again, in the background, about a denial that is this old and still
    /// used.
    pub refresh_after: Duration,
    /// No denial is believed for longer without asking again. So long may it take until a
    /// change that somebody else has made (a reset, a refund, a policy) is seen.
    pub believed_max: Duration,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            bytes_max: 32 << 20,
            refresh_after: Duration::from_millis(500),
            believed_max: Duration::from_secs(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_not_shown() {
        let options = Options { login: Some(Login::password("geheim")), ..Options::at("a:1") };
        assert!(!format!("{options:?}").contains("geheim"));
    }
}
