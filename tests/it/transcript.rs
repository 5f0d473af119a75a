//! Transcripts: what is sent and what comes back, as text.
//!
//! ```text
//! --- title of a section: a new connection to an empty server
//! resp 3                    the connection begins with HELLO 3
//! tollgate only             not played at Redis
//! set lua.busy_after=1s     the section has a server of its own, with this setting
//! policies                  and with the policies in the lines below, which begin with four
//!     name: acme            blanks; further on in a section they take the place of the first
//! script script.lua         loads the script in the file beside; {sha} stands for its name
//! # a comment
//! > SET key "a\r\nb"        a request: words, quoted where needed
//! >> "PING\r\n"             raw bytes; each reply is then one group of `<` lines
//! until b waits             goes on once that connection is blocked
//! ! 7.2: why                the next reply deliberately differs from Redis 7.0's
//! < +OK                     the reply, a line for each of RESP's; a bulk is quoted
//! < :[1..10]                any integer from 1 to 10
//! < ...                     any one reply, or within one, any one line
//! < (closed)                the end of the connection
//! b> GET key                the same of a further connection, by its name; `b<` is its reply
//! > CLIENT UNBLOCK ID(b)    a word or a line of a reply: the number of that connection
//! @ +59s                    moves the clock; such a section is not played at Redis
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::resp::Connection;

pub(crate) struct Transcript {
    pub(crate) path: PathBuf,
    pub(crate) sections: Vec<Section>,
}

#[derive(Default)]
pub(crate) struct Section {
    pub(crate) title: String,
    resp3: bool,
    pub(crate) ours_only: bool,
    /// Settings of a server for this section alone.
    pub(crate) settings: Vec<String>,
    /// What it begins with.
    pub(crate) policies: Option<String>,
    /// The name of the script loaded last.
    sha: String,
    steps: Vec<Step>,
}

enum Step {
    Advance(String),
    Policies(String),
    UntilWaits(String),
    Send { line: usize, who: String, typed: String, words: Vec<Vec<u8>>, raw: bool },
    Expect { line: usize, who: String, reply: Vec<String>, differs: Option<String> },
}

/// The connections of a section by their names; the first one has none.
struct Connections {
    port: u16,
    resp3: bool,
    open: BTreeMap<String, Connection>,
    numbers: BTreeMap<String, String>,
}

/// Who plays: us, whose clock moves, or the real Redis.
pub(crate) enum Player<'a> {
    Tollgate { advance: &'a dyn Fn(&str), govern: &'a dyn Fn(&str) },
    Redis,
}

/// Govern where no section brings policies along.
pub(crate) fn ungoverned(_: &str) {
    unreachable!("a section with policies has a server of its own");
}

/// Every transcript under `tests/it/wire`, by name.
pub(crate) fn all() -> Vec<Transcript> {
    let paths = within("tests/it/wire").into_iter();
    let is_transcript = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "resp");
    paths.filter(is_transcript).map(read).collect()
}

/// What a folder of the project holds, by name.
pub(crate) fn within(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    paths
}

pub(crate) fn read(path: PathBuf) -> Transcript {
    let text = fs::read_to_string(&path).expect("a transcript is text");
    let mut sections = vec![Section::default()];
    let mut differs = None;
    for (at, row) in text.lines().enumerate() {
        let line = at + 1;
        let place = || format!("{}:{line}", path.display());
        let (sign, rest) = row.split_once(' ').unwrap_or((row, ""));
        let section = sections.last_mut().expect("there is always one");
        let name = sign.trim_end_matches(['<', '>']);
        let is_name = name.bytes().all(|byte| byte.is_ascii_lowercase()) && name.len() < sign.len();
        let (who, sign) = sign.split_at(if is_name { name.len() } else { 0 });
        let who = who.to_owned();
        match sign {
            "" if row.starts_with("    ") => section.legislate(&row[4..]),
            "" | "#" => {}
            "---" => sections.push(Section { title: rest.into(), ..Section::default() }),
            "resp" => section.resp3 = rest == "3",
            "tollgate" => section.ours_only = true,
            "set" => section.settings.push(rest.into()),
            "policies" if section.policies.is_none() => section.policies = Some(String::new()),
            "policies" => section.steps.push(Step::Policies(String::new())),
            "script" => section.load(line, rest, &path),
            "until" => {
                let name = rest.trim_end_matches("waits").trim_end();
                section.steps.push(Step::UntilWaits(name.to_owned()));
            }
            "!" => differs = Some(rest.to_owned()),
            "@" => section.steps.push(Step::Advance(rest.trim_start_matches('+').into())),
            ">" | ">>" => {
                let named = rest.replace("{sha}", &section.sha);
                let words =
                    words(&named).unwrap_or_else(|| panic!("{}: unbalanced quotes", place()));
                let (typed, raw) = (rest.to_owned(), sign == ">>");
                section.steps.push(Step::Send { line, who, typed, words, raw });
            }
            "<" => match section.steps.last_mut() {
                Some(Step::Expect { reply, .. }) if !is_whole(reply) => reply.push(rest.into()),
                _ => {
                    let reply = vec![rest.replace("{sha}", &section.sha)];
                    let differs = differs.take();
                    section.steps.push(Step::Expect { line, who, reply, differs });
                }
            },
            _ => panic!(
                "{}: a line begins with one of --- resp tollgate set policies script # > >> ! < @",
                place()
            ),
        }
    }
    sections.retain(|section| !section.steps.is_empty());
    Transcript { path, sections }
}

/// Whether these lines are all of a reply.
fn is_whole(reply: &[String]) -> bool {
    let mut missing = 1_i64;
    for line in reply {
        missing -= 1;
        let count = |text: &str| text.parse::<i64>().unwrap_or(0).max(0);
        match line.as_bytes().first() {
            Some(b'*' | b'~' | b'>') => missing += count(&line[1..]),
            Some(b'%') => missing += 2 * count(&line[1..]),
            _ => {}
        }
    }
    missing <= 0
}

/// Splits at blanks; double quotes hold a word together and know `\n \r \t \" \\ \xHH`.
pub(crate) fn words(text: &str) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.peek().copied() {
        if byte == b' ' {
            bytes.next();
            continue;
        }
        let mut word = Vec::new();
        let quoted = byte == b'"';
        if quoted {
            bytes.next();
        }
        loop {
            match bytes.next() {
                None if quoted => return None,
                None => break,
                Some(b'"') if quoted => break,
                Some(b' ') if !quoted => break,
                Some(b'\\') if quoted => match bytes.next()? {
                    b'n' => word.push(b'\n'),
                    b'r' => word.push(b'\r'),
                    b't' => word.push(b'\t'),
                    b'x' => {
                        let digits = [bytes.next()?, bytes.next()?];
                        let digits = std::str::from_utf8(&digits).ok()?;
                        word.push(u8::from_str_radix(digits, 16).ok()?);
                    }
                    other => word.push(other),
                },
                Some(other) => word.push(other),
            }
        }
        words.push(word);
    }
    Some(words)
}

impl Section {
    /// Loads the script in a file beside the transcript.
    fn load(&mut self, line: usize, file: &str, transcript: &Path) {
        let text = fs::read(transcript.with_file_name(file)).expect("the script is there");
        self.sha = sha1_smol::Sha1::from(&text).hexdigest();
        let words = vec![b"SCRIPT".to_vec(), b"LOAD".to_vec(), text];
        let reply = vec![format!("\"{}\"", self.sha)];
        let (typed, who) = (format!("script {file}"), String::new());
        self.steps.push(Step::Send { line, who: who.clone(), typed, words, raw: false });
        self.steps.push(Step::Expect { line, who, reply, differs: None });
    }

    /// Adds a line to the policies begun last.
    fn legislate(&mut self, line: &str) {
        let document = match self.steps.last_mut() {
            Some(Step::Policies(document)) => Some(document),
            Some(_) => None,
            None => self.policies.as_mut(),
        };
        let document = document.expect("lines that begin with blanks follow `policies`");
        document.push_str(line);
        document.push('\n');
    }

    /// Whether it is played at a server of its own.
    pub(crate) fn is_alone(&self) -> bool {
        self.policies.is_some() || !self.settings.is_empty()
    }

    fn moves_the_clock(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Advance(_)))
    }

    pub(crate) fn is_for_redis(&self) -> bool {
        !self.ours_only && !self.is_alone() && !self.moves_the_clock()
    }

    /// The reasons of the rows that differ from Redis 7.0.
    pub(crate) fn differences(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match step {
            Step::Expect { differs, .. } => differs.as_deref(),
            Step::Advance(_) | Step::Policies(_) | Step::UntilWaits(_) | Step::Send { .. } => None,
        })
    }

    /// The requests as they are typed.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match step {
            Step::Send { typed, .. } => Some(typed.as_str()),
            Step::Advance(_) | Step::Policies(_) | Step::UntilWaits(_) | Step::Expect { .. } => {
                None
            }
        })
    }

    /// Plays the section at an empty server; returns what was wrong.
    pub(crate) fn play(&self, port: u16, player: &Player<'_>) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut connections = Connections::open(port, self.resp3);
        let mut sent = String::new();
        for step in &self.steps {
            match (step, player) {
                (Step::Advance(span), Player::Tollgate { advance, .. }) => advance(span),
                (Step::Policies(document), Player::Tollgate { govern, .. }) => govern(document),
                (Step::Advance(_) | Step::Policies(_), Player::Redis) => {}
                (Step::UntilWaits(who), _) => connections.until_waits(who),
                (Step::Send { line, who, typed, words, raw }, _) => {
                    sent = format!("{line}: {typed}");
                    connections.send(who, words, *raw);
                }
                (Step::Expect { line, who, reply, differs }, player) => {
                    let reply: Vec<String> =
                        reply.iter().map(|line| connections.numbered(line)).collect();
                    let got = connections.reply(who);
                    let same = matches(&reply, &got);
                    let right = match (player, differs) {
                        (Player::Redis, Some(_)) => !same,
                        _ => same,
                    };
                    if !right {
                        wrong.push(format!("{line}: after {sent}\n  not {reply:?}\n  but {got:?}"));
                    }
                }
            }
        }
        wrong.extend(connections.unread().map(|got| format!("{sent}\n  also: {got:?}")));
        wrong
    }
}

impl Connections {
    fn open(port: u16, resp3: bool) -> Self {
        let (open, numbers) = (BTreeMap::new(), BTreeMap::new());
        let mut connections = Self { port, resp3, open, numbers };
        connections.of("").line("FLUSHALL");
        connections
    }

    fn of(&mut self, who: &str) -> &mut Connection {
        self.open.entry(who.to_owned()).or_insert_with(|| {
            let mut connection = Connection::open(self.port);
            let number = connection.line("CLIENT ID").split_off(1);
            self.numbers.insert(format!("ID({who})"), number);
            if self.resp3 {
                connection.line("HELLO 3");
            }
            connection
        })
    }

    fn until_waits(&mut self, who: &str) {
        let request = self.numbered(&format!("CLIENT LIST ID ID({who})"));
        let mut observer = Connection::open(self.port);
        let waits = (0..100_000).any(|_| observer.line(&request).contains(" flags=b "));
        assert!(waits, "{who} never waits");
    }

    fn send(&mut self, who: &str, words: &[Vec<u8>], raw: bool) {
        if raw {
            return self.of(who).send(&words.concat());
        }
        let number = |word: &[u8]| self.numbers.get(str::from_utf8(word).ok()?).cloned();
        let words: Vec<Vec<u8>> = words
            .iter()
            .map(|word| number(word).map_or_else(|| word.clone(), String::into_bytes))
            .collect();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        self.of(who).send(&crate::resp::encode(&words));
    }

    /// The line with the number of the connection in it that it names, if any.
    fn numbered(&self, line: &str) -> String {
        let named = self.numbers.iter().find(|(name, _)| line.ends_with(*name));
        named.map_or_else(|| line.to_owned(), |(name, number)| line.replace(name, number))
    }

    fn reply(&mut self, who: &str) -> Vec<String> {
        let got = self.of(who).reply();
        if got == ["(closed)"] {
            self.open.remove(who);
        }
        got
    }

    /// What comes before the echo of a word that no transcript says: a reply that none expected.
    fn unread(&mut self) -> impl Iterator<Item = Vec<String>> {
        self.open.values_mut().filter_map(|connection| {
            let got = connection.ask(&[b"PING", b"end of the section"]);
            (got.last().map(String::as_str) != Some("\"end of the section\"")).then_some(got)
        })
    }
}

fn matches(expected: &[String], got: &[String]) -> bool {
    if expected == ["..."] {
        return true;
    }
    expected.len() == got.len()
        && expected.iter().zip(got).all(|(expected, got)| {
            expected == "..." || expected == got || in_range(expected, got).unwrap_or(false)
        })
}

/// `:[1..10]`: any integer from 1 to 10.
fn in_range(expected: &str, got: &str) -> Option<bool> {
    let (low, high) = expected.strip_prefix(":[")?.strip_suffix(']')?.split_once("..")?;
    let got: i64 = got.strip_prefix(':')?.parse().ok()?;
    Some((low.parse().ok()?..=high.parse().ok()?).contains(&got))
}
