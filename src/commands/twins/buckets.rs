//! Twins of buckets, which fill or empty evenly, and of which requests take.
//!
//! Where the script divides, so does the twin, in doubles: rounded as in Lua.

use super::lua::boolean;
use super::scene::{Scene, small};
use super::{Declined, Twin};
use crate::engine::KeyRef;
use crate::protocol::Reply;
use crate::time::Timestamp;

pub(super) const TWINS: &[Twin] = &[
    Twin {
        name: "lua-compat/token-bucket",
        sha: "a259a17e6585abceef3a2d91e67e2b608ed7035e",
        run: token_bucket,
    },
    Twin {
        name: "throttled-py 3 token bucket",
        sha: "0b375fed3ba31d8ff89c0d87f05a47222c294639",
        run: throttled_token_bucket,
    },
    Twin {
        name: "throttled-py 3 leaking bucket",
        sha: "3e5979d2e18e05ce09fefed798c7dcce85173ad3",
        run: throttled_leaking_bucket,
    },
];

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

/// What both buckets of throttled-py are asked, and what they hold.
struct Bucket<'s> {
    key: KeyRef<'s>,
    capacity: i64,
    cost: i64,
    /// In seconds.
    now: i64,
    held: Option<i64>,
    /// Units that have come, or gone, since then.
    moved: f64,
    /// Seconds that it is kept for.
    lives_s: i64,
}

impl<'s> Bucket<'s> {
    fn of(scene: &mut Scene<'s, '_>) -> Result<Self, Declined> {
        let (key, rate) = (scene.key()?, scene.decimal(0)?);
        let (capacity, cost) = (scene.number(1, 0)?, scene.number(2, 0)?);
        let now = scene.now_us() / 1_000_000;
        let [held, refreshed] = scene.fields(key, ["tokens", "last_refreshed"])?;
        if held.is_some() != refreshed.is_some() {
            return Err(Declined);
        }
        let elapsed = (now - refreshed.unwrap_or(now)).max(0);
        let lives_s = (2.0 * (capacity as f64 / rate)).floor() as i64;
        small(lives_s)?;
        if lives_s < 1 {
            return Err(Declined);
        }
        scene.view.read(key);
        let moved = (elapsed as f64 * rate).floor();
        Ok(Self { key, capacity, cost, now, held, moved, lives_s })
    }

    fn keep(
        &self,
        scene: &mut Scene<'_, '_>,
        expires: Timestamp,
        tokens: i64,
    ) -> Result<(), Declined> {
        scene.set_fields(self.key, expires, [("tokens", tokens), ("last_refreshed", self.now)])
    }
}

fn throttled_token_bucket(
    scene: &mut Scene<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Declined> {
    let bucket = Bucket::of(scene)?;
    let held = bucket.held.unwrap_or(bucket.capacity) as f64 + bucket.moved;
    let tokens = held.min(bucket.capacity as f64) as i64;
    let limited = bucket.cost > tokens;
    let left = if limited { tokens } else { tokens - bucket.cost };
    if !limited {
        bucket.keep(scene, scene.after(bucket.lives_s * 1_000), left)?;
    }
    reply.array(2);
    boolean(limited, reply);
    reply.integer(left);
    Ok(())
}

fn throttled_leaking_bucket(
    scene: &mut Scene<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Declined> {
    let bucket = Bucket::of(scene)?;
    let held = (bucket.held.unwrap_or(0) as f64 - bucket.moved).max(0.0) as i64;
    let limited = held + bucket.cost > bucket.capacity;
    let level = if limited { held } else { held + bucket.cost };
    if !limited {
        // The deadline is set before the fields are: the first time there is no key yet.
        let expires = match scene.view.look(bucket.key) {
            Some(_) => scene.after(bucket.lives_s * 1_000),
            None => Timestamp::MAX,
        };
        bucket.keep(scene, expires, level)?;
    }
    reply.array(2);
    boolean(limited, reply);
    reply.integer(bucket.capacity - level);
    Ok(())
}
