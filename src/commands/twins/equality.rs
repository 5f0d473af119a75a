//! Twins against their scripts: the same requests at two engines, at the same moments.
//!
//! One engine runs the script by the interpreter; the other runs the twin, and the script where
//! the twin declines. After every request the replies and all that both engines hold must be the
//! same, whatever stood under the keys before.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::super::request::Ground;
use super::super::runtime::Initial;
use super::super::session::Session;
use super::super::spec::Handler;
use super::super::{Runtime, Service, Worker};
use super::asked::{
    Step, async_ratelimiter, bucket, fastify, lease, limit_seconds_amount, limit_window_cost,
    moving_window, numbers, period_limit_cost, points_and_seconds, redis_gcra, steps,
};
use super::texts::text;
use super::{Declined, find, twin};
use crate::engine::{Cursor, Engine, Scope, View};
use crate::lua::{
    Abandon, Call, Failure, Interpreter, Invocation, LogLevel, Origin, Script, Scripts, Setup,
};
use crate::protocol::{Args, OwnedArgs, Reply, Resp};
use crate::time::{Clock, Duration, Timestamp};

const START: Timestamp = Timestamp::from_micros(1_700_000_000_123_456);

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
        let service = Service::new(Engine::new(4, 1), Runtime::new(Initial::small()), START);
        let worker = Worker::new(Arc::new(service), clock.clone());
        let setup = Setup {
            redis_version: "7.2.4",
            memory_max: 64 << 20,
            worker: 0,
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
                let number = find(self.script.sha()).expect("the script has a twin");
                return twin(number).run(view, &hashed, args, &mut reply);
            }
            let words = Invocation { keys, args };
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

/// Plays the steps at both sides. Returns how often the twin answered, and was asked.
fn play(text: &[u8], steps: &[Step]) -> Result<(usize, usize), TestCaseError> {
    play_on(&["k"], text, steps)
}

fn play_on(keys: &[&str], text: &[u8], steps: &[Step]) -> Result<(usize, usize), TestCaseError> {
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
                let words = (keys, args.as_slice());
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
    fn sliding_log_answers_as_its_script(steps in steps(limit_window_cost())) {
        play(&text("lua-compat/sliding-log"), &steps)?;
    }

    #[test]
    fn sliding_counter_answers_as_its_script(steps in steps(limit_window_cost())) {
        play(&text("lua-compat/sliding-counter"), &steps)?;
    }

    #[test]
    fn token_bucket_answers_as_its_script(steps in steps(numbers(0, 5))) {
        play(&text("lua-compat/token-bucket"), &steps)?;
    }

    #[test]
    fn concurrency_lease_answers_as_its_script(steps in steps(lease())) {
        play(&text("lua-compat/concurrency-lease"), &steps)?;
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
    fn limits_answers_as_its_sliding_window(steps in steps(limit_seconds_amount())) {
        play_on(&["k2", "k"], &text("limits 5 acquire_sliding_window"), &steps)?;
        play_on(&["k", "k2"], &text("limits 5 sliding_window"), &steps)?;
    }

    #[test]
    fn throttled_answers_as_its_scripts(
        buckets in steps(bucket()),
        windows in steps(period_limit_cost()),
    ) {
        for name in ["token bucket", "leaking bucket", "gcra", "gcra peek"] {
            play(&text(&format!("throttled-py 3 {name}")), &buckets)?;
        }
        play_on(&["k", "k2"], &text("throttled-py 3 sliding window"), &windows)?;
    }

    #[test]
    fn redis_gcra_answers_as_its_script(steps in steps(redis_gcra())) {
        play(&text("redis-gcra 0"), &steps)?;
    }

    #[test]
    fn async_ratelimiter_answers_as_its_script(steps in steps(async_ratelimiter())) {
        play(&text("async-ratelimiter 1"), &steps)?;
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
        ("lua-compat/sliding-log", "3 1000 1"),
        ("lua-compat/sliding-counter", "3 1000 1"),
        ("lua-compat/token-bucket", "3 2 1000 1"),
        ("lua-compat/concurrency-lease", "3 1000 me"),
        ("rate-limit-redis 6 increment", "1000"),
        ("rate-limit-redis 6 get", ""),
        ("rate-limiter-flexible 11", "1 2 5 2"),
        ("limits 5 incr_expire", "2 1"),
        ("limits 5 acquire_moving_window", "1700000000.123456 5 1 1"),
        ("limits 5 acquire_sliding_window", "5 1 1"),
        ("limits 5 sliding_window", "1"),
        ("throttled-py 3 sliding window", "1 5 1 1700000000500"),
        ("throttled-py 3 token bucket", "1.5 5 1"),
        ("throttled-py 3 leaking bucket", "1.5 5 1"),
        ("throttled-py 3 gcra", "0.1 5 1"),
        ("throttled-py 3 gcra peek", "0.1 5"),
        ("redis-gcra 0", "1700000000500 5 3 1000 1"),
        ("async-ratelimiter 1", "1700000000123.456 1000 3 0"),
        ("@fastify/rate-limit 11 incr", "1000 3 true true"),
        ("@fastify/rate-limit 11 read", ""),
    ] {
        let args = args.split_whitespace().map(str::to_owned).collect();
        let ask = Step::Ask(args, Resp::V2);
        let steps = std::iter::repeat_n([ask, Step::Wait(300_000)], 30).flatten();
        let steps: Vec<Step> = steps.collect();
        let has_two = name.contains("sliding window") || name.contains("sliding_window");
        let keys: &[&str] = if has_two { &["k2", "k"] } else { &["k"] };
        let same = play_on(keys, &text(name), &steps);
        let (answered, asked) = same.expect("they are the same");
        assert_eq!(answered, asked, "{name}");
    }
}
