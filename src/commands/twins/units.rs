//! Twins of logs, which keep every unit with its moment.

use super::scene::{Scene, millis};
use super::{Declined, Twin};
use crate::collection::{End, List};
use crate::engine::KeyRef;
use crate::protocol::{FloatText, Reply};

pub(super) const TWINS: &[Twin] = &[Twin {
    name: "limits 5 acquire_moving_window",
    sha: "741eab638ba93ed71020bb821c45c022d0fa02c4",
    run: limits_acquire_moving_window,
}];

/// Units that a twin adds at once; more are rare.
const UNITS_MAX: i64 = 1_000;
/// Seconds that a log lives: a thousand years and more.
const SECONDS_MAX: i64 = 1 << 35;

fn limits_acquire_moving_window(
    scene: &mut Scene<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Declined> {
    let (key, now) = (scene.key()?, scene.arg(0).and_then(decimal).ok_or(Declined)?);
    let (limit, expiry) = (scene.number(1, 1)?, scene.number(2, 1)?);
    let amount = scene.number(3, 1)?;
    if amount > UNITS_MAX || expiry > SECONDS_MAX {
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
    let added = scene.view.change::<List, ()>(key, |list| {
        for _ in 0..amount {
            list.push(End::Left, unit.as_bytes());
        }
        list.trim(0, (limit as usize).min(list.len()));
        Ok(((), true))
    });
    added.map_err(|_| Declined)?;
    scene.view.set_expires(key, scene.view.now() + millis(expiry * 1_000));
    reply.integer(1);
    Ok(())
}

/// The unit at this place of the log.
fn entry(
    scene: &mut Scene<'_, '_>,
    key: KeyRef<'_>,
    place: usize,
) -> Result<Option<f64>, Declined> {
    let Some(found) = scene.view.look(key) else { return Ok(None) };
    let log = found.value.as_collection::<List>().ok_or(Declined)?;
    log.get(place).map(|unit| decimal(unit).ok_or(Declined)).transpose()
}

/// A number of digits and at most one point, as C and Rust read it alike.
fn decimal(text: &[u8]) -> Option<f64> {
    let is_plain = text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
        && text.first().is_some_and(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_plain)?.parse().ok()
}
