//! Which server a command asks: the flags, the connection, and the first words on it.
//!
//! What goes wrong here goes wrong for people in front of a terminal, so every error is a
//! sentence that says what to do next. Connections are blocking and bounded in time;
//! `tollgate bench` takes the opened socket over.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};

use anyhow::{Context, anyhow, bail};
use redis_protocol::resp2::types::OwnedFrame;

use super::resp::{self, REPLY_BYTES_MAX, Reply};
use crate::protocol::write_request;
use crate::time::Duration;

/// A server that does not accept within this time is away.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A server that does not answer within this time is stuck.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

const PORT: u16 = 6379;

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub(super) struct TargetArgs {
    /// The server as redis://USER:PASSWORD@HOST:PORT/DATABASE, any part but the host optional,
    /// instead of the flags below
    #[arg(long, value_parser = Target::from_url, conflicts_with_all = ["host", "port", "password"])]
    url: Option<Target>,
    /// Host name or address
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Port
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// Password, sent by AUTH
    #[arg(long)]
    password: Option<Secret>,
}

impl TargetArgs {
    pub(super) fn into_target(self) -> Target {
        let Self { url, host, port, password } = self;
        url.unwrap_or(Target { host, port, user: None, password, database: 0 })
    }
}

/// A server and who we are to it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Target {
    host: String,
    port: u16,
    user: Option<String>,
    password: Option<Secret>,
    database: u32,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl Target {
    fn from_url(url: &str) -> Result<Self, String> {
        let rest = match url.split_once("://") {
            Some(("redis", rest)) => rest,
            Some(("rediss", _)) => return Err("TLS is not supported here; use redis://".into()),
            _ => return Err("expected redis://HOST:PORT".into()),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let database = match path {
            "" => 0,
            number => number.parse().map_err(|_| format!("`{path}` is no database number"))?,
        };
        let (login, address) =
            authority.rsplit_once('@').map_or((None, authority), |(login, at)| (Some(login), at));
        let (user, password) = match login {
            None => (None, None),
            Some(login) => {
                let (user, password) = login.split_once(':').unwrap_or(("", login));
                (Some(unescape(user)?).filter(|user| !user.is_empty()), Some(unescape(password)?))
            }
        };
        let (host, port) = host_and_port(address)?;
        Ok(Self { host, port, user, password: password.map(Secret), database })
    }

    /// Opens a connection and introduces us.
    pub(super) fn connect(&self) -> anyhow::Result<Connection> {
        let mut connection =
            Connection { stream: self.open()?, server: self.clone(), unread: Vec::new() };
        if let Some(Secret(password)) = &self.password {
            let auth = match &self.user {
                Some(user) => vec!["AUTH", user, password],
                None => vec!["AUTH", password],
            };
            connection.ask_politely(&auth)?;
        }
        if self.database != 0 {
            connection.ask_politely(&["SELECT", &self.database.to_string()])?;
        }
        Ok(connection)
    }

    fn open(&self) -> anyhow::Result<TcpStream> {
        let addresses = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .with_context(|| format!("cannot find the host `{}`", self.host))?;
        let mut failure = anyhow!("the host `{}` has no address", self.host);
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT.as_std()) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(REPLY_TIMEOUT.as_std()))?;
                    stream.set_write_timeout(Some(REPLY_TIMEOUT.as_std()))?;
                    return Ok(stream);
                }
                Err(err) => failure = self.explain_refusal(&err),
            }
        }
        Err(failure)
    }

    fn explain_refusal(&self, err: &std::io::Error) -> anyhow::Error {
        match err.kind() {
            ErrorKind::ConnectionRefused => anyhow!(
                "nothing listens on {self}; start a server with `tollgate serve --port {}`, \
                 or name another by --host and --port",
                self.port
            ),
            ErrorKind::TimedOut => anyhow!("{self} did not accept within {CONNECT_TIMEOUT}"),
            _ => anyhow!("cannot connect to {self}: {err}"),
        }
    }

    fn no_resp(&self) -> String {
        format!("{self} does not speak RESP")
    }

    /// What an error reply means to the person who started the command.
    pub(super) fn explain(&self, error: &[u8]) -> anyhow::Error {
        let text = String::from_utf8_lossy(error);
        match text.split_once(' ').map_or(&*text, |(code, _)| code) {
            "NOAUTH" => anyhow!("{self} asks for a password; give it by --password"),
            "NOPERM" => anyhow!("{self} lets only operators do that; give their password: {text}"),
            "WRONGPASS" => anyhow!("{self} refused the password: {text}"),
            _ => anyhow!("{self} answered an error: {text}"),
        }
    }
}

/// One blocking connection; it asks one question at a time.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    server: Target,
    unread: Vec<u8>,
}

impl Connection {
    /// Sends a request and hands the reply to `then`.
    pub(super) fn ask<T>(
        &mut self,
        args: &[impl AsRef<[u8]>],
        then: impl FnOnce(Reply<'_>) -> T,
    ) -> anyhow::Result<T> {
        self.send(args)?;
        loop {
            if let Some((reply, length)) =
                resp::decode(&self.unread).with_context(|| self.server.no_resp())?
            {
                let answer = then(reply);
                self.unread.drain(..length);
                return Ok(answer);
            }
            self.read()?;
        }
    }

    /// Sends a request and returns the whole reply, unless that is an error.
    pub(super) fn ask_whole(&mut self, args: &[impl AsRef<[u8]>]) -> anyhow::Result<OwnedFrame> {
        self.send(args)?;
        self.next_whole()
    }

    fn next_whole(&mut self) -> anyhow::Result<OwnedFrame> {
        loop {
            let decoded = resp::decode_whole(&self.unread);
            if let Some((reply, length)) = decoded.with_context(|| self.server.no_resp())? {
                self.unread.drain(..length);
                return match reply {
                    OwnedFrame::Error(text) => Err(self.server.explain(text.as_bytes())),
                    reply => Ok(reply),
                };
            }
            self.read()?;
        }
    }

    /// Sends requests together and returns their whole replies, unless one is an error.
    ///
    /// The server may answer before it has read all: `requests` must fit the buffers between us.
    pub(super) fn ask_together(
        &mut self,
        requests: &[Vec<impl AsRef<[u8]>>],
    ) -> anyhow::Result<Vec<OwnedFrame>> {
        let mut bytes = Vec::new();
        for args in requests {
            write_request(args, &mut bytes);
        }
        self.write(&bytes)?;
        // All are read, so that after an error the next question has its own reply.
        let replies: Vec<_> = requests.iter().map(|_| self.next_whole()).collect();
        replies.into_iter().collect()
    }

    fn send(&mut self, args: &[impl AsRef<[u8]>]) -> anyhow::Result<()> {
        let mut request = Vec::new();
        write_request(args, &mut request);
        self.write(&request)
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(bytes).map_err(|err| self.lost(&err))
    }

    /// Asks for something that only an error can be an answer of interest to.
    fn ask_politely(&mut self, args: &[&str]) -> anyhow::Result<()> {
        let server = self.server.clone();
        self.ask(args, |reply| match reply {
            Reply::Error(text) => Err(server.explain(text)),
            Reply::Decision(_) | Reply::Other => Ok(()),
        })?
    }

    fn read(&mut self) -> anyhow::Result<()> {
        if self.unread.len() > REPLY_BYTES_MAX {
            bail!("{} answers without end", self.server);
        }
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => bail!("{} closed the connection before it answered", self.server),
            Ok(length) => {
                self.unread.extend_from_slice(&chunk[..length]);
                Ok(())
            }
            Err(err) if err.kind() == ErrorKind::Interrupted => Ok(()),
            Err(err) => Err(self.lost(&err)),
        }
    }

    fn lost(&self, err: &std::io::Error) -> anyhow::Error {
        match err.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                anyhow!("{} did not answer within {REPLY_TIMEOUT}", self.server)
            }
            _ => anyhow!("lost the connection to {}: {err}", self.server),
        }
    }

    /// The socket, for a caller that speaks asynchronously from here on.
    pub(super) fn into_nonblocking(self) -> anyhow::Result<TcpStream> {
        debug_assert!(self.unread.is_empty(), "every question so far was answered");
        self.stream.set_nonblocking(true)?;
        Ok(self.stream)
    }
}

/// A password: it is sent, never shown.
#[derive(Clone, Eq, PartialEq)]
struct Secret(String);

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

fn host_and_port(address: &str) -> Result<(String, u16), String> {
    let (host, tail) = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some(bracketed) => bracketed,
        None => address.split_at(address.find(':').unwrap_or(address.len())),
    };
    if host.is_empty() {
        return Err("the host is missing".into());
    }
    let port = match tail.strip_prefix(':') {
        None if tail.is_empty() => PORT,
        None => return Err(format!("expected `:PORT` where `{tail}` is")),
        Some(port) => port.parse().map_err(|_| format!("`{port}` is no port"))?,
    };
    Ok((host.to_owned(), port))
}

/// Undoes `%XX`, by which a URL carries `@`, `:` and `/` in a password.
fn unescape(text: &str) -> Result<String, String> {
    let malformed = || format!("`%` in `{text}` is not followed by two hexadecimal digits");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let [high, low, after @ ..] = tail else { return Err(malformed()) };
            let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(malformed);
            bytes.push((digit(*high)? * 16 + digit(*low)?) as u8);
            rest = after;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).map_err(|_| format!("`{text}` is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn at(host: &str, port: u16) -> Target {
        Target { host: host.into(), port, user: None, password: None, database: 0 }
    }

    #[test]
    fn url_names_host_port_login_and_database() {
        assert_eq!(Target::from_url("redis://example.org"), Ok(at("example.org", 6379)));
        assert_eq!(Target::from_url("redis://[::1]:7000/"), Ok(at("::1", 7000)));
        let full = Target {
            user: Some("ann".into()),
            password: Some(Secret("p@ss:w".into())),
            database: 3,
            ..at("10.0.0.1", 7000)
        };
        assert_eq!(Target::from_url("redis://ann:p%40ss:w@10.0.0.1:7000/3"), Ok(full));
        let bare = Target { password: Some(Secret("pw".into())), ..at("h", 6379) };
        assert_eq!(Target::from_url("redis://:pw@h"), Ok(bare.clone()));
        assert_eq!(Target::from_url("redis://pw@h"), Ok(bare));
    }

    #[test]
    fn malformed_url_is_refused() {
        for url in [
            "localhost:6379",
            "http://h",
            "rediss://h",
            "redis://",
            "redis://h:x",
            "redis://[::1]7000",
            "redis://h:70000",
            "redis://h/x",
            "redis://p%4@h",
            "redis://p%+4@h",
        ] {
            assert!(Target::from_url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn password_is_never_shown() {
        let target = Target::from_url("redis://ann:hunter2@h").expect("valid");
        assert!(!format!("{target:?} {target}").contains("hunter2"));
    }

    #[test]
    fn refused_connection_says_how_to_start_a_server() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let port = listener.local_addr().expect("bound").port();
        drop(listener);
        let error = at("127.0.0.1", port).connect().expect_err("nobody listens").to_string();
        assert!(error.contains(&format!("tollgate serve --port {port}")), "{error}");
    }

    #[test]
    fn missing_password_names_the_flag() {
        let error = at("h", 1).explain(b"NOAUTH Authentication required.").to_string();
        assert!(error.contains("--password"), "{error}");
    }
}
