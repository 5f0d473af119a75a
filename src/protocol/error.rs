//! What a client is told when something is wrong; the only place that builds such text.
//!
//! One table: each kind of error is a variant under its text. The texts of standard commands are
//! Redis's to the byte, because client libraries compare them; those of native commands name the
//! argument and what it should have been.
//!
//! A text begins with a code in capitals, by which clients dispatch. It may hold what the client
//! typed, so on the wire it is bytes; only `Display`, for logs and tests, replaces what is no
//! UTF-8.

use super::args::Args;
use super::request::ProtocolError;
use std::borrow::Cow;
use std::fmt;
use std::io::Write;

/// An error reply.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Error {
    // What is wrong with the request.
    /// The connection is closed after it.
    #[error("ERR Protocol error: {0}")]
    Protocol(#[from] ProtocolError),
    #[error("{0}")]
    UnknownCommand(Line),
    #[error("{0}")]
    UnknownSubcommand(Line),
    /// Of a command in lower case, or of `container|subcommand`.
    #[error("ERR wrong number of arguments for '{0}' command")]
    WrongArity(Cow<'static, str>),
    #[error("ERR syntax error")]
    Syntax,
    #[error("ERR value is not an integer or out of range")]
    NotInteger,
    #[error("ERR value is not a valid float")]
    NotFloat,
    #[error("ERR min or max is not a float")]
    BoundNotFloat,
    #[error("ERR min or max not valid string range item")]
    BoundNotLex,
    #[error("ERR value is out of range, must be positive")]
    NotPositive,
    #[error("ERR value is out of range")]
    OutOfRange,
    #[error("ERR invalid cursor")]
    InvalidCursor,
    #[error("ERR DB index is out of range")]
    DbOutOfRange,
    /// Of the command named, in lower case.
    #[error("ERR invalid expire time in '{0}' command")]
    InvalidExpire(&'static str),

    // What is wrong with the value under the key.
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    #[error("ERR no such key")]
    NoSuchKey,
    #[error("ERR source and destination objects are the same")]
    SameObject,
    #[error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")]
    StringTooLong,
    #[error("ERR increment or decrement would overflow")]
    IncrementOverflow,
    #[error("ERR decrement would overflow")]
    DecrementOverflow,
    #[error("ERR increment would produce NaN or Infinity")]
    IncrementNotFinite,
    #[error("ERR resulting score is not a number (NaN)")]
    ScoreNotNumber,

    // What is wrong with a transaction.
    #[error("ERR MULTI calls can not be nested")]
    NestedMulti,
    #[error("ERR EXEC without MULTI")]
    ExecWithoutMulti,
    #[error("ERR DISCARD without MULTI")]
    DiscardWithoutMulti,
    #[error("ERR WATCH inside MULTI is not allowed")]
    WatchInMulti,
    #[error("ERR Command not allowed inside a transaction")]
    NotInTransaction,
    #[error("EXECABORT Transaction discarded because of previous errors.")]
    ExecAborted,
    /// Because EXEC itself was refused.
    #[error("EXECABORT Transaction discarded because of: {0}")]
    ExecRefused(Line),

    // Who asks.
    #[error("NOAUTH Authentication required.")]
    NoAuth,
    #[error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
         HELLO AUTH <user> <pass> option can be used to authenticate the client and select the \
         RESP protocol version at the same time"
    )]
    NoAuthHello,
    #[error("WRONGPASS invalid username-password pair or user is disabled.")]
    WrongPass,
    #[error(
        "ERR AUTH <password> called without any password configured for the default user. \
         Are you sure your configuration is correct?"
    )]
    NoPassword,
    /// The user, and the command in lower case.
    #[error("NOPERM User {0} has no permissions to run the '{1}' command")]
    NoPermission(&'static str, String),
    #[error("NOPROTO unsupported protocol version")]
    NoProto,
    #[error("ERR Protocol version is not an integer or out of range")]
    ProtocolNotInteger,

    #[error("UNBLOCKED client unblocked via CLIENT UNBLOCK")]
    Unblocked,
    /// Of the command named, in lower case.
    #[error(
        "ERR Can't execute '{0}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
         are allowed in this context"
    )]
    Subscriber(String),

    // What the server cannot do, or not now.
    #[error("OOM command not allowed when used memory > 'maxmemory'.")]
    OutOfMemory,
    #[error(
        "ERR DEBUG command not allowed. If the setting server.debug is \"local\", you can run it \
         from a local connection, otherwise you need to set it and then restart the server."
    )]
    DebugRefused,
    #[error(
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
    )]
    Busy,
    #[error(
        "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
    )]
    BusyFunction,
    /// When to come back, in milliseconds.
    #[error("OVERLOADED try again later in {0} ms")]
    Overloaded(u64),
    #[error("NOSCRIPT No matching script. Please use EVAL.")]
    NoScript,
    #[error("ERR Script killed by user with SCRIPT KILL...")]
    ScriptKilled,
    #[error("NOTBUSY No scripts in execution right now.")]
    NotBusy,
    #[error(
        "UNKILLABLE Sorry the script already executed write commands against the dataset. You \
         can either wait the script termination or kill the server in a hard way using the \
         SHUTDOWN NOSAVE command."
    )]
    Unkillable,
    #[error("ERR max number of clients reached")]
    MaxClients,
    #[error("ERR This instance has cluster support disabled")]
    ClusterDisabled,

    // Rooms' own.
    /// A native command's argument, and what was expected of it.
    #[error("ERR {name}: {expected}")]
    Argument { name: &'static str, expected: Cow<'static, str> },
    /// A message of the room that makes it; `code` in capitals.
    #[error("{code} {text}")]
    Text { code: &'static str, text: Cow<'static, str> },
    /// A whole line, code included, with the client's own bytes in it.
    #[error("{0}")]
    Raw(Line),
    /// A command's error that a script passes on: it was counted when it happened.
    #[error("{0}")]
    PassedOn(Line),
}

/// A line with bytes of the client's in it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Line(Vec<u8>);

/// How much of an unknown command's name is shown, and how much of its arguments in all.
const SHOWN_BYTES_MAX: usize = 128;

impl Error {
    /// Names the command as it was typed, and the beginning of its arguments.
    pub(crate) fn unknown_command(request: Args<'_>) -> Self {
        let mut args = Vec::new();
        for arg in request.skip(1).iter() {
            if args.len() >= SHOWN_BYTES_MAX {
                break;
            }
            let shown = shown(arg, SHOWN_BYTES_MAX - args.len());
            args.extend_from_slice(&[b"'", shown, b"' "].concat());
        }
        let name = shown(request.name(), SHOWN_BYTES_MAX);
        let parts: [&[u8]; 4] =
            [b"ERR unknown command '", name, b"', with args beginning with: ", &args];
        Self::UnknownCommand(Line(parts.concat()))
    }

    /// `container` in capitals, `name` as it was typed.
    pub(crate) fn unknown_subcommand(container: &str, name: &[u8]) -> Self {
        let name = shown(name, SHOWN_BYTES_MAX);
        let parts: [&[u8]; 5] =
            [b"ERR unknown subcommand '", name, b"'. Try ", container.as_bytes(), b" HELP."];
        Self::UnknownSubcommand(Line(parts.concat()))
    }

    /// A subcommand with more arguments than it takes, where Redis finds that out late.
    pub(crate) fn subcommand_or_arity(container: &str, name: &[u8]) -> Self {
        let name = shown(name, SHOWN_BYTES_MAX);
        let before = b"ERR unknown subcommand or wrong number of arguments for '".as_slice();
        let parts = [before, name, b"'. Try ", container.as_bytes(), b" HELP."];
        Self::UnknownSubcommand(Line(parts.concat()))
    }

    /// Redis's way to name a wrong word: `what` and the word in quotes.
    pub(crate) fn quoting(what: &str, word: &[u8]) -> Self {
        let word = shown(word, SHOWN_BYTES_MAX);
        Self::Raw(Line([b"ERR ", what.as_bytes(), b" '", word, b"'"].concat()))
    }

    /// An argument of a native command, with a fragment such as `expected a whole number`.
    pub(crate) fn argument(name: &'static str, expected: impl Into<Cow<'static, str>>) -> Self {
        Self::Argument { name, expected: expected.into() }
    }

    /// EXEC is refused for this reason, whose code is left out where it says nothing.
    pub(crate) fn exec_refused(reason: &Self) -> Self {
        let mut text = Vec::new();
        reason.write(&mut text);
        let text = text.strip_prefix(b"ERR ").unwrap_or(&text);
        Self::ExecRefused(Line(text.to_vec()))
    }

    /// Any other error: `ERR` and a room's own words.
    pub(crate) fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text { code: "ERR", text: text.into() }
    }

    /// A whole line, its code included.
    pub(crate) fn raw(line: impl Into<Vec<u8>>) -> Self {
        Self::Raw(Line(line.into()))
    }

    /// A whole line of an error that has been counted.
    pub(crate) fn passed_on(line: impl Into<Vec<u8>>) -> Self {
        Self::PassedOn(Line(line.into()))
    }

    /// Appends the text, without `-` and line end.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::UnknownCommand(line)
            | Self::UnknownSubcommand(line)
            | Self::Raw(line)
            | Self::PassedOn(line) => {
                out.extend_from_slice(&line.0);
            }
            // Also a byte that no text can hold is shown as it came.
            Self::Protocol(ProtocolError::ExpectedBulk(byte)) => {
                out.extend_from_slice(b"ERR Protocol error: expected '$', got '");
                out.extend_from_slice(&[*byte, b'\'']);
            }
            other => write!(out, "{other}").expect("a Vec takes all that is written"),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// What Redis would show of it: up to a NUL, and at most `bytes_max`.
fn shown(text: &[u8], bytes_max: usize) -> &[u8] {
    let end = memchr::memchr(0, text).unwrap_or(text.len());
    &text[..end.min(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::super::OwnedArgs;
    use super::*;

    fn unknown(args: &[&[u8]]) -> String {
        Error::unknown_command(OwnedArgs::of(args).as_args()).to_string()
    }

    #[test]
    fn unknown_commands_are_cut_as_redis_cuts_them() {
        let (long, hundred) = (vec![b'x'; 200], vec![b'a'; 100]);
        let shown = "ERR unknown command 'foo', with args beginning with: ";
        assert_eq!(unknown(&[b"foo"]), shown);
        assert_eq!(unknown(&[b"foo", b"a", b"b"]), format!("{shown}'a' 'b' "));
        assert_eq!(unknown(&[b"foo", b"", b"a\0b"]), format!("{shown}'' 'a' "));
        let x = "x".repeat(124);
        assert_eq!(unknown(&[b"foo", b"a", &long, b"d"]), format!("{shown}'a' '{x}' "));
        let (a, b) = ("a".repeat(100), "a".repeat(25));
        assert_eq!(
            unknown(&[&long, &hundred, &hundred, b"c"]),
            format!("{} '{a}' '{b}' ", shown.trim_end().replace("foo", &"x".repeat(128)))
        );
        // 21 of six bytes are 126, and leave room for two letters of one more.
        let many = unknown(&[&b"foo"[..]; 40]);
        assert_eq!(many, format!("{shown}{}'fo' ", "'foo' ".repeat(21)));
    }

    #[test]
    fn bytes_of_the_client_are_shown_as_they_came() {
        let mut out = Vec::new();
        Error::unknown_subcommand("CONFIG", b"f\xffO").write(&mut out);
        assert_eq!(out, b"ERR unknown subcommand 'f\xffO'. Try CONFIG HELP.");
        out.clear();
        Error::from(ProtocolError::ExpectedBulk(0xff)).write(&mut out);
        assert_eq!(out, b"ERR Protocol error: expected '$', got '\xff'");
    }

    #[test]
    fn texts_with_a_part_to_fill_in_name_it() {
        let table = [
            (
                Error::WrongArity("client|setname".into()),
                "ERR wrong number of arguments for 'client|setname' command",
            ),
            (Error::InvalidExpire("set"), "ERR invalid expire time in 'set' command"),
            (
                Error::argument("cost", "expected a whole number"),
                "ERR cost: expected a whole number",
            ),
            (
                Error::NoPermission("default", "config|set".into()),
                "NOPERM User default has no permissions to run the 'config|set' command",
            ),
            (Error::text("no such tenant"), "ERR no such tenant"),
            (
                Error::Text { code: "OVERLOADED", text: "try again in 3 ms".into() },
                "OVERLOADED try again in 3 ms",
            ),
            (Error::raw("MY own"), "MY own"),
            (ProtocolError::InvalidBulkLength.into(), "ERR Protocol error: invalid bulk length"),
        ];
        for (error, expected) in table {
            assert_eq!(error.to_string(), expected);
            let mut out = Vec::new();
            error.write(&mut out);
            assert_eq!(out, expected.as_bytes());
        }
    }

    /// Clients dispatch on the code: one word in capitals, and then a text on the same line.
    #[test]
    fn fixed_texts_begin_with_a_code_that_clients_know() {
        let others = [
            (Error::NoAuth, "NOAUTH"),
            (Error::NoAuthHello, "NOAUTH"),
            (Error::WrongPass, "WRONGPASS"),
            (Error::NoProto, "NOPROTO"),
            (Error::OutOfMemory, "OOM"),
            (Error::WrongType, "WRONGTYPE"),
            (Error::ExecAborted, "EXECABORT"),
            (Error::Busy, "BUSY"),
            (Error::BusyFunction, "BUSY"),
            (Error::NotBusy, "NOTBUSY"),
            (Error::NoScript, "NOSCRIPT"),
            (Error::Unkillable, "UNKILLABLE"),
        ];
        let ordinary = [
            Error::Syntax,
            Error::NotInteger,
            Error::NotFloat,
            Error::BoundNotFloat,
            Error::BoundNotLex,
            Error::NotPositive,
            Error::OutOfRange,
            Error::ScoreNotNumber,
            Error::InvalidCursor,
            Error::DbOutOfRange,
            Error::NoSuchKey,
            Error::SameObject,
            Error::StringTooLong,
            Error::IncrementOverflow,
            Error::DecrementOverflow,
            Error::IncrementNotFinite,
            Error::NestedMulti,
            Error::ExecWithoutMulti,
            Error::DiscardWithoutMulti,
            Error::WatchInMulti,
            Error::NotInTransaction,
            Error::ScriptKilled,
            Error::NoPassword,
            Error::ProtocolNotInteger,
            Error::DebugRefused,
            Error::MaxClients,
            Error::ClusterDisabled,
        ];
        for (error, code) in others.into_iter().chain(ordinary.map(|error| (error, "ERR"))) {
            let text = error.to_string();
            assert_eq!(text.split(' ').next(), Some(code), "{text}");
            assert!(!text.contains("  ") && !text.contains(['\r', '\n']), "{text}");
        }
    }
}
