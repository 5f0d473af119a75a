//! Scripts against a small server of the test's own.
//!
//! The expected bytes are those that a Redis 7.0.15 gave to the same script, but where a comment
//! says that they follow 7.2.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{
    Abandon, Call, Failure, Interpreter, Invocation, Libraries, LogLevel, Origin, RestorePolicy,
    Scripts, Setup, dump_libraries,
};
use crate::protocol::{Args, OwnedArgs, Reply, Resp};

/// A server of strings.
#[derive(Default)]
pub(super) struct Fake {
    keys: BTreeMap<Vec<u8>, Vec<u8>>,
    logged: Vec<(LogLevel, Vec<u8>)>,
}

impl Call for Fake {
    fn call(&mut self, words: Args<'_>, resp: Resp, out: &mut Vec<u8>) -> Result<(), Abandon> {
        let mut reply = Reply::new(out, resp);
        let word = |place: usize| words.get(place).unwrap_or_default();
        match words.name().to_ascii_uppercase().as_slice() {
            b"GET" if words.len() == 2 => match self.keys.get(word(1)) {
                Some(value) => reply.bulk(value),
                None => reply.null(),
            },
            b"SET" => {
                self.keys.insert(word(1).to_vec(), word(2).to_vec());
                reply.ok();
            }
            b"INCR" => {
                let value = self.keys.entry(word(1).to_vec()).or_insert_with(|| b"0".to_vec());
                match str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok()) {
                    Some(number) => {
                        *value = (number + 1).to_string().into_bytes();
                        reply.integer(number + 1);
                    }
                    None => out.extend_from_slice(
                        b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
                    ),
                }
            }
            b"MGET" => {
                reply.array(words.len() - 1);
                for key in words.skip(1).iter() {
                    match self.keys.get(key) {
                        Some(value) => reply.bulk(value),
                        None => reply.null(),
                    }
                }
            }
            b"ECHO" => reply.bulk(word(1)),
            b"RAW" => out.extend_from_slice(word(1)),
            b"WIDE" => return Err(Abandon),
            b"GET" => out.extend_from_slice(
                b"-ERR Wrong number of args calling Redis command from script\r\n",
            ),
            _ => out.extend_from_slice(b"-ERR Unknown Redis command called from script\r\n"),
        }
        Ok(())
    }

    fn log(&mut self, level: LogLevel, text: &[u8]) {
        self.logged.push((level, text.to_vec()));
    }

    fn allows(&mut self, words: Args<'_>) -> Option<bool> {
        (words.name() != b"foo").then_some(words.name() != b"flushall")
    }
}

/// One worker.
pub(super) struct Bench {
    pub(super) fake: Fake,
    pub(super) scripts: Scripts,
    libraries: Libraries,
    pub(super) interpreter: Interpreter,
    kill: Arc<AtomicBool>,
}

impl Bench {
    pub(super) fn new() -> Self {
        let kill = Arc::new(AtomicBool::default());
        let setup = Setup {
            redis_version: "7.2.4",
            memory_max: 64 << 20,
            bare_codes: true,
            kill: Arc::clone(&kill),
        };
        let interpreter = Interpreter::new(&setup);
        let (scripts, libraries) = (Scripts::default(), Libraries::default());
        Self { fake: Fake::default(), scripts, libraries, interpreter, kill }
    }

    fn outcome(
        &mut self,
        text: &str,
        keys: &[&str],
        args: &[&str],
        resp: Resp,
    ) -> Result<String, Failure> {
        let script = self.interpreter.load(&self.scripts, text.as_bytes(), Origin::Eval)?;
        let (keys, args) = (OwnedArgs::of(keys), OwnedArgs::of(args));
        let invocation = Invocation { keys: keys.as_args(), args: args.as_args(), seed: 0 };
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, resp);
        self.interpreter.run((&self.scripts, &script), invocation, &mut self.fake, &mut reply)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    fn bytes(&mut self, text: &str, resp: Resp) -> String {
        match self.outcome(text, &[], &[], resp) {
            Ok(reply) => reply,
            Err(Failure::Abandoned) => "abandoned".to_owned(),
            Err(Failure::Error(error)) => {
                let mut out = Vec::new();
                Reply::new(&mut out, resp).error(&error);
                let sha = super::Sha::of(text.as_bytes()).hex();
                String::from_utf8_lossy(&out).replace(&sha, "SHA")
            }
        }
    }

    fn eval(&mut self, text: &str) -> String {
        self.bytes(text, Resp::V2)
    }
}

#[test]
fn recorded_scripts_give_the_recorded_replies() {
    let mut bench = Bench::new();
    let mut wrong = Vec::new();
    for row in include_str!("recorded.txt").lines().filter(|row| !row.starts_with('#')) {
        let Some((resp, rest)) = row.split_once(' ') else { continue };
        let resp = if resp == "3" { Resp::V3 } else { Resp::V2 };
        let (script, expected) = rest.split_once(" => ").expect("a row has two sides");
        let script = script.replace('␤', "\n");
        let found = bench.bytes(&script, resp).replace("\r\n", "|").replace('\n', "␤");
        if found != expected {
            wrong.push(format!("{script}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} rows\n{}", wrong.len(), wrong.join("\n"));
}
