//! A set: members, each once, in no promised order.

use foldhash::fast::FixedState;
use hashbrown::HashSet;

use super::coded::{DecodeError, Pieces, put_bytes, put_len};

type Member = Box<[u8]>;

#[derive(Clone, Debug)]
pub(crate) struct Set {
    members: HashSet<Member, FixedState>,
    /// Inverses of the latest changes: a member, and whether it was there.
    undo: Option<Vec<(Member, bool)>>,
    owned_bytes: usize,
}

impl Set {
    /// Nothing yet. The seed makes it unpredictable from outside how it is kept.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            members: HashSet::with_hasher(FixedState::with_seed(seed)),
            undo: None,
            owned_bytes: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn contains(&self, member: &[u8]) -> bool {
        self.members.contains(member)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.members.iter().map(|member| &**member)
    }

    /// Returns whether the member is new.
    pub(crate) fn add(&mut self, member: &[u8]) -> bool {
        let added = self.members.insert(member.into());
        if added {
            self.owned_bytes += member.len();
            if let Some(undo) = &mut self.undo {
                undo.push((member.into(), false));
            }
        }
        added
    }

    /// Returns whether the member was there.
    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        let removed = self.members.remove(member);
        if removed {
            self.owned_bytes -= member.len();
            if let Some(undo) = &mut self.undo {
                undo.push((member.into(), true));
            }
        }
        removed
    }

    /// What OBJECT ENCODING answers: Redis's name for how it would keep such a collection.
    #[expect(clippy::unused_self, reason = "it will depend on what is held")]
    pub(crate) fn encoding(&self) -> &'static str {
        "hashtable"
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.members.allocation_size() + self.owned_bytes
    }

    /// From here on every change can be taken back. False where that is so already.
    pub(crate) fn begin_undo(&mut self) -> bool {
        let begins = self.undo.is_none();
        self.undo.get_or_insert_default();
        begins
    }

    pub(crate) fn forget_undo(&mut self) {
        self.undo = None;
    }

    pub(crate) fn roll_back(&mut self) {
        for (member, was) in self.undo.take().unwrap_or_default().into_iter().rev() {
            if was {
                self.add(&member)
            } else {
                self.remove(&member)
            };
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_len(self.len(), out);
        for member in &self.members {
            put_bytes(member, out);
        }
    }

    pub(crate) fn decode(bytes: &[u8], seed: u64) -> Result<Self, DecodeError> {
        let mut pieces = Pieces(bytes);
        let mut set = Self::new(seed);
        for _ in 0..pieces.len()? {
            if !set.add(pieces.bytes()?) {
                return Err(DecodeError);
            }
        }
        pieces.end().map(|()| set)
    }
}
