//! Native twins: what well-known limiter scripts do, done without Lua.
//!
//! A script is known by the SHA-1 of its text. Its twin leaves the same keys, values and
//! deadlines and writes the same reply, byte for byte; whatever is unusual, as an argument that
//! is no plain number or a key of another kind, it declines, and the script itself runs. So
//! errors are always the script's own.
//!
//! Invariant: a twin that declines has changed nothing, and has written nothing.

#[cfg(test)]
mod asked;
mod buckets;
#[cfg(test)]
mod equality;
mod leases;
mod log;
mod lua;
mod overlap;
mod scene;
mod spread;
mod tally;
#[cfg(test)]
mod texts;
mod units;
mod windows;

use super::spec::KeyList;
use crate::engine::View;
use crate::lua::Sha;
use crate::protocol::{Args, Reply};
use scene::Scene;
pub(super) use tally::Tally;
pub(crate) use tally::TwinCounts;

/// The script itself has to run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Declined;

/// Does what the script does, or nothing at all.
type Run = fn(&mut Scene<'_, '_>, &mut Reply<'_>) -> Result<(), Declined>;

/// A script that is known, and what takes its place.
#[derive(Debug)]
pub(super) struct Twin {
    /// Whose script it is, and which of them.
    name: &'static str,
    /// In hexadecimal digits.
    sha: &'static str,
    run: Run,
}

const FAMILIES: [&[Twin]; 6] =
    [windows::TWINS, overlap::TWINS, spread::TWINS, buckets::TWINS, units::TWINS, leases::TWINS];

/// How many there are.
const COUNT: usize = {
    let (mut count, mut family) = (0, 0);
    while family < FAMILIES.len() {
        count += FAMILIES[family].len();
        family += 1;
    }
    count
};

/// Which twin: its place among all.
pub(super) type Number = u16;

fn all() -> impl Iterator<Item = &'static Twin> {
    FAMILIES.into_iter().flatten()
}

/// The twin of the script of that name.
pub(super) fn find(sha: &Sha) -> Option<Number> {
    let place = all().position(|twin| Sha::parse(twin.sha.as_bytes()).as_ref() == Some(sha));
    place.map(|place| place as Number)
}

/// The twin with a number of [`find`].
pub(super) fn twin(number: Number) -> &'static Twin {
    all().nth(number.into()).expect("only `find` gives numbers")
}

impl Twin {
    /// Runs in place of the script, which was given these keys and arguments.
    pub(super) fn run(
        &self,
        view: &mut View<'_>,
        keys: &KeyList<'_>,
        args: Args<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Declined> {
        (self.run)(&mut Scene::new(view, keys, args), reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_twin_is_found_by_its_own_name() {
        for known in all() {
            let sha = Sha::parse(known.sha.as_bytes()).expect("forty digits");
            let found = find(&sha).map(twin);
            assert_eq!(found.map(|found| found.name), Some(known.name));
        }
    }

    #[test]
    fn twins_are_those_of_the_scripts_that_libraries_send() {
        for twin in all() {
            assert_eq!(Sha::of(&texts::text(twin.name)).hex(), twin.sha, "{}", twin.name);
        }
    }
}
