//! Twins of GCRA, which keeps the moment at which nothing is owed any more.
//!
//! Where the script divides, so does the twin, in doubles: rounded as in Lua.

use super::lua::{max, text};
use super::scene::{Scene, small};
use super::{Declined, Twin};
use crate::protocol::Reply;

pub(super) const TWINS: &[Twin] = &[
    Twin { name: "lua-compat/gcra", sha: "ab74fc625e8d570f70b47d79e2bb8c481e529499", run: gcra },
    Twin { name: "redis-gcra 0", sha: "868f66d2db4929999a50c5ed5f57985f3cff7461", run: redis_gcra },
    Twin {
        name: "throttled-py 3 gcra",
        sha: "6451cdc7599bd26c524ecfadb8e3daa985d63baf",
        run: throttled_gcra,
    },
    Twin {
        name: "throttled-py 3 gcra peek",
        sha: "90b6d68823beeb34f07442b055f7712786bb4247",
        run: throttled_gcra_peek,
    },
];

fn gcra(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    /// What the script takes.
    const SPAN_US_MAX: f64 = 4_503_599_627_370_496.0;
    let key = scene.key()?;
    let (limit, window) = (scene.number(0, 1)?, scene.number(1, 1)?);
    let (cost, burst) = (scene.number_or(2, 0, 1)?, scene.number_or(3, 1, limit)?);
    [limit, window, cost, burst].into_iter().try_for_each(small)?;
    let interval = ((window * 1_000) as f64 / limit as f64).ceil();
    let (cost_us, room) = (cost as f64 * interval, burst as f64 * interval);
    if (burst + cost) as f64 * interval >= SPAN_US_MAX {
        return Err(Declined);
    }
    let now = scene.now_us();
    let until = scene.moment(key)?.unwrap_or(0);
    let owed = ((until - now) as f64).max(0.0);
    let after = owed + cost_us;
    scene.view.read(key);
    if after > room && cost > 0 {
        let retry = if cost > burst { -1 } else { millis_ceil(after - room) };
        let remaining = ((room - owed) / interval).floor().max(0.0) as i64;
        reply.integers(&[1, burst, remaining, retry, millis_ceil(owed)]);
        return Ok(());
    }
    let reset = millis_ceil(after);
    if cost > 0 {
        scene.set(key, now + after as i64, reset);
    }
    let remaining = ((room - after) / interval).floor().max(0.0) as i64;
    reply.integers(&[0, burst, remaining, -1, reset]);
    Ok(())
}

fn millis_ceil(micros: f64) -> i64 {
    (micros / 1_000.0).ceil() as i64
}

fn redis_gcra(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    let (key, now) = (scene.key()?, scene.moment_number(0)? as f64);
    let (burst, rate) = (scene.number(1, 1)? as f64, scene.number(2, 1)? as f64);
    let (period, cost) = (scene.number(3, 1)? as f64, scene.number(4, 0)? as f64);
    let interval = period / rate;
    let (increment, offset) = (interval * cost, interval * burst);
    let until = max(scene.stored_decimal(key)?.unwrap_or(now), now);
    let next = until + increment;
    let diff = now - (next - offset);
    let remaining = (diff / interval).floor();
    // A cost of zero is limited, too, where nothing remains.
    let only_looks = remaining == 0.0 && increment <= 0.0;
    let limited = remaining < 0.0 || only_looks;
    let reset = ((if limited { until } else { next }) - now).ceil() as i64;
    small(reset)?;
    scene.view.read(key);
    let (remaining, retry) = if remaining < 0.0 {
        (((now - (until - offset)) / interval).floor() as i64, -diff)
    } else {
        (remaining as i64, 0.0)
    };
    if !limited && increment > 0.0 {
        scene.set_decimal(key, next, reset);
    }
    reply.array(6);
    for number in [i64::from(limited), remaining, retry.ceil() as i64, reset] {
        reply.integer(number);
    }
    reply.bulk(text(diff));
    reply.bulk(text(interval));
    Ok(())
}

/// What both scripts of throttled-py begin with. Moments are seconds since 2025.
struct Throttled {
    interval: f64,
    capacity: f64,
    now: f64,
    /// At which nothing is owed any more.
    until: f64,
    /// Nothing, or less by what is owed.
    free: f64,
}

impl Throttled {
    fn of(scene: &mut Scene<'_, '_>) -> Result<Self, Declined> {
        const START_OF_2025_S: i64 = 1_735_660_800;
        let (key, interval) = (scene.key()?, scene.decimal(0)?);
        let capacity = scene.number(1, 0)? as f64;
        let now_us = scene.now_us();
        let seconds = (now_us / 1_000_000 - START_OF_2025_S) as f64;
        let now = seconds + (now_us % 1_000_000) as f64 / 1_000_000.0;
        if interval <= 0.0 {
            return Err(Declined);
        }
        let until = scene.stored_decimal(key)?.unwrap_or(now);
        scene.view.read(key);
        Ok(Self { interval, capacity, now, until, free: now - max(now, until) })
    }
}

fn throttled_gcra(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    let (key, cost) = (scene.key()?, scene.number(2, 0)? as f64);
    let Throttled { interval, capacity, now, until, free } = Throttled::of(scene)?;
    let next = max(now, until) + cost * interval;
    let elapsed = free + (capacity - cost) * interval;
    let remaining = (capacity - cost) + (free / interval).floor();
    let (limited, remaining, reset, retry) = if remaining < 0.0 {
        let remaining = capacity.min(cost + remaining);
        (1, remaining, max(0.0, until - now), -elapsed)
    } else {
        (0, remaining, next - now, 0.0)
    };
    let lives_s = reset.ceil() as i64;
    small(lives_s)?;
    if limited == 0 && reset > 0.0 {
        scene.set_decimal(key, next, lives_s * 1_000);
    }
    answer_throttled(limited, remaining, [reset, retry], reply);
    Ok(())
}

fn throttled_gcra_peek(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    let Throttled { interval, capacity, now, until, free } = Throttled::of(scene)?;
    let elapsed = free + capacity * interval;
    let reset = max(0.0, until - now);
    let remaining = capacity + (free / interval).floor();
    let (limited, remaining, retry) =
        if remaining < 1.0 { (1, 0.0, elapsed.abs()) } else { (0, remaining, 0.0) };
    answer_throttled(limited, remaining, [reset, retry], reply);
    Ok(())
}

fn answer_throttled(limited: i64, remaining: f64, waits: [f64; 2], reply: &mut Reply<'_>) {
    reply.array(4);
    reply.integer(limited);
    reply.integer(remaining as i64);
    for wait in waits {
        reply.bulk(text(wait));
    }
}
