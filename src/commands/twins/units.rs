//! Twins of logs, which keep every unit with its moment.

use smallvec::SmallVec;

use super::log::Log;
use super::lua::decimal;
use super::scene::{Scene, small};
use super::{Declined, Twin};
use crate::collection::{End, List, SortedSet};
use crate::engine::KeyRef;
use crate::protocol::{FloatText, Reply};

pub(super) const TWINS: &[Twin] = &[
    Twin {
        name: "lua-compat/sliding-log",
        sha: "aed3d69f45c4997428883b67e8985a3d7f672143",
        run: sliding_log,
    },
    Twin {
        name: "async-ratelimiter 1",
        sha: "ad00ff6f099013f2aea94ed48c220cbf616c6a07",
        run: async_ratelimiter,
    },
    Twin {
        name: "limits 5 acquire_moving_window",
        sha: "741eab638ba93ed71020bb821c45c022d0fa02c4",
        run: limits_acquire_moving_window,
    },
];

/// Units that a twin adds at once; more are rare.
const UNITS_MAX: i64 = 1_000;

fn sliding_log(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    let key = scene.key()?;
    let (limit, window, cost) = scene.small_limit_window_cost()?;
    let (now, window_us) = (scene.now_us(), window * 1_000);
    let log = Log::at(scene, key, (now - window_us) as f64)?;
    let (used, last) = (log.len(), log.score(scene, key, -1)?);
    if cost > UNITS_MAX || last.is_some_and(f64::is_infinite) {
        return Err(Declined);
    }
    // Until a unit has left the window.
    let left = |unit: Option<f64>| {
        let wait = |unit| (unit + window_us as f64 - now as f64) / 1_000.0;
        unit.map_or(0, |unit| wait(unit).ceil() as i64)
    };
    scene.count_reads_of(key, 2);
    if used + cost <= limit && cost > 0 {
        let last = scene.change(key, scene.after(window), |set: &mut SortedSet| {
            log.forget(set, key);
            add_units(set, now, cost);
            set.score_at(set.len() - 1)
        })?;
        scene.view.read(key);
        reply.integers(&[0, limit, limit - used - cost, -1, left(last)]);
        return Ok(());
    }
    let limited = i64::from(cost > 0);
    let retry = if cost == 0 || cost > limit {
        -1
    } else {
        left(log.score(scene, key, used + cost - limit - 1)?)
    };
    log.only_forget(scene, key, None);
    reply.integers(&[limited, limit, (limit - used).max(0), retry, left(last)]);
    Ok(())
}

/// Units of the same microsecond are told apart by their number.
fn add_units(set: &mut SortedSet, now: i64, cost: i64) {
    let moment = now as f64;
    let last = set.len().checked_sub(1).and_then(|last| set.score_at(last));
    let same = if last.is_none_or(|last| last < moment) {
        0
    } else {
        let before = set.rank_where(|score, _| score < moment);
        set.rank_where(|score, _| score <= moment) - before
    };
    let mut unit: SmallVec<[u8; 40]> = SmallVec::new();
    for number in 1..=cost {
        unit.clear();
        unit.extend_from_slice(itoa::Buffer::new().format(now).as_bytes());
        unit.push(b'-');
        unit.extend_from_slice(itoa::Buffer::new().format(same as i64 + number).as_bytes());
        set.set(&unit, moment);
    }
}

fn async_ratelimiter(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    let (key, now) = (scene.key()?, scene.decimal(0)?);
    let (duration, max) = (scene.number(1, 1)?, scene.number(2, i64::MIN)?);
    small(duration)?;
    let peeks = scene.arg(3) == Some(b"1");
    let set = scene.collection::<SortedSet>(key)?;
    // The script takes out who stands between zero and the window's begin.
    if set.and_then(|set| set.score_at(0)).is_some_and(|first| first < 0.0) {
        return Err(Declined);
    }
    let log = Log::at(scene, key, now - duration as f64)?;
    let oldest = log.first(scene, key)?.unwrap_or(now);
    let reset = ((oldest + duration as f64) / 1_000.0).floor() as i64;
    let remaining = max - log.len();
    scene.count_reads_of(key, 2);
    if remaining <= 0 {
        log.only_forget(scene, key, None);
        reply.integers(&[0, reset, max]);
        return Ok(());
    }
    if peeks {
        log.only_forget(scene, key, None);
    } else {
        scene.change(key, scene.after(duration), |set: &mut SortedSet| {
            log.forget(set, key);
            set.set(FloatText::new(now).as_bytes(), now);
        })?;
    }
    reply.integers(&[remaining, reset, max]);
    Ok(())
}

fn limits_acquire_moving_window(
    scene: &mut Scene<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Declined> {
    let (key, now) = (scene.key()?, scene.arg(0).and_then(decimal).ok_or(Declined)?);
    let (limit, expiry) = (scene.number(1, 1)?, scene.seconds(2)? / 1_000);
    let amount = scene.number(3, 1)?;
    if amount > UNITS_MAX {
        return Err(Declined);
    }
    if amount > limit {
        reply.null();
        return Ok(());
    }
    let entry = entry(scene, key, (limit - amount) as usize)?;
    if entry.is_some_and(|entry| entry >= now - expiry as f64) {
        scene.view.read(key);
        reply.null();
        return Ok(());
    }
    let unit = FloatText::new(now);
    scene.change::<List, ()>(key, scene.after(expiry * 1_000), |list| {
        for _ in 0..amount {
            list.push(End::Left, unit.as_bytes());
        }
        list.trim(0, (limit as usize).min(list.len()));
    })?;
    reply.integer(1);
    Ok(())
}

/// The unit at this place of the log.
fn entry(
    scene: &mut Scene<'_, '_>,
    key: KeyRef<'_>,
    place: usize,
) -> Result<Option<f64>, Declined> {
    let Some(log) = scene.collection::<List>(key)? else { return Ok(None) };
    log.get(place).map(|unit| decimal(unit).ok_or(Declined)).transpose()
}
