//! The load manager as a service sees it: one reason for each refusal, nothing held too long.

use crate::limit::Hashed;
use crate::time::{Duration, Timestamp};

use super::{
    Declaration, HotKeyOptions, Kind, Level, LimitRange, Manager, Options, OptionsError, Outcome,
    Readings, Reason, RejectorKind, Reported, Request, SAMPLE_PERIOD, ScorecardRule, Share,
    TenantPattern, Tier, Work,
};

const START: Timestamp = Timestamp::from_millis(1_000_000);

fn at(ms: u64) -> Timestamp {
    START + Duration::from_millis(ms)
}

fn manager(options: Options) -> Manager {
    Manager::new(options, START).expect("good options")
}

fn refused(manager: &Manager, request: &Request<'_>, now: Timestamp) -> Option<Reason> {
    manager.admit(request, now, 1 << 31).err().map(|rejection| rejection.reason)
}

/// The manager after as many looks as it takes to be sure, each half a second on.
fn settled(manager: &Manager, readings: &Readings, looks: u64) -> Timestamp {
    let mut now = START;
    for _ in 0..looks {
        now = now + SAMPLE_PERIOD;
        manager.tick(readings, now);
    }
    now
}

#[test]
fn each_bound_refuses_with_its_own_reason() {
    let none_of_acme = ScorecardRule {
        name: "acme".to_owned(),
        tenant: TenantPattern::parse("acme").expect("a good pattern"),
        tier: None,
        work: None,
        in_flight_max: 0,
    };
    let manager = manager(Options {
        bytes_max: 100,
        tasks_max: 2,
        waiting_max: 1,
        scorecard: vec![none_of_acme],
        ..Options::default()
    });
    let request = Request::new(Tier::T1);
    assert_eq!(refused(&manager, &request.bytes(101), START), Some(Reason::Bytes));
    assert_eq!(refused(&manager, &request.tenant(b"acme"), START), Some(Reason::Scorecard));
    let first = manager.admit(&request.bytes(60), START, 0).expect("there is room");
    assert_eq!(refused(&manager, &request, START), Some(Reason::QueueFull));
    let other = request.work(Work::Write);
    assert_eq!(refused(&manager, &other, START), Some(Reason::Tasks));
    assert_eq!(refused(&manager, &other.bytes(41), START), Some(Reason::Bytes));
    drop(first);
    manager.note_tasks(0);
    assert_eq!(refused(&manager, &other.bytes(41), START), None);
    let stats = manager.stats();
    let reasons = [Reason::Bytes, Reason::Scorecard, Reason::QueueFull, Reason::Tasks];
    assert_eq!(reasons.map(|reason| stats.refused_for(reason)), [2, 1, 1, 1]);
    assert_eq!((stats.offered[1], stats.refused[1], stats.cancelled), (7, 5, 2));
}

#[test]
fn permit_gives_back_all_it_held_however_it_ends() {
    let manager = manager(Options {
        bytes_max: 10,
        in_flight: LimitRange::fixed(1),
        timeout_max: Duration::from_millis(100),
        ..Options::default()
    });
    let request = Request::new(Tier::T2).bytes(10);
    let admit = |now| manager.admit(&request, now, 0).expect("all was given back");
    admit(START).begin(START).expect("a place is free").done(at(2), Outcome::Served);
    drop(admit(at(2)));
    drop(admit(at(3)).begin(at(3)));
    let rejection = admit(at(4)).reject(Reason::QueueFull);
    assert_eq!(rejection.reason, Reason::QueueFull);
    let late = admit(at(5)).begin(at(106)).expect_err("it waited 101 ms");
    assert_eq!(late.reason, Reason::QueueTimeout);
    let working = admit(at(106)).begin(at(106)).expect("a place is free");
    let small = Request::new(Tier::T2);
    let rejection = manager.enter(&small, at(107), 0).expect_err("the place is taken");
    assert_eq!(rejection.reason, Reason::InFlight);
    working.done(at(108), Outcome::Failed);
    let stats = manager.stats();
    assert_eq!((stats.served, stats.failed, stats.cancelled), (1, 1, 2));
    let lane = stats.lanes[0];
    assert_eq!((lane.waiting, lane.in_flight), (0, 0));
    admit(at(109));
}

#[test]
fn only_a_level_sheds_and_the_least_important_first() {
    let always = Options { rejector: RejectorKind::FeedForward, ..Options::default() };
    let manager = manager(always);
    let offer = |now| {
        for round in 0..1_000_u32 {
            let tier = Tier::ALL[round as usize % 6];
            // As they come nothing is worked on: the capacity seems to be what has places.
            drop(manager.admit(&Request::new(tier), now, round.wrapping_mul(2_654_435_769)));
        }
    };
    for look in 1..4 {
        offer(at(look * 500 - 1));
        manager.tick(&Readings::default(), at(look * 500));
    }
    assert_eq!(manager.level(), Level::Normal);
    assert!(manager.cut(Work::Read).is_none());
    manager.force(Level::Conserve);
    offer(at(1_999));
    manager.tick(&Readings::default(), at(2_000));
    let cut = manager.cut(Work::Read);
    assert!(!cut.is_none() && manager.stats().lanes[0].admit < 0.1);
    assert_eq!(refused(&manager, &Request::new(Tier::T5), at(2_001)), Some(Reason::Shed));
    assert!(manager.admit(&Request::new(Tier::T0), at(2_001), u32::MAX).is_ok());
    assert!(manager.cut(Work::Slow).is_none());
    manager.auto();
    manager.tick(&Readings::default(), at(2_500));
    assert_eq!(refused(&manager, &Request::new(Tier::T5), at(2_501)), None);
}

#[test]
fn full_memory_refuses_at_any_level() {
    let manager = manager(Options::default());
    for round in 0..1_000_usize {
        drop(manager.admit(&Request::new(Tier::ALL[round % 6]), START, 0));
    }
    manager.force(Level::Normal);
    let full = Readings { memory_own: Some(Share::new(97.5, 100.0)), ..Readings::default() };
    let now = settled(&manager, &full, 1);
    assert_eq!(refused(&manager, &Request::new(Tier::T5), now), Some(Reason::Memory));
    assert_eq!(refused(&manager, &Request::new(Tier::T0), now), None);
    manager.tick(&Readings::default(), now + SAMPLE_PERIOD);
    assert_eq!(refused(&manager, &Request::new(Tier::T5), now), None);
}

#[test]
fn signals_press_on_all_or_on_their_tenant_until_they_expire() {
    let declared = |name: &str, kind| Declaration {
        name: name.to_owned(),
        kind,
        full: 100.0,
        expiry: Duration::from_secs(3),
    };
    let options = Options {
        signals: vec![declared("pool", Kind::Systemic), declared("lag", Kind::PerTenant)],
        ..Options::default()
    };
    let manager = manager(options);
    let reported = |name: &'static str, value, tenant| Reported {
        name: name.as_bytes(),
        value,
        tenant,
        ttl: None,
    };
    manager.report(reported("lag", 400.0, Some(&b"acme"[..])), START).expect("declared");
    let of_acme = Request::new(Tier::T0).tenant(b"acme");
    let passes = |now| {
        let dice = (0..100_u32).map(|step| step * (u32::MAX / 100) + 1_000_000);
        dice.filter(|dice| manager.admit(&of_acme, now, *dice).is_ok()).count()
    };
    assert_eq!(passes(START), 25);
    assert_eq!(refused(&manager, &Request::new(Tier::T0).tenant(b"other"), START), None);
    assert_eq!(passes(START + Duration::from_secs(3)), 100);
    manager.report(reported("pool", 99.0, None), START).expect("declared");
    settled(&manager, &Readings::default(), 4);
    assert_eq!(manager.level(), Level::Emergency);
    settled(&manager, &Readings::default(), 60);
    let error = manager.report(reported("pool", f64::NAN, None), START);
    assert!(error.is_err());
    let mut names = Vec::new();
    manager.show_signals(START, |state| names.push(state.declaration.name.clone()));
    assert_eq!(names, ["pool", "lag"]);
}

#[test]
fn hot_key_is_refused_above_its_share() {
    let hot_key = Some(HotKeyOptions::default());
    let manager = manager(Options { hot_key, waiting_max: 100_000, ..Options::default() });
    let hot = Hashed { bytes: b"hot", hash: 7 };
    let mut refusals = 0;
    for ms in 0..2_000_u64 {
        let name = format!("key{ms}");
        let hash = ms.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let key = if ms % 2 == 0 { hot } else { Hashed { bytes: name.as_bytes(), hash } };
        let request = Request::new(Tier::T3).key(key);
        refusals += u32::from(refused(&manager, &request, at(ms)) == Some(Reason::HotKey));
    }
    assert_eq!(refusals, 200);
}

#[test]
fn retry_hints_are_spread_over_their_interval() {
    let manager = manager(Options { bytes_max: 0, ..Options::default() });
    let mut in_quarter = [0; 4];
    for step in 0..4_000_u32 {
        let dice = step.wrapping_mul(2_654_435_769);
        let request = Request::new(Tier::T3).bytes(1);
        let rejection = manager.admit(&request, START, dice).expect_err("no bytes");
        let after_ms = rejection.retry_after.as_micros() as usize / 1_000 - 500;
        in_quarter[(after_ms * 4 / 1_500).min(3)] += 1;
    }
    assert!(in_quarter.iter().all(|hints| (900..1_100).contains(hints)), "{in_quarter:?}");
}

#[test]
fn options_that_contradict_themselves_are_refused() {
    let refused = |options| Manager::new(options, START).expect_err("bad options").to_string();
    let text = refused(Options { timeout_min: Duration::from_secs(2), ..Options::default() });
    assert_eq!(text, "timeout: the least, 2s, is more than the most, 1s");
    let text = refused(Options { waiting_max: 0, ..Options::default() });
    assert_eq!(text, "`waiting_max` must be from 1 to 1048576, not 0");
    let zero =
        Options { timeout_min: Duration::ZERO, timeout_max: Duration::ZERO, ..Options::default() };
    assert_eq!(Manager::new(zero, START).err(), Some(OptionsError::Zero("timeout_max")));
    let cpu = Declaration {
        name: "cpu".to_owned(),
        kind: Kind::Systemic,
        full: 1.0,
        expiry: Duration::from_secs(1),
    };
    let text = refused(Options { signals: vec![cpu], ..Options::default() });
    assert_eq!(text, "signals: `cpu` is the name of a built-in signal");
}
