//! Twins of what spreads requests: GCRA, which keeps a moment, and the token bucket.
//!
//! Where the script divides, so does the twin, in doubles: rounded as in Lua.

use super::scene::Scene;
use super::{Declined, Twin};
use crate::protocol::Reply;

pub(super) const TWINS: &[Twin] =
    &[Twin { name: "lua-compat/gcra", sha: "ab74fc625e8d570f70b47d79e2bb8c481e529499", run: gcra }];

fn gcra(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    /// What the script takes.
    const NUMBER_MAX: i64 = 1 << 43;
    const SPAN_US_MAX: f64 = 4_503_599_627_370_496.0;
    let key = scene.key()?;
    let (limit, window) = (scene.number(0, 1)?, scene.number(1, 1)?);
    let (cost, burst) = (scene.number_or(2, 0, 1)?, scene.number_or(3, 1, limit)?);
    if [limit, window, cost, burst].iter().any(|number| *number >= NUMBER_MAX) {
        return Err(Declined);
    }
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
