//! Twins of two windows, the older of which counts as far as it still overlaps.
//!
//! Where the script divides, so does the twin, in doubles: rounded as in Lua.

use super::lua::{boolean, modulo, text};
use super::scene::{Counter, Scene};
use super::{Declined, Twin};
use crate::protocol::Reply;

pub(super) const TWINS: &[Twin] = &[
    Twin {
        name: "lua-compat/sliding-counter",
        sha: "a328f55e3679c2d533dab9f4759ea7e6d32a207c",
        run: sliding_counter,
    },
    Twin {
        name: "limits 5 acquire_sliding_window",
        sha: "e8ac2a60cb040b0dbb56815a1e9c6fd032ce62e7",
        run: limits_acquire_sliding_window,
    },
    Twin {
        name: "limits 5 sliding_window",
        sha: "e7a0a27d4101baabb124af209bb0245197a359a1",
        run: limits_sliding_window,
    },
    Twin {
        name: "throttled-py 3 sliding window",
        sha: "e2be2bb446d8824c5a0ef425a63ad79984f4ceac",
        run: throttled_sliding_window,
    },
];

/// What a sliding counter holds, told as Lua has it.
#[derive(Clone, Copy)]
struct Halves {
    count: f64,
    before: f64,
    /// Of the window, in milliseconds: its length, and how much of it has passed.
    window: f64,
    into: f64,
}

impl Halves {
    fn reset_ms(self) -> f64 {
        if self.count > 0.0 {
            2.0 * self.window - self.into
        } else if self.before > 0.0 {
            self.window - self.into
        } else {
            0.0
        }
    }

    /// Until a cost passes that does not now, and is no more than the limit.
    fn retry_ms(self, limit: f64, cost: f64) -> f64 {
        let Self { count, before, window, into } = self;
        let room = (limit - count - cost) * window;
        if room >= 0.0 {
            window - into - (room / before).floor()
        } else {
            2.0 * window - into - ((limit - cost) * window / count).floor()
        }
    }
}

fn sliding_counter(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    /// What the script takes.
    const SPAN_MAX: i128 = 1 << 53;
    let key = scene.key()?;
    let (limit, length, cost) = scene.small_limit_window_cost()?;
    if i128::from(limit + cost) * i128::from(length) >= SPAN_MAX {
        return Err(Declined);
    }
    let (number, into) = (scene.now_ms() / length, scene.now_ms() % length);
    let [kept, count, before] = scene.fields(key, ["window", "count", "before"])?;
    let (count, before) = match number - kept.unwrap_or(number) {
        0 => (count.unwrap_or(0), before.unwrap_or(0)),
        1 => (0, count.unwrap_or(0)),
        _ => (0, 0),
    };
    scene.count_reads_of(key, 1);
    let (window, into) = (length as f64, into as f64);
    let halves = Halves { count: count as f64, before: before as f64, window, into };
    let free = (limit as f64 - halves.count) * window - halves.before * (window - into);
    let left = (free / window).floor();
    if cost as f64 * window > free && cost > 0 {
        let retry = if cost > limit { -1.0 } else { halves.retry_ms(limit as f64, cost as f64) };
        let reset = halves.reset_ms();
        reply.integers(&[1, limit, left.max(0.0) as i64, retry as i64, reset as i64]);
        return Ok(());
    }
    let halves = Halves { count: (count + cost) as f64, ..halves };
    if cost > 0 {
        let expires = scene.after((2.0 * window - into) as i64);
        let fields = [("window", number), ("count", count + cost), ("before", before)];
        scene.set_fields(key, expires, fields)?;
    }
    let left = (left - cost as f64).max(0.0);
    reply.integers(&[0, limit, left as i64, -1, halves.reset_ms() as i64]);
    Ok(())
}

/// The counters of both windows, once the newer one has become the older, if its time has come.
struct Pair {
    previous: Counter,
    current: Counter,
    /// It has, or will have with [`Pair::shift`].
    shifts: bool,
}

impl Pair {
    fn of(scene: &mut Scene<'_, '_>, expiry_ms: i64) -> Result<Self, Declined> {
        let [previous, current] = scene.two_keys()?;
        let newer = scene.counter(current)?;
        if !(1..expiry_ms).contains(&newer.left_ms) {
            let previous = scene.counter(previous)?;
            return Ok(Self { previous, current: newer, shifts: false });
        }
        let left_ms = newer.left_ms + expiry_ms;
        Ok(Self { previous: newer, current: Counter { value: Some(0), left_ms }, shifts: true })
    }

    fn shift(&self, scene: &mut Scene<'_, '_>) -> Result<(), Declined> {
        let [previous, current] = scene.two_keys()?;
        if self.shifts
            && let Some((value, expires)) = scene.view.take(current)
        {
            scene.view.insert(previous, value, expires);
            scene.set(current, 0, self.current.left_ms);
        }
        Ok(())
    }
}

fn limits_acquire_sliding_window(
    scene: &mut Scene<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Declined> {
    let [_, key] = scene.two_keys()?;
    let (limit, expiry_ms) = (scene.number(0, i64::MIN)?, scene.seconds(1)?);
    let amount = scene.number(2, i64::MIN)?;
    if amount > limit {
        reply.null();
        return Ok(());
    }
    let pair = Pair::of(scene, expiry_ms)?;
    pair.shift(scene)?;
    let count = |counter: Counter| counter.value.unwrap_or(0) as f64;
    let previous_ttl = pair.previous.left_ms.max(0) as f64;
    let older = (count(pair.previous) * previous_ttl / expiry_ms as f64).floor();
    if older + count(pair.current) + amount as f64 > limit as f64 {
        reply.null();
        return Ok(());
    }
    match pair.current.value {
        Some(value) => scene.store(key, value + amount, None)?,
        None => scene.set(key, amount, expiry_ms * 2),
    }
    reply.integer(1);
    Ok(())
}

fn limits_sliding_window(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    let ([previous, _], expiry_ms) = (scene.two_keys()?, scene.seconds(0)?);
    // The script reads it also where it is about to be replaced.
    scene.counter(previous)?;
    let pair = Pair::of(scene, expiry_ms)?;
    pair.shift(scene)?;
    reply.array(4);
    for counter in [pair.previous, pair.current] {
        match counter.value {
            Some(value) => reply.bulk_integer(value),
            None => reply.null(),
        }
        reply.integer(counter.left_ms);
    }
    Ok(())
}

fn throttled_sliding_window(
    scene: &mut Scene<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Declined> {
    let [key, before] = scene.two_keys()?;
    let (period_ms, limit) = (scene.seconds(0)?, scene.number(1, 0)?);
    let (cost, now_ms) = (scene.number(2, 0)?, scene.number(3, 0)?);
    let (current, previous) = (scene.counter(key)?.value, scene.counter(before)?.value);
    let part = 1.0 - modulo(now_ms as f64, period_ms as f64) / period_ms as f64;
    let previous = (part * previous.unwrap_or(0) as f64).floor();
    let (period, spent) = ((period_ms / 1_000) as f64, cost as f64);
    let used = previous + current.unwrap_or(0) as f64 + spent;
    let limited = used > limit as f64 && cost > 0;
    let retry = if !limited {
        0.0
    } else if spent <= previous {
        part * period * spent / previous
    } else {
        part * period
    };
    scene.count_reads_of(key, 1);
    scene.count_reads_of(before, 1);
    match current {
        _ if limited => {}
        Some(value) => scene.store(key, value + cost, None)?,
        None => scene.set(key, cost, 3 * period_ms),
    }
    reply.array(3);
    boolean(limited, reply);
    reply.integer(used as i64);
    reply.bulk(text(retry));
    Ok(())
}
