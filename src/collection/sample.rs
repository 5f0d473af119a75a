//! Choosing elements by dice, each as likely as another.
//!
//! Dice are an argument: a function that returns a number nobody can foresee. The remainder of
//! 64 bits is as good as even for any number of elements that fits into memory.

use foldhash::fast::FixedState;
use hashbrown::HashSet;

/// A place below `len`, which is not zero.
pub(crate) fn one_place(len: usize, dice: &mut impl FnMut() -> u64) -> usize {
    (dice() % len as u64) as usize
}

/// Some element, where there is one.
pub(crate) fn one<I: ExactSizeIterator>(
    mut elements: I,
    dice: &mut impl FnMut() -> u64,
) -> Option<I::Item> {
    let len = elements.len();
    if len == 0 { None } else { elements.nth(one_place(len, dice)) }
}

/// `count` different places below `len`, ascending; all of them where there are no more. Each
/// choice of so many places is as likely as another (Floyd's method).
pub(crate) fn places(len: usize, count: usize, dice: &mut impl FnMut() -> u64) -> Vec<usize> {
    if count >= len {
        return (0..len).collect();
    }
    let mut chosen = HashSet::with_capacity_and_hasher(count, FixedState::default());
    for last in len - count..len {
        if !chosen.insert(one_place(last + 1, dice)) {
            chosen.insert(last);
        }
    }
    let mut places: Vec<usize> = chosen.into_iter().collect();
    places.sort_unstable();
    places
}

/// The elements in these places, which ascend.
pub(crate) fn at_places<I: Iterator>(
    mut elements: I,
    places: &[usize],
) -> impl Iterator<Item = I::Item> {
    let mut next = 0;
    places.iter().map_while(move |place| {
        let element = elements.nth(place - next);
        next = place + 1;
        element
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any sequence that is not too regular: xorshift.
    fn dice(mut state: u64) -> impl FnMut() -> u64 {
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        }
    }

    #[test]
    fn every_choice_of_places_is_as_likely_as_another() {
        const ROUNDS: u32 = 60_000;
        let mut dice = dice(0x9E37_79B9_7F4A_7C15);
        let mut times = std::collections::BTreeMap::new();
        for _ in 0..ROUNDS {
            *times.entry(places(6, 3, &mut dice)).or_insert(0_u32) += 1;
        }
        // Twenty choices; a twentieth of the rounds is 3,000, five deviations are 270.
        assert_eq!(times.len(), 20);
        for (places, times) in times {
            assert!(times.abs_diff(ROUNDS / 20) < 270, "{places:?}: {times}");
        }
    }

    #[test]
    fn places_are_all_where_more_are_wanted() {
        assert_eq!(places(3, 3, &mut dice(7)), [0, 1, 2]);
        assert_eq!(places(3, usize::MAX, &mut dice(7)), [0, 1, 2]);
        assert_eq!(places(3, 0, &mut dice(7)), [0_usize; 0]);
    }

    #[test]
    fn elements_in_places_come_in_their_order() {
        let elements: Vec<usize> = at_places(10..20, &[0, 1, 5, 9]).collect();
        assert_eq!(elements, [10, 11, 15, 19]);
        assert_eq!(at_places(10..20, &[]).count(), 0);
    }
}
