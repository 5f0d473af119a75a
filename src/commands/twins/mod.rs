//! Native twins: what well-known limiter scripts do, done without Lua.
//!
//! A script is known by the SHA-1 of its text. Its twin leaves the same keys, values and
//! deadlines and writes the same reply, byte for byte; whatever is unusual, as an argument that
//! is no plain number or a key of another kind, it declines, and the script itself runs. So
//! errors are always the script's own.
//!
//! Invariant: a twin that declines has changed nothing, and has written nothing.

#[cfg(test)]
mod equality;
mod scene;
mod spread;
#[cfg(test)]
mod texts;
mod units;
mod windows;

use std::collections::HashMap;

use super::spec::KeyList;
use crate::engine::View;
use crate::lua::Sha;
use crate::protocol::{Args, Reply};
use scene::Scene;

/// The script itself has to run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Declined;

/// Does what the script does, or nothing at all.
type Run = fn(&mut Scene<'_, '_>, &mut Reply<'_>) -> Result<(), Declined>;

/// A script that is known, and what takes its place.
#[derive(Debug)]
pub(super) struct Twin {
    /// Whose script it is, and which of them.
    #[cfg_attr(not(test), expect(dead_code, reason = "who reads the table wants to know"))]
    pub(super) name: &'static str,
    /// In hexadecimal digits.
    sha: &'static str,
    run: Run,
}

const FAMILIES: [&[Twin]; 3] = [windows::TWINS, spread::TWINS, units::TWINS];

/// The twins, by the names of their scripts.
#[derive(Debug, Default)]
pub(super) struct Twins(HashMap<Sha, &'static Twin>);

impl Twins {
    pub(super) fn all() -> Self {
        let named = |twin: &'static Twin| Some((Sha::parse(twin.sha.as_bytes())?, twin));
        Self(FAMILIES.into_iter().flatten().filter_map(named).collect())
    }

    /// The twin of the script of that name.
    pub(super) fn find(&self, sha: &Sha) -> Option<&'static Twin> {
        self.0.get(sha).copied()
    }
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
        for twin in FAMILIES.into_iter().flatten() {
            let sha = Sha::parse(twin.sha.as_bytes()).expect("forty digits");
            assert_eq!(Twins::all().find(&sha).map(|found| found.name), Some(twin.name));
        }
    }

    #[test]
    fn twins_are_those_of_the_scripts_that_libraries_send() {
        for twin in FAMILIES.into_iter().flatten() {
            assert_eq!(Sha::of(&texts::text(twin.name)).hex(), twin.sha, "{}", twin.name);
        }
    }
}
