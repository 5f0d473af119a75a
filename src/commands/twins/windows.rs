//! Twins of fixed windows: counters that live as long as their window.

use super::scene::Scene;
use super::{Declined, Twin};
use crate::protocol::Reply;

pub(super) const TWINS: &[Twin] = &[
    Twin {
        name: "lua-compat/fixed-window",
        sha: "2ac2a9029452517909b48080bff9627724de454a",
        run: fixed_window,
    },
    Twin {
        name: "rate-limit-redis 6 increment",
        sha: "895b92e1712734e1b464999be23953485475357b",
        run: rate_limit_redis_increment,
    },
    Twin {
        name: "rate-limit-redis 6 get",
        sha: "6aeb97ed6086dcdeafdc6fda3999a0d0e38ec96a",
        run: rate_limit_redis_get,
    },
    Twin {
        name: "rate-limiter-flexible 11",
        sha: "a1de965f42e177aa339706bd580f049065eca79a",
        run: rate_limiter_flexible,
    },
    Twin {
        name: "limits 5 incr_expire",
        sha: "628bd136a573a06b346879695681af12ccef300f",
        run: limits_incr_expire,
    },
    Twin {
        name: "@fastify/rate-limit 11 incr",
        sha: "b8a19d47785922bb04e7a9fdb49e90d89be1b8af",
        run: fastify_incr,
    },
    Twin {
        name: "@fastify/rate-limit 11 read",
        sha: "4c7d9ef62b3d4f8efd8d11d5d2fd1a56b1e723bc",
        run: fastify_read,
    },
];

fn fixed_window(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    let key = scene.key()?;
    let (limit, window, cost) = scene.limit_window_cost()?;
    let counter = scene.counter(key)?;
    let used = counter.value.unwrap_or(0);
    let left = counter.left_ms.max(0);
    if used + cost > limit && cost > 0 {
        scene.count_reads(key);
        let retry = if cost > limit { -1 } else { left };
        reply.integers(&[1, limit, (limit - used).max(0), retry, left]);
        return Ok(());
    }
    let begins = cost > 0 && left == 0;
    scene.count_reads(key);
    if begins {
        scene.set(key, used + cost, window);
    } else if cost > 0 {
        scene.store(key, used + cost, None)?;
    }
    let left = if begins { window } else { left };
    reply.integers(&[0, limit, (limit - used - cost).max(0), -1, left]);
    Ok(())
}

fn rate_limit_redis_increment(
    scene: &mut Scene<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Declined> {
    let (key, window) = (scene.key()?, scene.number(0, 1)?);
    if scene.left_ms(key)? <= 0 {
        scene.view.glance(key);
        scene.set(key, 1, window);
        reply.integers(&[1, window]);
        return Ok(());
    }
    let counter = scene.counter(key)?;
    let hits = counter.value.ok_or(Declined)? + 1;
    scene.view.glance(key);
    scene.store(key, hits, None)?;
    reply.integers(&[hits, counter.left_ms]);
    Ok(())
}

fn rate_limit_redis_get(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    let key = scene.key()?;
    let counter = scene.counter(key)?;
    scene.count_reads(key);
    reply.array(2);
    match counter.value {
        Some(value) => reply.bulk_integer(value),
        None => reply.null(),
    }
    reply.integer(counter.left_ms);
    Ok(())
}

fn rate_limiter_flexible(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    let (key, points) = (scene.key()?, scene.number(0, i64::MIN)?);
    let duration_ms = scene.seconds(1)?;
    let counter = scene.counter(key)?;
    let consumed = counter.value.unwrap_or(0) + points;
    let begins = counter.left_ms < 0;
    scene.store(key, consumed, begins.then_some(duration_ms))?;
    scene.view.glance(key);
    reply.integers(&[consumed, if begins { duration_ms } else { counter.left_ms }]);
    Ok(())
}

fn limits_incr_expire(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    let (key, lives_ms) = (scene.key()?, scene.seconds(0)?);
    let amount = scene.number(1, i64::MIN)?;
    let counter = scene.counter(key)?;
    let current = counter.value.unwrap_or(0) + amount;
    scene.store(key, current, (current == amount).then_some(lives_ms))?;
    reply.integer(current);
    Ok(())
}

fn fastify_incr(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    /// The last whole number that a double and its neighbours tell apart.
    const SAFE_MAX: f64 = 9_007_199_254_740_991.0;
    let (key, window, max) = (scene.key()?, scene.number(0, 1)?, scene.number(1, 0)?);
    let is_on = |place| scene.arg(place) == Some(b"true");
    let (goes_on, backs_off) = (is_on(2), is_on(3));
    let counter = scene.counter(key)?;
    let current = counter.value.unwrap_or(0) + 1;
    let lives_ms = if current == 1 || (goes_on && current > max) {
        Some(window)
    } else if backs_off && current > max {
        let doublings = (current - max - 1).min(1_023) as i32;
        Some((window as f64 * 2_f64.powi(doublings)).min(SAFE_MAX) as i64)
    } else {
        None
    };
    scene.store(key, current, lives_ms)?;
    if lives_ms.is_none() {
        scene.view.glance(key);
    }
    reply.integers(&[current, lives_ms.unwrap_or(counter.left_ms)]);
    Ok(())
}

fn fastify_read(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    let key = scene.key()?;
    let counter = scene.counter(key)?;
    scene.view.read(key);
    let Some(current) = counter.value else {
        reply.integers(&[0, 0]);
        return Ok(());
    };
    scene.view.glance(key);
    reply.integers(&[current, counter.left_ms.max(0)]);
    Ok(())
}
