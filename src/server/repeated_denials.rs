//! Two whole servers, one with the memory of denials and one without, are asked the same and
//! answer the same.
//!
//! What is asked goes through a worker as it does from a socket: in batches, alone and in groups.
//! Policies change between batches; costs are given back, forgotten, held and settled; time
//! passes. Where one quota applies all bytes of a reply are compared, where several do the verdict.
//! `prefilter` plays a million requests at its own room; here it is as many as a debug build does
//! in a few seconds.

use std::sync::Arc;

use super::hub::Hub;
use super::tests::hub_of;
use crate::commands::{Initial, Session, Worker};
use crate::engine::KeyHasher;
use crate::policy::Change;
use crate::prefilter;
use crate::protocol::OwnedArgs;
use crate::time::{Clock, Duration, Timestamp};

const SEEDS: u64 = 4;
const BATCHES: u64 = 2_000;
const BATCH_MAX: u64 = 12;

/// A generator of fixed seed: what fails once fails again.
struct Dice {
    hasher: KeyHasher,
    thrown: u64,
}

impl Dice {
    fn new(seed: u64) -> Self {
        Self { hasher: KeyHasher::new(seed), thrown: 0 }
    }

    fn below(&mut self, sides: u64) -> u64 {
        self.thrown += 1;
        self.hasher.key(&self.thrown.to_le_bytes()).hash() % sides
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// One of the two servers, with the ids that it has given out.
struct Side {
    hub: Hub,
    worker: Worker,
    session: Session,
    ids: Vec<String>,
}

impl Side {
    fn new(remembers: bool, clock: &Clock) -> Self {
        let prefilter = prefilter::Options::small(remembers);
        let hub = hub_of(Initial { prefilter, ..Initial::small() }, clock.clone());
        let worker = Worker::new(Arc::clone(hub.service()), clock.clone());
        Self { hub, worker, session: Session::new(1, true), ids: Vec::new() }
    }

    fn change(&self, text: &str, revision: u64) {
        let text = text.to_owned().into();
        let put = Change::Put { source: "all".into(), tenant: None, text, revision };
        let applied = self.hub.service().policies().apply(vec![put], self.hub.clock().now());
        assert!(applied.refused.is_empty(), "{:?}", applied.refused);
    }

    /// Answers a batch: a reply for each request.
    fn answer(&mut self, batch: &[String]) -> Vec<String> {
        let last = self.ids.last().map_or("none", String::as_str);
        let words = |line: &String| {
            OwnedArgs::of(line.split(' ').map(|word| if word == "$id" { last } else { word }))
        };
        let requests: Vec<OwnedArgs> = batch.iter().map(words).collect();
        let requests: Vec<_> = requests.iter().map(OwnedArgs::as_args).collect();
        let (mut out, mut answered) = (Vec::new(), 0);
        self.worker.begin();
        while answered < requests.len() {
            let rest = &requests[answered..];
            answered += self.worker.call_some(&mut self.session, &self.hub, rest, &mut out).0;
        }
        self.worker.end(&self.hub);
        self.read(&String::from_utf8(out).expect("all of it is text"))
    }

    /// Splits what was written into replies, each one line, and keeps the ids.
    fn read(&mut self, out: &str) -> Vec<String> {
        let mut lines = out.split_terminator("\r\n");
        let mut replies = Vec::new();
        while let Some(head) = lines.next() {
            let mut reply = head.to_owned();
            let elements = head.strip_prefix('*').map_or(0, |count| count.parse().expect("one"));
            for _ in 0..elements {
                let element = lines.next().expect("a whole reply");
                // Ids are another server's own.
                let shown = if element.starts_with("$16") {
                    self.ids.push(lines.next().expect("an id").to_owned());
                    "id"
                } else {
                    element
                };
                reply.push(' ');
                reply.push_str(shown);
            }
            replies.push(reply);
        }
        replies
    }
}

/// Three tenants: of one quota, of several, and of all that is not remembered.
fn policies(dice: &mut Dice) -> String {
    let mut quota = |most: u64| {
        let algorithm = dice.one_of(&[
            "sliding-log",
            "sliding-window",
            "sliding-counter",
            "fixed-window",
            "gcra",
        ]);
        let (limit, window) = (dice.below(most), dice.one_of(&["50ms", "400ms", "2s", "1m"]));
        format!("limit: {limit}, window: {window}, algorithm: {algorithm}")
    };
    format!(
        "tenants:\n\
         - {{name: one, rules: [{{name: r, per: [ip], {}}}]}}\n\
         - {{name: many, limits: [{{{}}}], rules: [{{name: r, per: [ip], {}}}, \
         {{name: s, endpoint: /a, limits: [{{{}}}, {{{}}}]}}]}}\n\
         - {{name: odd, rules: [{{name: c, per: [ip], count_denied: true, {}}}, \
         {{name: d, caller: '*', mode: shadow, {}}}, \
         {{name: e, endpoint: /a, concurrency: 2}}]}}\n",
        quota(9),
        quota(40),
        quota(12),
        quota(20),
        quota(9),
        quota(9),
        quota(9),
    )
}

fn request(dice: &mut Dice) -> String {
    let tenant = dice.one_of(&["one", "one", "many", "many", "odd"]);
    let ip = dice.below(4);
    let of = format!("{tenant} /a CALLER c{} ATTR ip {ip}", dice.below(2));
    let cost = dice.one_of(&["", " COST 2", " COST 3", " COST 0", " COST 90"]);
    match dice.below(100) {
        0..88 => format!("RL.CHECK {of}{}", if dice.below(4) == 0 { cost } else { "" }),
        88..91 => format!("RL.CHECK {of} PEEK{cost}"),
        91 => format!("RL.REFUND TENANT {of} COST 2"),
        92 => format!("RL.RESET TENANT {tenant}"),
        93 => format!("RL.RESERVE {of} COST 2 TTL 300ms"),
        94 => format!("RL.ACQUIRE {of} TTL 300ms"),
        95 => format!("RL.COMMIT $id {}", dice.below(6)),
        96 => "RL.CANCEL $id".to_owned(),
        97 => "RL.RELEASE $id".to_owned(),
        98 => format!("RL.CHECK {of}"),
        _ => format!("RL.LIMIT {ip} 3 1s"),
    }
}

/// What must be the same in both replies.
fn compared<'r>(request: &str, reply: &'r str) -> &'r str {
    let is_exact = !request.contains(" many ") && !request.contains(" odd ");
    if is_exact { reply } else { &reply[..reply.len().min("*5 :0".len())] }
}

/// Plays one seed. Returns how many denials came from memory.
fn play(seed: u64) -> u64 {
    let clock = Clock::manual(Timestamp::from_millis(1_700_000_000_000));
    let [mut with, mut without] = [true, false].map(|remembers| Side::new(remembers, &clock));
    let mut dice = Dice::new(seed);
    for batch in 0..BATCHES {
        if batch % 200 == 0 {
            let text = policies(&mut dice);
            with.change(&text, batch + 1);
            without.change(&text, batch + 1);
        }
        clock.advance(Duration::from_micros(match dice.below(100) {
            0..50 => 0,
            50..90 => dice.below(2_000),
            90..99 => dice.below(60_000),
            _ => dice.below(3_000_000),
        }));
        let size = 1 + dice.below(BATCH_MAX);
        let requests: Vec<String> = (0..size).map(|_| request(&mut dice)).collect();
        let (one, other) = (with.answer(&requests), without.answer(&requests));
        assert_eq!(one.len(), requests.len(), "{requests:?}: {one:?}");
        for (request, (one, other)) in requests.iter().zip(one.iter().zip(&other)) {
            let place = format!("seed {seed}, batch {batch}, {request}: {one}, without {other}");
            assert_eq!(compared(request, one), compared(request, other), "{place}");
        }
    }
    assert_eq!(without.hub.service().prefilter().counts(), prefilter::Counts::default());
    with.hub.service().prefilter().counts().repeated
}

#[test]
fn server_that_remembers_denials_answers_as_one_that_does_not() {
    for seed in 0..SEEDS {
        let repeated = play(seed);
        assert!(repeated > BATCHES / 2, "seed {seed}: only {repeated} came from memory");
    }
}
