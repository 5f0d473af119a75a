//! How hard pressed the server is for one batch, and what it concedes to a request for that.
//!
//! A [`Need`] is what a worker carries along: the strain of its batch and where it counts. What
//! is conceded is found before any lock; the dice are thrown when the request is answered, once
//! for each.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use super::lane::{Instead, Lane, Reason};
use super::{Level, Overload};
use crate::load::{Cohort, Priority, Standing, Tier};
use crate::time::Timestamp;

/// The bit beside [`Standing::word`]: some tenant's own signals press on it.
const TENANTS_PRESSED: u64 = 1 << 63;

/// What was published last, read once a batch.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::commands) struct Strain(u64);

impl Strain {
    pub(super) const fn new(standing: Standing, has_pressed_tenants: bool) -> Self {
        let tenants = if has_pressed_tenants { TENANTS_PRESSED } else { 0 };
        Self(standing.word() & !TENANTS_PRESSED | tenants)
    }

    pub(super) const fn of_word(word: u64) -> Self {
        Self(word)
    }

    pub(super) const fn word(self) -> u64 {
        self.0
    }

    /// Nothing is to be given up by anyone.
    #[inline]
    pub(in crate::commands) const fn is_calm(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn has_pressed_tenants(self) -> bool {
        self.0 & TENANTS_PRESSED != 0
    }

    pub(in crate::commands) const fn standing(self) -> Standing {
        Standing::of_word(self.0 & !TENANTS_PRESSED)
    }

    pub(in crate::commands) const fn level(self) -> Level {
        self.standing().level
    }
}

/// What a worker goes by for a batch.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Need<'a> {
    pub(in crate::commands) strain: Strain,
    pub(in crate::commands) overload: &'a Overload,
    pub(in crate::commands) lane: &'a Lane,
    /// Of the connection whose requests are answered.
    pub(in crate::commands) connection_tier: Option<Tier>,
}

/// Who asks, as far as it says how important a request is. What says more comes first.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::commands) struct Asker<'a> {
    /// Of the most important rule that applies.
    pub(in crate::commands) rule: Option<Tier>,
    /// Its own word.
    pub(in crate::commands) request: Option<Tier>,
    pub(in crate::commands) tenant: Option<Tier>,
    /// Who is refused together: a caller, a key, a tenant.
    pub(in crate::commands) user: &'a [u8],
}

/// What holds for a request under strain.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::commands) struct Concession {
    pub(in crate::commands) priority: Priority,
    /// Why no exact answer is owed to it, if none is.
    pub(in crate::commands) given_up: Option<Reason>,
    /// New keys of it are counted in less memory.
    pub(in crate::commands) is_in_need: bool,
}

impl Need<'_> {
    /// What holds for a request of a tenant, or of none. Not asked while all is calm.
    #[cold]
    pub(in crate::commands) fn concede(
        &self,
        asker: &Asker<'_>,
        tenant: Option<&[u8]>,
        now: Timestamp,
    ) -> Concession {
        let tier = self.tier(asker);
        let level = self.strain.level();
        let own = match tenant.filter(|_| self.strain.has_pressed_tenants()) {
            Some(tenant) => self.overload.level_of(tenant),
            None => Level::Normal,
        };
        let given_up = if level.makes_up_answers(tier) {
            Some(Reason::Emergency)
        } else {
            own.makes_up_answers(tier).then_some(Reason::TenantSignal)
        };
        let user = FixedState::with_seed(0).hash_one(asker.user);
        let priority = Priority::new(tier, Cohort::of_user(user, now));
        Concession { priority, given_up, is_in_need: level.max(own).approximates(tier) }
    }

    /// Throws the dice for a request that may be refused: whether it is. Counts it as offered.
    pub(in crate::commands) fn sheds(&self, priority: Priority) -> bool {
        let standing = self.strain.standing();
        if !standing.level.sheds() {
            return false;
        }
        self.overload.offered.note(priority);
        self.lane.offered();
        let is_refused = standing.cut.refuses(priority, self.lane.throw());
        if !is_refused {
            self.lane.admitted();
        }
        is_refused
    }

    /// How important a request is.
    pub(in crate::commands) fn tier(&self, asker: &Asker<'_>) -> Tier {
        let said = asker.rule.or(asker.request).or(asker.tenant).or(self.connection_tier);
        said.unwrap_or(self.overload.default_tier)
    }

    /// Throws the dice: true for this share of the throws.
    pub(in crate::commands) fn draws(&self, share: f64) -> bool {
        f64::from(self.lane.throw()) < share * 2_f64.powi(32)
    }

    pub(in crate::commands) fn count(&self, reason: Reason, instead: Instead) {
        self.lane.gave_up(reason, instead);
    }

    /// When somebody who is refused should come back, in milliseconds.
    pub(in crate::commands) fn retry_after_ms(&self) -> u64 {
        self.overload.retry_after_ms(self.lane)
    }
}

#[cfg(test)]
mod tests {
    use super::super::LoadOptions;
    use super::*;
    use crate::load::Cut;

    fn concession(strain: Strain, asker: &Asker<'_>) -> Concession {
        let overload = Overload::new(&LoadOptions::off(), Timestamp::EPOCH);
        let lane = Lane::new(1);
        let connection_tier = Some(Tier::T4);
        let need = Need { strain, overload: &overload, lane: &lane, connection_tier };
        need.concede(asker, None, Timestamp::EPOCH)
    }

    fn at(level: Level) -> Strain {
        Strain::new(Standing { level, cut: Cut::NONE }, false)
    }

    #[test]
    fn what_says_most_about_a_request_says_its_tier() {
        let all = Asker {
            rule: Some(Tier::T0),
            request: Some(Tier::T1),
            tenant: Some(Tier::T3),
            user: b"u",
        };
        let rows = [
            (all, Tier::T0),
            (Asker { rule: None, ..all }, Tier::T1),
            (Asker { rule: None, request: None, ..all }, Tier::T3),
            (Asker { rule: None, request: None, tenant: None, ..all }, Tier::T4),
        ];
        for (asker, tier) in rows {
            assert_eq!(concession(at(Level::Conserve), &asker).priority.tier(), tier);
        }
    }

    #[test]
    fn each_level_gives_up_what_is_its() {
        for tier in Tier::ALL {
            let asker = Asker { rule: Some(tier), ..Asker::default() };
            let is_low = tier >= Tier::T2;
            let at = |level| concession(at(level), &asker);
            assert!(!at(Level::Conserve).is_in_need);
            assert_eq!(at(Level::Approximate).is_in_need, is_low);
            assert_eq!(at(Level::Approximate).given_up, None);
            let reason = is_low.then_some(Reason::Emergency);
            assert_eq!(at(Level::Emergency).given_up, reason);
        }
    }

    #[test]
    fn strain_of_tenants_leaves_the_standing_as_it_is() {
        let cut = Cut::new(Priority::new(Tier::T5, Cohort::of(3)), 0.5);
        let standing = Standing { level: Level::Approximate, cut };
        let strain = Strain::of_word(Strain::new(standing, true).word());
        assert!(strain.has_pressed_tenants());
        assert_eq!(strain.standing(), standing);
        assert!(!Strain::new(Standing::CALM, true).is_calm());
    }
}
