//! Twins of what spreads requests: GCRA, which keeps a moment, and the token bucket.
//!
//! Where the script divides, so does the twin, in doubles: rounded as in Lua.

use super::scene::{Scene, small};
use super::{Declined, Twin};
use crate::protocol::Reply;

pub(super) const TWINS: &[Twin] = &[
    Twin { name: "lua-compat/gcra", sha: "ab74fc625e8d570f70b47d79e2bb8c481e529499", run: gcra },
    Twin {
        name: "lua-compat/token-bucket",
        sha: "a259a17e6585abceef3a2d91e67e2b608ed7035e",
        run: token_bucket,
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

fn token_bucket(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    /// Parts of a token that the script takes at most, in a full bucket and in a cost.
    const PARTS_MAX: i64 = 1 << 52;
    let key = scene.key()?;
    let (capacity, refill) = (scene.number(0, 1)?, scene.number(1, 1)?);
    let (period, cost) = (scene.number(2, 1)?, scene.number_or(3, 0, 1)?);
    [capacity, refill, period, cost].into_iter().try_for_each(small)?;
    let token = period * 1_000;
    let parts = |tokens: i64| tokens.checked_mul(token).filter(|parts| *parts < PARTS_MAX);
    let (full, asked) = (parts(capacity).ok_or(Declined)?, parts(cost).ok_or(Declined)?);
    let now = scene.now_us();
    let [level, at] = scene.fields(key, ["level", "at"])?;
    let waited = (now - at.unwrap_or(now)).max(0) as f64;
    let came = level.unwrap_or(full) as f64 + waited * refill as f64;
    let level = (full as f64).min(came) as i64;
    let wait = |parts: i64| (parts as f64 / refill as f64 / 1_000.0).ceil() as i64;
    scene.count_reads_of(key, 1);
    if asked > level {
        let retry = if cost > capacity { -1 } else { wait(asked - level) };
        reply.integers(&[1, capacity, level / token, retry, wait(full - level)]);
        return Ok(());
    }
    let level = level - asked;
    if cost > 0 {
        let expires = scene.after(wait(full - level));
        scene.set_fields(key, expires, [("level", level), ("at", now)])?;
    }
    reply.integers(&[0, capacity, level / token, -1, wait(full - level)]);
    Ok(())
}

fn millis_ceil(micros: f64) -> i64 {
    (micros / 1_000.0).ceil() as i64
}
