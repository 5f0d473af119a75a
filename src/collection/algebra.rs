//! What several sets make together: their intersection, difference and union.
//!
//! Each shows members of the sets themselves, and copies none. The work is bounded by the members
//! of all sets together, also where many small sets meet a large one.

use std::hash::{Hash, Hasher};

use foldhash::fast::FixedState;
use hashbrown::HashSet;

use super::set::{Member, Set};

impl PartialEq for Member<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Member<'_> {}

impl Hash for Member<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

/// What all of the sets have.
pub(crate) fn intersection<'s>(sets: &[&'s Set]) -> impl Iterator<Item = Member<'s>> + use<'s> {
    let mut sets = sets.to_vec();
    sets.sort_by_key(|set| set.len());
    let smallest = sets.first().copied();
    smallest
        .into_iter()
        .flat_map(Set::iter)
        .filter(move |member| sets.iter().skip(1).all(|set| set.contains(member)))
}

/// What the first set has, and none of the others. The seed is for what is made on the way.
pub(crate) fn difference<'s>(first: &'s Set, others: &[&'s Set], seed: u64) -> Vec<Member<'s>> {
    let listed: usize = others.iter().map(|set| set.len()).sum();
    if first.len().saturating_mul(others.len()) <= 2 * listed.saturating_add(first.len()) {
        let in_none = |member: &Member<'_>| others.iter().all(|set| !set.contains(member));
        return first.iter().filter(in_none).collect();
    }
    let mut gone = HashSet::with_hasher(FixedState::with_seed(seed));
    gone.extend(others.iter().flat_map(|set| set.iter()));
    first.iter().filter(|member| !gone.contains(member)).collect()
}

/// What any of the sets has. The seed is for what is made on the way.
pub(crate) fn union<'s>(sets: &[&'s Set], seed: u64) -> Vec<Member<'s>> {
    if let [set] = sets {
        return set.iter().collect();
    }
    let mut seen = HashSet::with_hasher(FixedState::with_seed(seed));
    sets.iter().flat_map(|set| set.iter()).filter(|member| seen.insert(*member)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn text(member: u8) -> String {
        if member < 30 { member.to_string() } else { format!("word {member}") }
    }

    fn set(members: &BTreeSet<u8>) -> Set {
        let mut set = Set::new(7);
        // Sets of numbers alone, of words too, and some in a table.
        for member in members {
            set.add(text(*member).as_bytes());
        }
        if members.len().is_multiple_of(3) {
            set.add(&[b'l'; 70]);
            set.remove(&[b'l'; 70]);
        }
        set
    }

    fn texts<'s>(members: impl IntoIterator<Item = Member<'s>>) -> Vec<String> {
        let shown = |member: Member<'_>| String::from_utf8_lossy(&member).into_owned();
        let mut texts: Vec<String> = members.into_iter().map(shown).collect();
        texts.sort();
        texts
    }

    fn expected<'m>(members: impl IntoIterator<Item = &'m u8>) -> Vec<String> {
        let mut texts: Vec<String> = members.into_iter().map(|member| text(*member)).collect();
        texts.sort();
        texts
    }

    proptest! {
        #[test]
        fn sets_combine_as_plain_sets_do(
            models in proptest::collection::vec(
                proptest::collection::btree_set(0..40_u8, 0..30), 1..6,
            ),
        ) {
            let sets: Vec<Set> = models.iter().map(set).collect();
            let all: Vec<&Set> = sets.iter().collect();
            let in_all = models[0].iter().filter(|m| models.iter().all(|set| set.contains(m)));
            prop_assert_eq!(texts(intersection(&all)), expected(in_all));
            let others = &models[1..];
            let in_first = models[0].iter().filter(|m| !others.iter().any(|set| set.contains(m)));
            prop_assert_eq!(texts(difference(all[0], &all[1..], 3)), expected(in_first));
            let any: BTreeSet<u8> = models.iter().flatten().copied().collect();
            prop_assert_eq!(texts(union(&all, 3)), expected(&any));
        }
    }
}
