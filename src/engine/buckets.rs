//! The buckets of policies: several quotas judged at one moment, spent together or not at all.
//!
//! A bucket is named by its tenant, rule, quota and the values that it is for, and stands in a
//! space of its own, which no request can name. Its value is a plain limiter's state, inline in
//! its slot, unless it is held or in credit. A request finds each of its buckets once: all are
//! judged as they stand, and only if every enforced one allows is any changed. Those that are not
//! enforced are then spent each for itself, where it allows.
//!
//! Invariants: a denied request changes nothing, but for quotas that count denied ones; no tenant
//! has more keys than it may; what is refused for want of room has changed nothing.

use smallvec::SmallVec;

use super::Engine;
use super::key::KeyRef;
use super::shard::{Expires, Kept, Storing};
use super::table::{Entry, Slot};
use super::tables::BUCKETS;
use super::tenants::{Full, Usage, tenant_of};
use super::tickets::Ticket;
use super::value::Value;
use super::view::View;
use crate::limit::{
    Bound, Cost, Decision, HoldId, Ledger, Level, Quota, Remembered, State, Taking, charge, check,
    judge, level, refund,
};
use crate::time::Timestamp;

/// One quota that a request must pass. No two of a request are of the same bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) key: KeyRef<'a>,
    pub(crate) bound: Bound,
    pub(crate) cost: Cost,
    /// Else it decides and counts as if it were alone, and stops nothing.
    pub(crate) enforced: bool,
    /// Also what is denied, by whichever quota, counts here.
    pub(crate) count_denied: bool,
}

/// What becomes of the cost of an allowed request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Manner {
    Peek,
    /// A bound on concurrency is only judged: nothing holds a place of it.
    Spend,
    /// All is held until it is settled.
    Reserve(Hold),
    /// Places of bounds on concurrency are held, all else is spent.
    Lease(Hold),
}

/// The id under which something is held, and its end, after now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Hold {
    pub(crate) id: HoldId,
    pub(crate) until: Timestamp,
}

/// What each quota says, in the order in which they were asked, as if it were alone.
pub(crate) type Answers = SmallVec<[Decision; 4]>;

/// Where a bucket stands: the guard of its shard, and its slot if it is there.
type Place = (usize, Option<Slot>);

/// What is done to a bucket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Take {
    Nothing,
    Spend(Cost),
    Hold(Cost, Hold),
}

impl Manner {
    fn taking(self, bound: &Bound) -> Taking {
        match (self, bound) {
            (Self::Reserve(hold), _) | (Self::Lease(hold), Bound::Concurrency(_)) => {
                Taking::Hold { until: hold.until }
            }
            (Self::Peek | Self::Spend, _)
            | (Self::Lease(_), Bound::Window(_) | Bound::Credit(_)) => Taking::Spend,
        }
    }

    fn hold(self) -> Option<Hold> {
        match self {
            Self::Reserve(hold) | Self::Lease(hold) => Some(hold),
            Self::Peek | Self::Spend => None,
        }
    }
}

impl Asked<'_> {
    /// What an allowed request does here.
    fn take(&self, manner: Manner) -> Take {
        match (manner, &self.bound) {
            _ if self.cost == Cost::ZERO => Take::Nothing,
            (Manner::Reserve(hold), _) | (Manner::Lease(hold), Bound::Concurrency(_)) => {
                Take::Hold(self.cost, hold)
            }
            (Manner::Peek, _) | (Manner::Spend, Bound::Concurrency(_)) => Take::Nothing,
            (Manner::Spend | Manner::Lease(_), Bound::Window(_) | Bound::Credit(_)) => {
                Take::Spend(self.cost)
            }
        }
    }
}

/// Decides by a quota alone, and spends if it may; what that did to the state.
#[inline]
pub(crate) fn spend(
    quota: &Quota,
    state: &mut State,
    cost: Cost,
    now: Timestamp,
) -> (Decision, Kept) {
    let counted = state.is_counted_by(quota);
    let decision = check(quota, state, cost, now);
    let kept = if !counted && state.is_counted_by(quota) {
        Kept::Changed { expires: Expires::At(state.expires_at()) }
    } else if decision.is_allowed() {
        Kept::Spent { expires: state.expires_at() }
    } else {
        Kept::Unchanged
    };
    (decision, kept)
}

impl View<'_> {
    /// Decides whether a request may pass all of these quotas at this moment, and takes what it
    /// costs from all of them if it may.
    ///
    /// A quota that is not enforced is taken from when it and all enforced ones allow. Fails
    /// where a new bucket has no place, having changed nothing. A hold's shard is held as well:
    /// that of [`ticket_name`](super::ticket_name).
    pub(crate) fn check_buckets(
        &mut self,
        asked: &[Asked<'_>],
        manner: Manner,
        keys_max: Option<u64>,
    ) -> Result<Answers, Full> {
        if let ([only], Manner::Spend) = (asked, manner)
            && let Some(decision) = self.check_alone(only, keys_max)?
        {
            return Ok(Answers::from_elem(decision, 1));
        }
        let (mut answers, mut places) = (Answers::new(), SmallVec::<[Place; 4]>::new());
        for asked in asked {
            let place = self.find_bucket(asked.key);
            answers.push(self.judge_bucket(asked, place, manner));
            places.push(place);
        }
        let passes = asked
            .iter()
            .zip(&answers)
            .all(|(asked, answer)| !asked.enforced || answer.is_allowed());
        let takes: SmallVec<[Take; 4]> = asked
            .iter()
            .zip(&answers)
            .zip(&places)
            .map(|((asked, answer), place)| match (passes, manner) {
                (true, _) if answer.is_allowed() => asked.take(manner),
                (_, Manner::Peek) => Take::Nothing,
                _ if asked.count_denied => self.penalty(asked, *place),
                _ => Take::Nothing,
            })
            .collect();
        let ticket = manner.hold().filter(|_| passes && !asked.is_empty());
        let new = takes
            .iter()
            .zip(&places)
            .filter(|(take, (_, slot))| slot.is_none() && **take != Take::Nothing);
        let new = new.count() as u64 + u64::from(ticket.is_some());
        let admitted = if new == 0 { Ok(()) } else { self.admit(asked, new, keys_max) };
        if passes {
            admitted?;
        }
        for ((asked, take), (place, slot)) in asked.iter().zip(takes).zip(places) {
            match slot {
                Some(slot) => self.take_from(asked, take, (place, slot)),
                // What is only counted because it was denied needs no place.
                None if admitted.is_ok() => self.take_from_new(asked, take),
                None => {}
            }
        }
        if let Some(hold) = ticket {
            self.give_ticket(asked, &answers, (manner, hold));
        }
        if !passes && manner != Manner::Peek {
            self.judge_counted(asked, &mut answers, manner);
        }
        Ok(answers)
    }

    /// Where the denied request has been counted, it puts off its own next chance.
    fn judge_counted(&mut self, asked: &[Asked<'_>], answers: &mut Answers, manner: Manner) {
        for (asked, answer) in asked.iter().zip(answers) {
            if asked.count_denied && !answer.is_allowed() {
                let place = self.find_bucket(asked.key);
                *answer = self.judge_bucket(asked, place, manner);
            }
        }
    }

    /// One quota, spent from a plain state or a new one: decided and spent in one step. Nothing
    /// where it is anything else.
    #[inline]
    fn check_alone(
        &mut self,
        asked: &Asked<'_>,
        keys_max: Option<u64>,
    ) -> Result<Option<Decision>, Full> {
        let Bound::Window(quota) = &asked.bound else { return Ok(None) };
        if asked.count_denied || asked.cost == Cost::ZERO {
            return Ok(None);
        }
        let now = self.now;
        let shard = self.shard(asked.key);
        if let Some(slot) = shard.find(BUCKETS, asked.key, now) {
            return shard.edit(BUCKETS, slot, |value| {
                let Value::Limit(state) = value else { return Ok((None, Kept::Unchanged)) };
                let (decision, kept) = spend(quota, state, asked.cost, now);
                Ok((Some(decision), kept))
            });
        }
        let mut state = State::new(quota, now);
        let decision = check(quota, &mut state, asked.cost, now);
        if decision.is_allowed() {
            self.admit(std::slice::from_ref(asked), 1, keys_max)?;
            let expires = state.expires_at();
            self.store_admitted(asked.key, Value::Limit(state), expires);
        }
        Ok(Some(decision))
    }

    /// As [`Engine::limiter_generation`], and it stands until this transaction changes it.
    pub(crate) fn limiter_generation(&self, key: KeyRef<'_>) -> u64 {
        self.guards[self.place(key)].1.limiter_generation()
    }

    /// What is used and held of a bucket.
    pub(crate) fn bucket_level(&mut self, key: KeyRef<'_>, bound: &Bound) -> Level {
        let place = self.find_bucket(key);
        level(bound, self.remembered(place), self.now)
    }

    /// Whether what stands in a bucket is counted just as the bound counts; also where nothing
    /// does.
    pub(crate) fn is_counted_by(&mut self, key: KeyRef<'_>, bound: &Bound) -> bool {
        let place = self.find_bucket(key);
        match (self.remembered(place), bound.quota()) {
            (Remembered::State(state), Some(quota)) => state.is_counted_by(quota),
            (Remembered::Ledger(ledger), _) => ledger.is_counted_by(bound),
            (Remembered::Nothing, _) | (Remembered::State(_), None) => true,
        }
    }

    /// Gives back up to `cost` of what is spent of a bucket; how much that was.
    pub(crate) fn refund_bucket(&mut self, key: KeyRef<'_>, bound: &Bound, cost: Cost) -> u64 {
        let now = self.now;
        let (place, Some(slot)) = self.find_bucket(key) else { return 0 };
        let refunded = self.guards[place].1.edit(BUCKETS, slot, |value| {
            let (given, expires) = match value {
                Value::Limit(state) => (refund(state, cost, now), state.expires_at()),
                value => {
                    let ledger = value.make_ledger();
                    (ledger.refund(Some(bound), cost, now), ledger.expires_at())
                }
            };
            let expires = Expires::At(expires);
            let kept = if given == 0 { Kept::Unchanged } else { Kept::Changed { expires } };
            Ok::<_, std::convert::Infallible>((given, kept))
        });
        let Ok(given) = refunded;
        given
    }

    /// Forgets a bucket, all that is held of it included. Returns whether it was there.
    pub(crate) fn forget_bucket(&mut self, key: KeyRef<'_>) -> bool {
        let (place, slot) = self.find_bucket(key);
        if let Some(slot) = slot {
            self.guards[place].1.remove(BUCKETS, slot);
        }
        slot.is_some()
    }

    /// Forgets every bucket, reservation and lease of a tenant in the shards that are held, by the
    /// tenant's part of their names. Returns how many there were, none whose time was over.
    pub(crate) fn forget_tenant(&mut self, tenant: &[u8]) -> usize {
        let (mut forgotten, now) = (0, self.now);
        for (_, shard) in &mut self.guards {
            let Some(table) = shard.table(BUCKETS) else { continue };
            let mut slots: Vec<Slot> = Vec::new();
            table.walk(0, &mut { usize::MAX }, |slot, entry| {
                if entry.is_of_tenant(tenant) {
                    forgotten += usize::from(!entry.is_expired(now));
                    slots.push(slot);
                }
                std::ops::ControlFlow::Continue(())
            });
            for slot in slots {
                shard.remove(BUCKETS, slot);
            }
        }
        forgotten
    }

    fn find_bucket(&mut self, key: KeyRef<'_>) -> Place {
        let (place, now) = (self.place(key), self.now);
        (place, self.guards[place].1.find(BUCKETS, key, now))
    }

    fn remembered(&self, (place, slot): Place) -> Remembered<'_> {
        let entry = slot.and_then(|slot| self.guards[place].1.table(BUCKETS)?.entry(slot));
        match entry.map(|entry| &entry.value) {
            Some(Value::Limit(state)) => Remembered::State(state),
            Some(Value::Ledger(ledger)) => Remembered::Ledger(ledger),
            Some(_) | None => Remembered::Nothing,
        }
    }

    fn judge_bucket(&self, asked: &Asked<'_>, place: Place, manner: Manner) -> Decision {
        let taking = manner.taking(&asked.bound);
        judge(&asked.bound, self.remembered(place), asked.cost, taking, self.now)
    }

    #[cold]
    fn penalty(&self, asked: &Asked<'_>, place: Place) -> Take {
        match asked.bound.penalty(self.remembered(place), asked.cost, self.now) {
            Cost::ZERO => Take::Nothing,
            cost => Take::Spend(cost),
        }
    }

    #[cold]
    fn admit(&mut self, asked: &[Asked<'_>], new: u64, keys_max: Option<u64>) -> Result<(), Full> {
        self.engine.room_for_a_key()?;
        let tenant = asked.first().map_or(&[][..], |asked| tenant_of(asked.key.bytes()));
        self.admit_keys(tenant, new, keys_max)
    }

    fn take_from(&mut self, asked: &Asked<'_>, take: Take, (place, slot): (usize, Slot)) {
        if take == Take::Nothing {
            return;
        }
        let now = self.now;
        let edit = |value: &mut Value| Ok(((), value.take(&asked.bound, take, now)));
        let Ok::<_, std::convert::Infallible>(()) = self.guards[place].1.edit(BUCKETS, slot, edit);
    }

    /// The bucket has been admitted.
    fn take_from_new(&mut self, asked: &Asked<'_>, take: Take) {
        let (bound, now) = (&asked.bound, self.now);
        let mut value = match (take, bound.quota()) {
            (Take::Nothing, _) => return,
            (Take::Spend(_), Some(quota)) => Value::Limit(State::new(quota, now)),
            (Take::Spend(_) | Take::Hold(..), _) => Value::Ledger(Box::new(Ledger::new(None))),
        };
        let (Kept::Spent { expires } | Kept::Changed { expires: Expires::At(expires) }) =
            value.take(bound, take, now)
        else {
            return;
        };
        self.store_admitted(asked.key, value, expires);
    }

    /// Charges a bucket that is not there, where there is room for it.
    pub(super) fn charge_new_bucket(&mut self, key: KeyRef<'_>, bound: &Bound, cost: Cost) {
        let asked = Asked { key, bound: *bound, cost, enforced: true, count_denied: false };
        let take = asked.take(Manner::Spend);
        if take != Take::Nothing && self.admit(&[asked], 1, None).is_ok() {
            self.take_from_new(&asked, take);
        }
    }

    pub(super) fn store_admitted(&mut self, key: KeyRef<'_>, value: Value, expires: Timestamp) {
        let entry = Entry::new(key, value, expires, self.now);
        self.shard(key).store_as(BUCKETS, key, entry, Storing::Admitted);
    }

    #[cold]
    fn give_ticket(&mut self, asked: &[Asked<'_>], answers: &Answers, how: (Manner, Hold)) {
        let (manner, hold) = how;
        let held = asked.iter().zip(answers).filter(|(asked, answer)| {
            let holds = matches!(manner.taking(&asked.bound), Taking::Hold { .. });
            holds && answer.is_allowed()
        });
        let buckets = held.map(|(asked, _)| asked.key.bytes().into()).collect();
        let tenant = asked.first().map_or(&[][..], |asked| tenant_of(asked.key.bytes()));
        let cost = asked.iter().map(|asked| asked.cost).max().unwrap_or_default();
        self.store_ticket(Ticket::new(hold, cost, tenant, buckets));
    }
}

impl Value {
    /// Takes from a bucket without asking.
    fn take(&mut self, bound: &Bound, take: Take, now: Timestamp) -> Kept {
        if let (Value::Limit(state), Take::Spend(cost)) = (&mut *self, take)
            && let Some(quota) = bound.counts_alone(Some(state), cost, now)
        {
            let counted = state.is_counted_by(quota);
            charge(quota, state, cost, now);
            return kept(counted, state.expires_at());
        }
        let ledger = self.make_ledger();
        let counted = ledger.is_counted_by(bound);
        match take {
            Take::Nothing => {}
            Take::Spend(cost) => ledger.spend(bound, cost, now),
            Take::Hold(cost, hold) => ledger.hold(bound, (hold.id, cost), hold.until, now),
        }
        let kept = kept(counted || !ledger.is_counted_by(bound), ledger.expires_at());
        self.make_plain();
        kept
    }

    /// The bucket as a ledger; a state becomes one.
    pub(super) fn make_ledger(&mut self) -> &mut Ledger {
        if !matches!(self, Self::Ledger(_)) {
            let spent = match std::mem::replace(self, Self::Integer(0)) {
                Self::Limit(state) => Some(state),
                _ => None,
            };
            *self = Self::Ledger(Box::new(Ledger::new(spent)));
        }
        match self {
            Self::Ledger(ledger) => ledger,
            _ => unreachable!("it has just been made one"),
        }
    }

    /// The bucket as a state again, if that is all it needs.
    pub(super) fn make_plain(&mut self) {
        if let Self::Ledger(ledger) = self
            && let Some(state) = ledger.take_plain()
        {
            *self = Self::Limit(state);
        }
    }
}

fn kept(counted: bool, expires: Timestamp) -> Kept {
    if counted { Kept::Spent { expires } } else { Kept::Changed { expires: Expires::At(expires) } }
}

impl Engine {
    /// Moves when a limiter in the key's shard is removed, replaced, or changed other than by a
    /// spend. What is read here was so before the call; what a transaction reads of a shard that
    /// it holds ([`View::limiter_generation`]) stays so until it ends.
    pub(crate) fn limiter_generation(&self, key: KeyRef<'_>) -> u64 {
        self.generations[self.shard_of(key)].read()
    }

    /// What a tenant takes, by its part of its buckets' names.
    pub(crate) fn tenant_usage(&self, tenant: &[u8]) -> Usage {
        self.tenants.usage(tenant)
    }
}
