//! Random traces of several quotas together against the plainest form of the same: every bucket a
//! ledger in a map, each quota judged by itself, and all taken from only if all allow.

use super::*;
use crate::limit::{Ledger, Remembered, Taking, judge};

struct Trace {
    engine: Engine,
    ledgers: BTreeMap<u8, Ledger>,
    /// What was reserved: id, end and buckets.
    reserved: Vec<(u64, Timestamp, Vec<u8>)>,
    now: Timestamp,
}

impl Trace {
    fn settle(&mut self, reserved: usize, actual: u64) {
        let (id, until, buckets) = self.reserved.swap_remove(reserved);
        let is_live = until > self.now;
        assert_eq!(settle(&self.engine, id, actual, self.now).is_some(), is_live);
        for bucket in buckets.iter().filter(|_| is_live) {
            let ledger = self.ledgers.get_mut(bucket).expect("it was held");
            ledger.release(HoldId(id), until, self.now);
            ledger.spend_as_counted(Cost(actual), self.now);
        }
    }

    fn ask(&mut self, asked: &[(u8, Bound, u64)], reserve: Option<Hold>) {
        let manner = reserve.map_or(Manner::Spend, Manner::Reserve);
        let taking = reserve.map_or(Taking::Spend, |hold| Taking::Hold { until: hold.until });
        let answers = Request::new(asked).manner(manner).at(&self.engine, self.now);
        let mut expected = Answers::new();
        for (bucket, bound, cost) in asked {
            let ledger = self.ledgers.get(bucket);
            let remembered = ledger.map_or(Remembered::Nothing, Remembered::Ledger);
            expected.push(judge(bound, remembered, Cost(*cost), taking, self.now));
        }
        let passes = expected.iter().all(Decision::is_allowed);
        assert_eq!(answers, Ok(expected), "{asked:?}");
        if !passes {
            return;
        }
        for (bucket, bound, cost) in asked {
            let ledger = self.ledgers.entry(*bucket).or_insert_with(|| Ledger::new(None));
            match reserve {
                Some(hold) => ledger.hold(bound, (hold.id, Cost(*cost)), hold.until, self.now),
                None => ledger.spend(bound, Cost(*cost), self.now),
            }
        }
        if let Some(hold) = reserve {
            let buckets = asked.iter().map(|asked| asked.0).collect();
            self.reserved.push((hold.id.0, hold.until, buckets));
        }
    }
}

#[test]
fn several_quotas_answer_as_each_alone_would_and_are_taken_from_together() {
    let credit = Quota::new(Algorithm::SlidingWindow, 4, Duration::from_millis(700));
    let bounds = [
        log(6),
        window(Algorithm::Gcra, 5, 900),
        window(Algorithm::FixedWindow, 9, 3_000),
        window(Algorithm::SlidingCounter, 7, 1_100),
        Bound::Credit(Credit::new(credit.expect("valid"), 3).expect("a valid credit")),
        Bound::Concurrency(3),
    ];
    for seed in 0..40 {
        let mut dice = dice(seed);
        let (ledgers, reserved) = (BTreeMap::new(), Vec::new());
        let mut trace = Trace { engine: Engine::new(4, seed), ledgers, reserved, now: START };
        for id in 1..400 {
            trace.now = trace.now + Duration::from_millis(dice(150));
            if dice(8) == 0 && !trace.reserved.is_empty() {
                trace.settle(dice(trace.reserved.len() as u64) as usize, dice(4));
                continue;
            }
            let first = dice(3) as u8;
            let asked: Vec<_> = (first..first + 1 + dice(4) as u8)
                .map(|bucket| (bucket, bounds[usize::from(bucket)], 1 + dice(2)))
                .collect();
            let until = trace.now + Duration::from_millis(1 + dice(2_000));
            trace.ask(&asked, (dice(3) == 0).then(|| hold(id, until)));
        }
    }
}
