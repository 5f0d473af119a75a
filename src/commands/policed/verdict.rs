//! The verdict on a request: what its quotas say together, and why.
//!
//! Allowed, the quota with the smallest remaining is reported; denied, limit and remaining of the
//! first that fails in the order of the document, with the longest wait and the longest reset of
//! those that fail. A quota that is not enforced is judged and counted, and stops nothing.

use std::sync::atomic::Ordering;

use super::inquiry::{Applied, Inquiry};
use crate::commands::overload::{self, Need};
use crate::engine::{Answers, Manner, View};
use crate::limit::{Cost, Decision, combined};
use crate::policy::{Rule, Unmatched};
use crate::time::Duration;

/// What a request is answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict<'a> {
    /// `limited`, `limit`, `remaining`, `retry_after_ms`, `reset_after_ms`.
    pub(super) figures: [i64; 5],
    pub(super) reason: Reason,
    pub(super) source: Source,
    /// The rule whose quota is reported.
    pub(super) rule: Option<&'a Rule>,
    /// The quotas that would have denied, had they been enforced, by their place; the first 64.
    pub(super) shadows: u64,
    /// The place of the quota that denied.
    pub(super) denied_by: Option<u16>,
    /// How long a denial stands whatever is spent meanwhile, where that is known.
    pub(super) frozen: Option<Duration>,
}

/// Why it is answered so.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reason {
    /// Every quota allows.
    Allowed,
    /// Rules apply, and none limits.
    Unlimited,
    /// No rule applies.
    Unmatched,
    UnknownTenant,
    OverLimit,
    /// The request costs more than the quota ever has.
    CostAboveLimit,
    /// There is no room for a new bucket: in the tenant, or in memory.
    KeysMax,
    Memory,
    /// The server gives up exactness for such requests.
    Overload(overload::Reason),
}

/// Who decided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Source {
    Engine,
    Prefilter,
    Degraded,
}

impl Reason {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Unlimited => "unlimited",
            Self::Unmatched => "unmatched",
            Self::UnknownTenant => "unknown_tenant",
            Self::OverLimit => "over_limit",
            Self::CostAboveLimit => "cost_above_limit",
            Self::KeysMax => "keys_max",
            Self::Memory => "memory",
            Self::Overload(reason) => reason.name(),
        }
    }
}

impl Source {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Prefilter => "prefilter",
            Self::Degraded => "degraded",
        }
    }
}

/// A verdict, and what the denial that it rests on says by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judgement<'a> {
    pub(super) verdict: Verdict<'a>,
    pub(super) denial: Option<Denying>,
    /// The place of the quota that is reported.
    pub(super) reported: Option<usize>,
}

impl<'a> Judgement<'a> {
    fn without_quota(verdict: Verdict<'a>) -> Self {
        Self { verdict, denial: None, reported: None }
    }
}

/// The quota that failed first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Denying {
    pub(super) place: usize,
    pub(super) decision: Decision,
}

impl<'a> Verdict<'a> {
    pub(super) fn is_allowed(&self) -> bool {
        self.figures[0] == 0
    }

    /// Without a figure to tell.
    pub(super) fn plain(is_allowed: bool, reason: Reason) -> Self {
        let figures = if is_allowed { [0, -1, -1, -1, 0] } else { [1, 0, 0, -1, 0] };
        Self {
            figures,
            reason,
            source: Source::Engine,
            rule: None,
            shadows: 0,
            denied_by: None,
            frozen: None,
        }
    }

    /// Of a decision, as it stands on the wire.
    pub(super) fn of(decision: &Decision, source: Source, rule: Option<&'a Rule>) -> Self {
        let reason = match (decision.is_allowed(), decision.retry_after()) {
            (true, _) => Reason::Allowed,
            (false, Some(_)) => Reason::OverLimit,
            (false, None) => Reason::CostAboveLimit,
        };
        let figures = [
            i64::from(!decision.is_allowed()),
            decision.limit as i64,
            decision.remaining as i64,
            decision.retry_after_ms(),
            decision.reset_after_ms(),
        ];
        Self { figures, reason, source, rule, shadows: 0, denied_by: None, frozen: None }
    }
}

impl<'a> Inquiry<'a> {
    /// The answer that needs no bucket, if there is one.
    pub(super) fn settled(&self) -> Option<Verdict<'a>> {
        if !self.is_matched {
            let is_allowed = self.unmatched == Unmatched::Allow;
            let known = self.tenant.is_some();
            let reason = if known { Reason::Unmatched } else { Reason::UnknownTenant };
            return Some(Verdict::plain(is_allowed, reason));
        }
        self.asked.is_empty().then(|| Verdict::plain(true, Reason::Unlimited))
    }

    /// Judges all quotas at the view's moment, and takes what they allow together.
    pub(super) fn judge(
        &self,
        need: Need<'_>,
        view: &mut View<'_>,
        manner: Manner,
    ) -> Judgement<'a> {
        if let Some(verdict) = self.settled() {
            return Judgement::without_quota(verdict);
        }
        let judgement = match view.check_buckets(self.asked, manner, self.keys_max()) {
            Ok(answers) => self.sum_up(&answers),
            Err(full) => Judgement::without_quota(self.without_room(need, full)),
        };
        if manner != Manner::Peek {
            view.count_decision(self.keys[0], judgement.verdict.is_allowed());
        }
        judgement
    }

    /// What the quotas say together.
    pub(super) fn sum_up(&self, answers: &Answers) -> Judgement<'a> {
        let enforced = || {
            let pairs = self.asked.iter().zip(answers).enumerate();
            pairs
                .filter(|(_, (asked, _))| asked.enforced)
                .map(|(place, (_, answer))| (place, answer))
        };
        let places = self.asked.iter().zip(answers).take(64).enumerate();
        let shadows = places
            .filter(|(_, (asked, answer))| !asked.enforced && !answer.is_allowed())
            .fold(0, |places, (place, _)| places | 1 << place);
        let failing = enforced().find(|(_, answer)| !answer.is_allowed());
        let reported = failing.or_else(|| enforced().min_by_key(|(_, answer)| answer.remaining));
        let rule = reported.map(|(place, _)| self.applied[place].rule);
        let mut verdict = match combined(enforced().map(|(_, answer)| answer)) {
            Some(decision) => Verdict::of(&decision, Source::Engine, rule),
            None => Verdict::plain(true, Reason::Allowed),
        };
        verdict.shadows = shadows;
        verdict.denied_by = failing.map(|(place, _)| place as u16);
        let denial = failing.map(|(place, decision)| Denying { place, decision: *decision });
        Judgement { verdict, denial, reported: reported.map(|(place, _)| place) }
    }

    /// The places of the quotas that would have denied.
    fn shadows(&self, verdict: &Verdict<'_>) -> impl Iterator<Item = &Applied<'a>> {
        let shadows = verdict.shadows;
        let places = self.applied.iter().take(64).enumerate();
        places.filter(move |(place, _)| shadows >> place & 1 == 1).map(|(_, applied)| applied)
    }

    /// The first rule that would have denied, had it been enforced.
    pub(super) fn first_shadow(&self, verdict: &Verdict<'_>) -> Option<&'a Rule> {
        self.shadows(verdict).next().map(|applied| applied.rule)
    }

    /// Counts what rules in shadow and candidates would have denied.
    pub(super) fn count_shadows(&self, verdict: &Verdict<'_>) {
        for applied in self.shadows(verdict) {
            let counts = &applied.rule.counts;
            let count =
                if applied.is_candidate { &counts.candidate_denied } else { &counts.shadow_denied };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The name of the bucket that denied.
    pub(super) fn denied(&self, verdict: &Verdict<'_>) -> Option<&'a [u8]> {
        Some(self.asked.get(usize::from(verdict.denied_by?))?.key.bytes())
    }

    /// Whether a denial of these quotas can be repeated: it changes nothing, holds for everyone,
    /// and ends at a known moment.
    pub(super) fn is_repeatable(&self) -> bool {
        self.asked.iter().all(|asked| {
            !asked.count_denied && asked.cost != Cost::ZERO && asked.bound.quota().is_some()
        }) && self.applied.iter().all(Applied::is_for_everyone)
    }
}

impl Applied<'_> {
    fn is_for_everyone(&self) -> bool {
        self.rule.enforce_percent >= 100
    }
}
