//! Twins of what bounds how many are there at the same time.

use super::log::Log;
use super::scene::{Scene, small};
use super::{Declined, Twin};
use crate::collection::SortedSet;
use crate::protocol::Reply;
use crate::time::Timestamp;

pub(super) const TWINS: &[Twin] = &[Twin {
    name: "lua-compat/concurrency-lease",
    sha: "d03c30b7edbb1b9a7dd27225802471d8fa727f30",
    run: concurrency_lease,
}];

fn concurrency_lease(scene: &mut Scene<'_, '_>, reply: &mut Reply<'_>) -> Result<(), Declined> {
    let key = scene.key()?;
    let (limit, lease) = (scene.number(0, 0)?, scene.number(1, 0)?);
    [limit, lease].into_iter().try_for_each(small)?;
    let (name, now) = (scene.arg(2).ok_or(Declined)?, scene.now_ms());
    let log = Log::at(scene, key, now as f64)?;
    let set = scene.collection::<SortedSet>(key)?;
    let holds = set.and_then(|set| set.score(name)).is_some_and(|ends| ends > now as f64);
    let others_end = set.and_then(|set| log.last_besides(set, name)).map(whole).transpose()?;
    let left = |ends: Option<i64>| ends.map_or(0, |ends| ends - now);
    if lease > 0 && !holds && log.len() >= limit {
        let next = log.score(scene, key, log.len() - limit)?.map(whole).transpose()?;
        log.only_forget(scene, key, None);
        scene.count_reads_of(key, if limit == 0 { 4 } else { 5 });
        let retry = if limit == 0 { -1 } else { left(next) };
        reply.integers(&[1, limit, 0, retry, left(others_end)]);
        return Ok(());
    }
    let others = log.len() - i64::from(holds);
    let (held, end) = if lease == 0 {
        log.only_forget(scene, key, holds.then_some(name));
        (others, others_end)
    } else {
        let end = others_end.unwrap_or(0).max(now + lease);
        scene.count_reads_of(key, if holds { 1 } else { 2 });
        let expires = Timestamp::from_millis(end.unsigned_abs());
        scene.change(key, expires, |set: &mut SortedSet| {
            log.forget(set, key);
            set.set(name, (now + lease) as f64);
        })?;
        scene.view.read(key);
        (others + 1, Some(end))
    };
    scene.count_reads_of(key, 2);
    reply.integers(&[0, limit, (limit - held).max(0), -1, left(end)]);
    Ok(())
}

/// A millisecond that PEXPIREAT takes.
fn whole(score: f64) -> Result<i64, Declined> {
    const LATEST_MS: f64 = 9_007_199_254_740_992.0;
    if score.fract() == 0.0 && score.abs() <= LATEST_MS { Ok(score as i64) } else { Err(Declined) }
}
