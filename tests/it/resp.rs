//! A connection as tests want it: words in, replies as readable lines out.
//!
//! A reply is one line per RESP line: `+OK`, `:1`, `*2`, `%1`, `_`, `$-1`; a bulk string is its
//! text in double quotes, `\xHH` and the like escaped; a verbatim string the same after `=`.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Nothing that works takes this long.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
        Self { reader: BufReader::new(stream) }
    }

    /// Sends one request and reads its reply.
    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> Vec<String> {
        self.send(&encode(words));
        self.reply()
    }

    /// The same with text for words, and one line for the reply.
    pub(crate) fn line(&mut self, words: &str) -> String {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        self.ask(&words).join(" ")
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).expect("the server takes what is sent");
    }

    /// One whole reply; `(closed)` where the server has closed the connection.
    pub(crate) fn reply(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        self.read_into(&mut lines);
        lines
    }

    fn read_into(&mut self, lines: &mut Vec<String>) {
        let mut head = Vec::new();
        // A reset is an end, too.
        let read = self.reader.read_until(b'\n', &mut head).unwrap_or(0);
        if read == 0 {
            lines.push("(closed)".into());
            return;
        }
        let head = String::from_utf8_lossy(&head[..head.len().saturating_sub(2)]).into_owned();
        let count = || head[1..].parse::<i64>().expect("a length");
        match head.as_bytes()[0] {
            b'$' | b'=' if count() >= 0 => {
                let mut body = vec![0; count() as usize + 2];
                self.reader.read_exact(&mut body).expect("a whole string");
                body.truncate(body.len() - 2);
                let sign = if head.starts_with('=') { "= " } else { "" };
                lines.push(format!("{sign}{}", quoted(&body)));
            }
            b'*' | b'~' | b'>' | b'%' => {
                let count = count() * if head.starts_with('%') { 2 } else { 1 };
                lines.push(head);
                for _ in 0..count {
                    self.read_into(lines);
                }
            }
            _ => lines.push(head),
        }
    }
}

pub(crate) fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Text in double quotes: everything but printable ASCII is escaped.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => write!(text, "\\x{byte:02x}").expect("a string takes all"),
        }
    }
    text.push('"');
    text
}
