//! Reservations and leases: what one request holds, and how that ends.
//!
//! What is held of a bucket stands in the bucket. Which buckets those are stands in a [`Ticket`],
//! a key of its own in the space of buckets, named by the id that the client was given. It goes
//! when it is settled, or by itself when its time is over, as the holds do; so there is no list
//! of all of them, and a tenant can have no more than `keys_max` lets it.
//!
//! Who has an id finds the ticket first ([`Engine::ticket`], or [`View::ticket`] where every
//! shard is held already), names its keys, and settles it in a transaction over them.

use super::buckets::Hold;
use super::key::KeyRef;
use super::shard::Kept;
use super::table::Entry;
use super::tables::BUCKETS;
use super::value::Value;
use super::view::View;
use super::{Busy, Engine, Scope};
use crate::limit::{Bound, Cost, HoldId};
use crate::size::{allocated_bytes, malloc_bytes};
use crate::time::Timestamp;

/// No tenant's name is empty, so no bucket's name begins with this and is as short.
const NAME_PREFIX: u8 = 0;

/// The key of a ticket.
pub(crate) fn ticket_name(id: HoldId) -> [u8; 9] {
    let mut name = [NAME_PREFIX; 9];
    name[1..].copy_from_slice(&id.0.to_be_bytes());
    name
}

/// What one request holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Ticket {
    id: HoldId,
    until: Timestamp,
    /// What was estimated.
    cost: Cost,
    /// The tenant's part of the buckets' names.
    tenant: Box<[u8]>,
    buckets: Box<[Box<[u8]>]>,
}

/// How a reservation or a lease has ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Settled {
    pub(crate) estimate: Cost,
    /// Buckets in which it was still held.
    pub(crate) buckets: usize,
}

impl Ticket {
    pub(super) fn new(hold: Hold, cost: Cost, tenant: &[u8], buckets: Box<[Box<[u8]>]>) -> Self {
        Self { id: hold.id, until: hold.until, cost, tenant: tenant.into(), buckets }
    }

    /// The tenant's part of the buckets' names.
    pub(crate) fn tenant(&self) -> &[u8] {
        &self.tenant
    }

    /// The names of the buckets, in the order in which they were judged.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = &[u8]> {
        self.buckets.iter().map(|name| &**name)
    }

    pub(super) fn boxed_bytes(&self) -> usize {
        let names = self.buckets.iter().map(|name| allocated_bytes(name.len())).sum::<usize>();
        let list = allocated_bytes(size_of_val(&*self.buckets));
        malloc_bytes(size_of::<Self>()) + allocated_bytes(self.tenant.len()) + list + names
    }

    /// Numbers of 64 bits, then the names, each behind its length of 32 bits; little-endian.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.id.0, self.until.as_micros(), self.cost.0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for name in std::iter::once(&self.tenant).chain(&self.buckets) {
            out.extend_from_slice(&(name.len() as u32).to_le_bytes());
            out.extend_from_slice(name);
        }
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut number = || {
            let (number, rest) = bytes.split_first_chunk()?;
            bytes = rest;
            Some(u64::from_le_bytes(*number))
        };
        let (id, until, cost) = (number()?, number()?, number()?);
        let mut name = || {
            let (len, rest) = bytes.split_first_chunk()?;
            let (name, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            bytes = rest;
            Some(name.into())
        };
        let tenant = name()?;
        let buckets = std::iter::from_fn(name).collect();
        let until = Timestamp::from_micros(until);
        bytes.is_empty().then_some(Self {
            id: HoldId(id),
            until,
            cost: Cost(cost),
            tenant,
            buckets,
        })
    }
}

impl Engine {
    /// An id that this process has not given out before. It is no secret.
    pub(crate) fn draw_hold_id(&self) -> HoldId {
        HoldId(self.dice())
    }

    /// The ticket of an id, for who holds no shard. It may be gone a moment later.
    pub(crate) fn ticket(&self, id: HoldId, now: Timestamp) -> Result<Option<Ticket>, Busy> {
        let name = ticket_name(id);
        let key = self.key(&name);
        self.try_transact(Scope::Keys(&[key]), 0, now, |view| view.ticket(id))
    }
}

impl View<'_> {
    /// The ticket of an id whose shard is held.
    pub(crate) fn ticket(&mut self, id: HoldId) -> Option<Ticket> {
        let name = ticket_name(id);
        let (key, now) = (self.key(&name), self.now);
        let shard = self.shard(key);
        let slot = shard.find(BUCKETS, key, now)?;
        match &shard.entry(BUCKETS, slot).value {
            Value::Ticket(ticket) => Some((**ticket).clone()),
            _ => None,
        }
    }

    pub(super) fn store_ticket(&mut self, ticket: Ticket) {
        let name = ticket_name(ticket.id);
        let (key, until) = (self.key(&name), ticket.until);
        self.store_admitted(key, Value::Ticket(Box::new(ticket)), until);
    }

    /// Ends what the id holds and spends the actual cost, also beyond what was held and beyond
    /// the limits; a cost of zero cancels. Nothing where the id is not known any more.
    ///
    /// `bound_of` says what a bucket is held to now; where it does not know, the bucket goes on
    /// as it has been counted. The shards of the ticket and of all its buckets are held.
    pub(crate) fn settle(
        &mut self,
        id: HoldId,
        actual: Cost,
        mut bound_of: impl FnMut(&[u8], Timestamp) -> Option<Bound>,
    ) -> Option<Settled> {
        let ticket = self.ticket(id)?;
        let name = ticket_name(id);
        let (key, now) = (self.key(&name), self.now);
        let shard = self.shard(key);
        if let Some(slot) = shard.find(BUCKETS, key, now) {
            shard.remove(BUCKETS, slot);
        }
        let mut buckets = 0;
        for name in ticket.buckets() {
            let bound = bound_of(name, now);
            let key = self.key(name);
            buckets += usize::from(self.settle_in(key, &ticket, actual, bound.as_ref()));
        }
        Some(Settled { estimate: ticket.cost, buckets })
    }

    /// Returns whether it was held.
    fn settle_in(
        &mut self,
        key: KeyRef<'_>,
        ticket: &Ticket,
        actual: Cost,
        bound: Option<&Bound>,
    ) -> bool {
        let now = self.now;
        let shard = self.shard(key);
        let Some(slot) = shard.find(BUCKETS, key, now) else {
            // Somebody has reset it.
            if let Some(bound) = bound {
                self.charge_new_bucket(key, bound, actual);
            }
            return false;
        };
        let settled = shard.edit(BUCKETS, slot, |value| {
            let ledger = value.make_ledger();
            let held = ledger.release(ticket.id, ticket.until, now).is_some();
            match bound {
                Some(bound) => ledger.spend(bound, actual, now),
                None => ledger.spend_as_counted(actual, now),
            }
            let expires = ledger.expires_at();
            value.make_plain();
            Ok::<_, std::convert::Infallible>(((held, expires <= now), Kept::Spent { expires }))
        });
        let Ok((held, is_empty)) = settled;
        if is_empty {
            shard.remove_empty(slot);
        }
        held
    }
}

impl Entry {
    /// Whether it belongs to a tenant whose names begin so.
    pub(super) fn is_of_tenant(&self, tenant: &[u8]) -> bool {
        self.tenant_name().starts_with(tenant)
    }
}
