//! Twins against their scripts: the same requests at two engines, at the same moments.
//!
//! One engine runs the script by the interpreter; the other runs the twin, and the script where
//! the twin declines. After every request the replies and all that both engines hold must be the
//! same, whatever stood under the keys before.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use proptest::sample::select;

use super::super::call::Ground;
use super::super::options::ScriptOptions;
use super::super::runtime::Initial;
use super::super::session::Session;
use super::super::spec::Handler;
use super::super::{Runtime, Service, Worker};
use super::texts::text;
use super::{Declined, Twins};
use crate::engine::{Cursor, Engine, Scope, View};
use crate::lua::{
    Abandon, Call, Failure, Interpreter, Invocation, LogLevel, Origin, Script, Scripts, Setup,
};
use crate::protocol::{Args, OwnedArgs, Reply, Resp};
use crate::time::{Clock, Duration, Timestamp};

const START: Timestamp = Timestamp::from_micros(1_700_000_000_123_456);

fn initial() -> Initial {
    Initial {
        password: String::new(),
        protected: false,
        connections_max: 10,
        idle_timeout: Duration::ZERO,
        output_bytes_max: "1mb".parse().expect("a size"),
        push_bytes_max: "1mb".parse().expect("a size"),
        subscriptions_max: 10,
        key_bytes_max: "1kb".parse().expect("a size"),
        value_bytes_max: "1kb".parse().expect("a size"),
        log_entries_max: 1_024.try_into().expect("at least the lowest"),
        dragonfly_rounding: false,
        scripts: ScriptOptions {
            busy_after: Duration::from_secs(5),
            worker_bytes_max: "64mb".parse().expect("a size"),
            native_twins: true,
            bare_error_codes: true,
            accept_unknown_flags: true,
        },
        slowlog_threshold: Duration::from_secs(1),
        slowlog_entries_max: 0,
        latency_threshold: Duration::ZERO,
    }
}

/// One of the two engines.
struct Side {
    clock: Clock,
    worker: Worker,
    interpreter: Interpreter,
    scripts: Scripts,
    script: Arc<Script>,
}

/// The server as a script sees it: the commands with keys, and TIME.
struct Caller<'c, 'e> {
    worker: &'c Worker,
    view: &'c mut View<'e>,
}

impl Call for Caller<'_, '_> {
    fn call(&mut self, words: Args<'_>, resp: Resp, out: &mut Vec<u8>) -> Result<(), Abandon> {
        let mut reply = Reply::new(out, resp);
        if words.name().eq_ignore_ascii_case(b"TIME") {
            let micros = self.view.now().as_micros() as i64;
            reply.array(2);
            reply.bulk_integer(micros / 1_000_000);
            reply.bulk_integer(micros % 1_000_000);
            return Ok(());
        }
        let number = self.worker.service.table().resolve(words).expect("a command");
        let entry = self.worker.entry(number);
        let Handler::Keyed(answer) = entry.handler() else { return Err(Abandon) };
        let session = Session::new(1, true);
        let request = self.worker.request(&session, entry, words);
        let ground = Ground::Within(self.view);
        if let Err(error) = request.and_then(|request| answer(&request, ground, &mut reply)) {
            reply.error(&error);
        }
        Ok(())
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn allows(&mut self, _: Args<'_>) -> Option<bool> {
        None
    }
}

impl Side {
    fn new(text: &[u8]) -> Self {
        let clock = Clock::manual(START);
        let service = Service::new(Engine::new(4, 1), Runtime::new(initial()), START);
        let worker = Worker::new(Arc::new(service), clock.clone());
        let setup = Setup {
            redis_version: "7.2.4",
            memory_max: 64 << 20,
            bare_codes: true,
            kill: Arc::new(AtomicBool::default()),
        };
        let (mut interpreter, scripts) = (Interpreter::new(&setup), Scripts::default());
        let script = interpreter.load(&scripts, text, Origin::Eval).expect("it compiles");
        Self { clock, worker, interpreter, scripts, script }
    }

    /// Asks the script, or its twin, and returns the reply; the twin may decline.
    fn ask(
        &mut self,
        by_twin: bool,
        (keys, args): (&[&str], &[String]),
        resp: Resp,
    ) -> Result<Vec<u8>, Declined> {
        let now = self.worker.begin();
        let service = Arc::clone(&self.worker.service);
        let engine = service.engine();
        let (keys, args) = (OwnedArgs::of(keys), OwnedArgs::of(args));
        let (keys, args) = (keys.as_args(), args.as_args());
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, resp);
        engine.transact(Scope::All, 0, now, |view| {
            if by_twin {
                let hashed = keys.iter().map(|key| engine.key(key)).collect();
                let twin = Twins::all().find(self.script.sha()).expect("the script has a twin");
                return twin.run(view, &hashed, args, &mut reply);
            }
            let words = Invocation { keys, args, seed: 0 };
            let mut caller = Caller { worker: &self.worker, view };
            let script = (&self.scripts, &*self.script);
            match self.interpreter.run(script, words, &mut caller, &mut reply) {
                Ok(()) => Ok(()),
                Err(Failure::Error(error)) => {
                    reply.error(&error);
                    Ok(())
                }
                Err(Failure::Abandoned) => panic!("the script asks for what nobody answers"),
            }
        })?;
        Ok(out)
    }

    fn command(&mut self, line: &str) {
        let now = self.worker.begin();
        let words = OwnedArgs::of(line.split(' '));
        let service = Arc::clone(&self.worker.service);
        service.engine().transact(Scope::All, 0, now, |view| {
            let mut caller = Caller { worker: &self.worker, view };
            caller.call(words.as_args(), Resp::V2, &mut Vec::new()).expect("it has keys");
        });
    }

    /// Every key with its value and deadline.
    fn held(&self) -> Vec<(Vec<u8>, Vec<u8>, Timestamp)> {
        let engine = self.worker.service.engine();
        engine.transact(Scope::All, 0, self.clock.now(), |view| {
            let mut held = Vec::new();
            view.scan(Cursor::default(), &mut { usize::MAX }, |key, value| {
                let mut encoded = Vec::new();
                value.encode(&mut encoded);
                held.push((key.to_vec(), encoded, Timestamp::EPOCH));
            });
            for (key, _, expires) in &mut held {
                let found = view.look(engine.key(key)).expect("it was just seen");
                *expires = found.expires;
            }
            held.sort();
            held
        })
    }
}

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    Ask(Vec<String>, Resp),
    Command(String),
    Wait(u64),
}

fn step(args: BoxedStrategy<Vec<String>>) -> impl Strategy<Value = Step> {
    let commands = [
        "DEL k",
        "SET k 5",
        "SET k 0",
        "SET k -3",
        "SET k 7 PX 1500",
        "SET k 1.5",
        "SET k 010",
        "SET k 9007199254740993",
        "SET k 9223372036854775807 PX 900",
        "SET k x",
        "PERSIST k",
        "APPEND k 1",
        "RPUSH k 1700000000.5 1699999999",
        "RPUSH k a",
        "HSET k f v",
        "ZADD k 1 m",
        "PEXPIRE k 700",
        "SET k 1700000000900000",
        "SET k 1700000009000000 PX 800",
        "SADD k m",
    ];
    prop_oneof![
        8 => (args, select(vec![Resp::V2, Resp::V3]))
            .prop_map(|(args, resp)| Step::Ask(args, resp)),
        2 => select(commands.map(str::to_owned).to_vec()).prop_map(Step::Command),
        3 => prop_oneof![0_u64..2_000_000, 0_u64..3_000].prop_map(Step::Wait),
    ]
}

/// Small whole numbers mostly, and all that is unusual.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => (0_i64..9).prop_map(|number| number.to_string()),
        6 => (1_i64..3_000).prop_map(|number| number.to_string()),
        1 => any::<i64>().prop_map(|number| number.to_string()),
        1 => select(["", "-1", "1.5", "1e3", "0x10", " 7", "x", "nan", "-0", "1125899906842625"]
            .map(str::to_owned).to_vec()),
    ]
}

/// Plays the steps at both sides. Returns how often the twin answered, and was asked.
fn play(text: &[u8], steps: &[Step]) -> Result<(usize, usize), TestCaseError> {
    let (mut plain, mut twin) = (Side::new(text), Side::new(text));
    let (mut answered, mut asked) = (0, 0);
    for step in steps {
        match step {
            Step::Wait(micros) => {
                for side in [&plain, &twin] {
                    side.clock.advance(Duration::from_micros(*micros));
                }
            }
            Step::Command(line) => {
                for side in [&mut plain, &mut twin] {
                    side.command(line);
                }
            }
            Step::Ask(args, resp) => {
                let words = (&["k"][..], args.as_slice());
                let expected = plain.ask(false, words, *resp).expect("a script never declines");
                let before = twin.held();
                asked += 1;
                let got = if let Ok(got) = twin.ask(true, words, *resp) {
                    answered += 1;
                    got
                } else {
                    prop_assert_eq!(twin.held(), before, "declined, and changed something");
                    twin.ask(false, words, *resp).expect("a script never declines")
                };
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                prop_assert_eq!(text(&got), text(&expected), "{:?}", args);
            }
        }
        prop_assert_eq!(twin.held(), plain.held(), "after {:?}", step);
    }
    Ok((answered, asked))
}

fn steps(args: BoxedStrategy<Vec<String>>) -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(args), 1..40)
}

fn numbers(least: usize, most: usize) -> BoxedStrategy<Vec<String>> {
    proptest::collection::vec(number(), least..=most).boxed()
}

/// Points or an amount, and a number of seconds.
fn points_and_seconds() -> BoxedStrategy<Vec<String>> {
    let points = prop_oneof![number(), (-5_i64..5).prop_map(|number| number.to_string())];
    proptest::collection::vec(points, 0..5).boxed()
}

fn fastify() -> BoxedStrategy<Vec<String>> {
    let switch = || select(["true", "false", ""].map(str::to_owned).to_vec());
    let max = (0_i64..4).prop_map(|number| number.to_string());
    (number(), max, switch(), switch())
        .prop_map(|(window, max, goes_on, backs_off)| vec![window, max, goes_on, backs_off])
        .boxed()
}

/// A caller's clock, limit, seconds and amount.
fn moving_window() -> BoxedStrategy<Vec<String>> {
    let moment = prop_oneof![
        (0_u64..5_000_000)
            .prop_map(|more| format!("{}", (1_700_000_000_000_000 + more) as f64 / 1e6)),
        (1_699_999_998_i64..1_700_000_005).prop_map(|moment| moment.to_string()),
        number(),
    ];
    let small = || prop_oneof![9 => (0_i64..5).prop_map(|small| small.to_string()), 1 => number()];
    (moment, small(), small(), small())
        .prop_map(|(moment, limit, expiry, amount)| vec![moment, limit, expiry, amount])
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn fixed_window_answers_as_its_script(steps in steps(numbers(0, 4))) {
        play(&text("lua-compat/fixed-window"), &steps)?;
    }

    #[test]
    fn gcra_answers_as_its_script(steps in steps(numbers(0, 5))) {
        play(&text("lua-compat/gcra"), &steps)?;
    }

    #[test]
    fn rate_limit_redis_answers_as_its_scripts(steps in steps(numbers(0, 2))) {
        play(&text("rate-limit-redis 6 increment"), &steps)?;
        play(&text("rate-limit-redis 6 get"), &steps)?;
    }

    #[test]
    fn rate_limiter_flexible_answers_as_its_script(steps in steps(points_and_seconds())) {
        play(&text("rate-limiter-flexible 11"), &steps)?;
    }

    #[test]
    fn limits_answers_as_its_counting_script(steps in steps(points_and_seconds())) {
        play(&text("limits 5 incr_expire"), &steps)?;
    }

    #[test]
    fn limits_answers_as_its_moving_window(steps in steps(moving_window())) {
        play(&text("limits 5 acquire_moving_window"), &steps)?;
    }

    #[test]
    fn fastify_answers_as_its_scripts(steps in steps(fastify())) {
        play(&text("@fastify/rate-limit 11 incr"), &steps)?;
        play(&text("@fastify/rate-limit 11 read"), &steps)?;
    }
}

#[test]
fn twins_answer_what_is_usual_themselves() {
    for (name, args) in [
        ("lua-compat/fixed-window", "3 1000 1"),
        ("lua-compat/gcra", "3 1000 1 2"),
        ("rate-limit-redis 6 increment", "1000"),
        ("rate-limit-redis 6 get", ""),
        ("rate-limiter-flexible 11", "1 2 5 2"),
        ("limits 5 incr_expire", "2 1"),
        ("limits 5 acquire_moving_window", "1700000000.123456 5 1 1"),
        ("@fastify/rate-limit 11 incr", "1000 3 true true"),
        ("@fastify/rate-limit 11 read", ""),
    ] {
        let args = args.split_whitespace().map(str::to_owned).collect();
        let ask = Step::Ask(args, Resp::V2);
        let steps = std::iter::repeat_n([ask, Step::Wait(300_000)], 30).flatten();
        let steps: Vec<Step> = steps.collect();
        let (answered, asked) = play(&text(name), &steps).expect("they are the same");
        assert_eq!(answered, asked, "{name}");
    }
}
