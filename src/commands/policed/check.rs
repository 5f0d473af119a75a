//! RL.CHECK, and the way that all decisions by policy take: from memory where they can be
//! repeated, else on the locked buckets; counted, and written.

use std::sync::atomic::Ordering;

use super::answer::write;
use super::asking::Takes;
use super::inquiry::{Court, Inquiry};
use super::verdict::{Denying, Source, Verdict};
use crate::commands::{
    decision_log::Decided,
    overload::{Concession, Need},
    request::{Ground, Request},
    service::Service,
};
use crate::engine::{Asked, KeyRef, Manner, Scope, View};
use crate::limit::Cost;
use crate::policy::{Counted, Tenant};
use crate::prefilter::{Accept, Denial, Fingerprint, Lane, Question};
use crate::protocol::{Args, Error, Reply};
use crate::time::Timestamp;

const CHECK: Takes = Takes {
    name: "RL.CHECK",
    usage: "CALLER c, ATTR name value, COST n, TIER t, PEEK or DETAIL",
    options: &[b"PEEK", b"DETAIL", b"COST"],
};

/// The share of the decisions that would be told otherwise, of those under strain.
const TOLD_UNDER_STRAIN: f64 = 0.01;

/// An RL.CHECK that has been read, with its answer where that needs no lock.
pub(in crate::commands) struct Checked<'a> {
    pub(in crate::commands) words: Args<'a>,
    inquiry: Inquiry<'a>,
    early: Option<Verdict<'a>>,
    /// What holds for it under strain.
    concession: Option<Concession>,
}

/// What decisions are told to, besides the client.
#[derive(Clone, Copy)]
pub(in crate::commands) struct Witness<'a> {
    pub(in crate::commands) service: &'a Service,
    pub(in crate::commands) lane: &'a Lane,
    pub(in crate::commands) need: Need<'a>,
}

/// Reads the words of an RL.CHECK, its name included.
pub(in crate::commands) fn check_words<'a>(
    court: Court<'a>,
    witness: Witness<'_>,
    words: Args<'a>,
) -> Result<Checked<'a>, Error> {
    let mut inquiry = Inquiry::read(court, words.skip(1), &CHECK)?;
    let settled = inquiry.settled();
    let concession = match settled {
        None => inquiry.concession(witness.need, court.now),
        Some(_) => None,
    };
    if concession.is_some_and(|concession| concession.is_in_need) {
        inquiry = inquiry.in_need(court.arena);
    }
    let is_given_up = concession.is_some_and(|concession| concession.given_up.is_some());
    let repeated = || if is_given_up { None } else { inquiry.repeated(witness, court.now) };
    let early = settled.or_else(repeated);
    Ok(Checked { words, inquiry, early, concession })
}

impl<'a> Checked<'a> {
    /// The buckets that must be locked for the answer.
    pub(in crate::commands) fn keys(&self) -> &'a [KeyRef<'a>] {
        let is_given_up = self.concession.is_some_and(|given| given.given_up.is_some());
        if self.early.is_some() || is_given_up { &[] } else { self.inquiry.keys() }
    }

    pub(in crate::commands) fn run(
        &self,
        witness: Witness<'_>,
        view: &mut View<'_>,
        reply: &mut Reply<'_>,
    ) {
        let made_up = || self.inquiry.made_up(self.concession?, witness.need);
        let early = self.early.or_else(made_up);
        let verdict = early.unwrap_or_else(|| self.inquiry.decide(witness, view));
        if verdict.source == Source::Prefilter {
            witness.lane.repeated();
        }
        witness.tell(&self.inquiry, &verdict, view.now());
        write(&self.inquiry, &verdict, reply);
    }
}

pub(super) fn check(
    request: &Request<'_>,
    mut ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let held = request.hold_court();
    let witness = request.witness();
    let checked = check_words(request.court(&held), witness, request.args)?;
    let scope = Scope::Keys(checked.keys());
    ground.transact_over(scope, request, |view| checked.run(witness, view, reply))
}

/// Above every revision there will ever be.
const LEVEL_SHIFT: u32 = 62;

impl<'a> Inquiry<'a> {
    /// Decides on the locked buckets, and remembers a denial that can be repeated.
    fn decide(&self, witness: Witness<'_>, view: &mut View<'_>) -> Verdict<'a> {
        let manner = if self.peek { Manner::Peek } else { Manner::Spend };
        let judgement = self.judge(witness.need, view, manner);
        let mut verdict = judgement.verdict;
        let Some(denying) = judgement.denial.filter(|_| self.is_repeatable()) else {
            return verdict;
        };
        let denial = self.denial(view, denying);
        if self.detail {
            verdict.frozen = denial.frozen_for();
        } else if !self.peek {
            let question = self.question(witness.need, &self.asked[denying.place]);
            let prefilter = witness.service.prefilter();
            prefilter.remember(witness.lane, &question, &denial, view.now());
        }
        verdict
    }

    /// The denial that is remembered of one of the quotas, if there is any.
    fn repeated(&self, witness: Witness<'_>, now: Timestamp) -> Option<Verdict<'a>> {
        if self.peek || self.detail || !self.is_repeatable() {
            return None;
        }
        let engine = witness.service.engine();
        let enforced = self.asked.iter().zip(self.applied).enumerate();
        enforced.filter(|(_, (asked, _))| asked.enforced).find_map(|(place, (asked, applied))| {
            let question = self.question(witness.need, asked);
            let generation = |_| engine.limiter_generation(asked.key);
            let prefilter = witness.service.prefilter();
            let repeated = prefilter.ask(witness.lane, &question, now, generation)?;
            let rule = Some(applied.rule);
            let verdict = Verdict::of(&repeated.decision, Source::Prefilter, rule);
            Some(Verdict { denied_by: Some(place as u16), ..verdict })
        })
    }

    fn question(&self, need: Need<'_>, asked: &Asked<'a>) -> Question<'a> {
        // The tenant's revision moves with every change of its quotas.
        let quota = Fingerprint::of(&asked.bound.capacity());
        let mut revision = self.tenant.map_or(0, |tenant| tenant.revision);
        let mut accept = Accept::Exact;
        if !need.strain.is_calm() {
            // What was remembered at one level is not answered at another.
            let level = need.strain.level();
            revision |= u64::from(level.number()) << LEVEL_SHIFT;
            accept = if level.samples() { Accept::Verdict } else { Accept::Exact };
        }
        Question { bucket: asked.key, quota, revision, cost: asked.cost, accept }
    }

    /// What the engine knows of a denial that it has just made.
    #[cold]
    fn denial(&self, view: &mut View<'_>, denying: Denying) -> Denial {
        let asked = &self.asked[denying.place];
        let level = view.bucket_level(asked.key, &asked.bound);
        let opens_after = if !view.is_counted_by(asked.key, &asked.bound) {
            None
        } else if asked.cost == Cost::ONE {
            denying.decision.retry_after()
        } else {
            let one = Asked { cost: Cost::ONE, ..*asked };
            let answers = view.check_buckets(&[one], Manner::Peek, None);
            answers.ok().and_then(|answers| answers.first()?.retry_after())
        };
        Denial {
            decision: denying.decision,
            opens_after,
            held: level.held,
            place: denying.place as u16,
            shard: 0,
            generation: view.limiter_generation(asked.key),
        }
    }
}

impl Witness<'_> {
    fn log(self, tenant: &Tenant, inquiry: &Inquiry<'_>, verdict: &Verdict<'_>, now: Timestamp) {
        let log = self.service.decision_log();
        if !log.is_on() || self.is_passed_over() {
            return;
        }
        let bucket = inquiry.denied(verdict).or(inquiry.keys().first().map(KeyRef::bytes));
        log.note(
            &Decided {
                tenant: tenant.name.as_bytes(),
                rule: verdict.rule.map_or(&[], |rule| rule.name.as_bytes()),
                key: bucket.unwrap_or_default(),
                allowed: verdict.is_allowed(),
                reason: verdict.reason.name(),
                limit: verdict.figures[1],
                remaining: verdict.figures[2],
            },
            now,
        );
    }

    /// Under strain, one decision in a hundred is told.
    fn is_passed_over(self) -> bool {
        self.need.strain.level().samples() && !self.need.draws(TOLD_UNDER_STRAIN)
    }

    /// Counts a verdict where it belongs.
    pub(super) fn tell(self, inquiry: &Inquiry<'_>, verdict: &Verdict<'_>, now: Timestamp) {
        if inquiry.peek {
            return;
        }
        let Some(tenant) = inquiry.tenant else {
            self.service.count_unknown_tenant();
            return;
        };
        tenant.counts.count(match (verdict.source, inquiry.is_matched, verdict.is_allowed()) {
            (Source::Degraded, ..) => Counted::Degraded,
            (_, false, _) => Counted::Unmatched,
            (.., true) => Counted::Allowed,
            (.., false) => Counted::Denied,
        });
        if verdict.is_allowed() {
            inquiry.count_shadows(verdict);
        } else if let Some(rule) = verdict.rule {
            rule.counts.denied.fetch_add(1, Ordering::Relaxed);
        }
        self.log(tenant, inquiry, verdict, now);
        // Under strain nobody is ranked.
        if tenant.counts.is_limited() && !self.need.strain.level().samples() {
            self.service.tops().note(tenant, inquiry, verdict, now);
        }
    }
}
