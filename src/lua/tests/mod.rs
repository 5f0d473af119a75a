//! Scripts against a small server of the test's own.
//!
//! Expected bytes are those that a Redis 7.0.15 gave to the same script, but where it is said that
//! they follow 7.2 or are ours.

mod attacks;
mod ends;
mod libraries;
mod patterns;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{
    Abandon, Call, Failure, Interpreter, Invocation, Libraries, LogLevel, Origin, RestorePolicy,
    Scripts, Setup, Sha,
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
            worker: 0,
            bare_codes: true,
            kill: Arc::clone(&kill),
        };
        let interpreter = Interpreter::new(&setup);
        let (scripts, libraries) = (Scripts::default(), Libraries::default());
        Self { fake: Fake::default(), scripts, libraries, interpreter, kill }
    }

    fn outcome(&mut self, text: &str, words: [&[&str]; 2], resp: Resp) -> Result<String, Failure> {
        let script = self.interpreter.load(&self.scripts, text.as_bytes(), Origin::Eval)?;
        let [keys, args] = words.map(OwnedArgs::of);
        let invocation = Invocation { keys: keys.as_args(), args: args.as_args() };
        let mut out = b"before".to_vec();
        let mut reply = Reply::new(&mut out, resp);
        let ran = (&self.scripts, &*script);
        let left = self.interpreter.run(ran, invocation, &mut self.fake, &mut reply);
        let written = out.strip_prefix(b"before").expect("what was written stays");
        assert!(left.is_ok() || written.is_empty(), "a failure writes nothing");
        left.map(|()| String::from_utf8_lossy(written).into_owned())
    }

    fn bytes(&mut self, text: &str, resp: Resp) -> String {
        shown(self.outcome(text, [&[], &[]], resp), resp)
            .replace(&Sha::of(text.as_bytes()).hex(), "SHA")
    }

    /// FCALL.
    fn fcall(&mut self, name: &str, words: [&[&str]; 2]) -> String {
        let Some(found) = self.libraries.find(name.as_bytes()) else { return "absent".into() };
        let [keys, args] = words.map(OwnedArgs::of);
        let invocation = Invocation { keys: keys.as_args(), args: args.as_args() };
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, Resp::V2);
        let ran = (&self.libraries, &found);
        let left = self.interpreter.call_function(ran, invocation, &mut self.fake, &mut reply);
        shown(left.map(|()| String::from_utf8_lossy(&out).into_owned()), Resp::V2)
    }

    /// FUNCTION LOAD.
    fn load_library(&mut self, code: &str, policy: RestorePolicy) -> String {
        match self.interpreter.load_library(&self.libraries, code.as_bytes(), policy) {
            Ok(name) => String::from_utf8_lossy(&name).into_owned(),
            Err(error) => error.to_string(),
        }
    }

    fn eval(&mut self, text: &str) -> String {
        self.bytes(text, Resp::V2)
    }
}

/// What the client reads.
fn shown(left: Result<String, Failure>, resp: Resp) -> String {
    match left {
        Ok(reply) => reply,
        Err(Failure::Abandoned) => "abandoned".to_owned(),
        Err(Failure::Error(error)) => {
            let mut out = Vec::new();
            Reply::new(&mut out, resp).error(&error);
            String::from_utf8_lossy(&out).into_owned()
        }
    }
}
