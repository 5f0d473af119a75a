//! A server of few words: it answers one connection as it is told, and remembers what was asked.
//!
//! It greets who says HELLO. Then each request is answered by the next line of its script; it
//! may wait for the test before one.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

/// What to do about one request.
pub(super) enum Act {
    /// Bytes, with `\n` for the ends of lines.
    Answer(&'static str),
    /// Nothing at all is said, to this and to what follows.
    Silence,
    /// The same as an answer, once the test says so or has gone.
    AnswerWhenTold(&'static str, Receiver<()>),
}

/// The server, until its connection ends.
pub(super) struct Scripted {
    pub(super) port: u16,
    thread: JoinHandle<Vec<String>>,
}

impl Scripted {
    pub(super) fn start(script: Vec<Act>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("somebody comes");
            play(&stream, script)
        });
        Self { port, thread }
    }

    /// What was asked after HELLO, a line each. The connection must have been closed.
    pub(super) fn asked(self) -> Vec<String> {
        self.thread.join().expect("it played its script")
    }
}

fn play(stream: &TcpStream, script: Vec<Act>) -> Vec<String> {
    let mut reader = BufReader::new(stream);
    let mut asked = Vec::new();
    let mut script = script.into_iter();
    let answer = |text: &str| {
        let mut stream = stream;
        // Who asked may have gone.
        drop(stream.write_all(text.replace('\n', "\r\n").as_bytes()));
    };
    while let Some(request) = read_request(&mut reader) {
        if request.starts_with("HELLO ") {
            answer("%1\n+server\n+scripted\n");
            continue;
        }
        asked.push(request);
        match script.next() {
            None | Some(Act::Silence) => script = Vec::new().into_iter(),
            Some(Act::Answer(text)) => answer(text),
            Some(Act::AnswerWhenTold(text, told)) => {
                // The test has told, or has gone.
                let _told = told.recv();
                answer(text);
            }
        }
    }
    asked
}

fn read_request(reader: &mut impl BufRead) -> Option<String> {
    let count = read_number(reader)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut word = vec![0; read_number(reader)? + 2];
        reader.read_exact(&mut word).ok()?;
        word.truncate(word.len() - 2);
        words.push(String::from_utf8_lossy(&word).into_owned());
    }
    Some(words.join(" "))
}

/// Behind `*` or `$`.
fn read_number(reader: &mut impl BufRead) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.get(1..)?.trim_end().parse().ok()
}
