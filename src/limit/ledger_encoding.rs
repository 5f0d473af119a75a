//! Ledgers as bytes: what is spent as a state, what is taken from the credit, and the holds.
//!
//! A version byte, the last moment, then each part behind a number that says whether it is there
//! or how many there are, in the numbers of `encoding.rs`. Reading accepts what writing produces
//! and breaks no invariant, whatever it is given.

use crate::time::Timestamp;

use super::encoding::{DecodeError, Reader, VERSION, write, write_bucket};
use super::holds::{HoldId, Holds};
use super::ledger::Ledger;
use super::state::State;

impl Ledger {
    /// Appends the ledger to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        write(out, self.last.as_micros());
        let mut spent = Vec::new();
        if let Some(state) = &self.spent {
            state.encode(&mut spent);
        }
        write(out, spent.len() as u64);
        out.extend_from_slice(&spent);
        write(out, u64::from(self.credit.is_some()));
        if let Some(credit) = self.credit {
            write_bucket(out, credit);
        }
        write(out, self.holds.len() as u64);
        for (until, id, amount) in self.holds.iter() {
            write(out, until.as_micros());
            write(out, id.0);
            write(out, amount);
        }
    }

    /// Reads what [`Ledger::encode`] wrote, all of it and nothing more.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader(bytes);
        let version = reader.byte()?;
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let last = Timestamp::from_micros(reader.number()?);
        let spent = match reader.bytes()? {
            [] => None,
            spent => Some(State::decode(spent)?),
        };
        if spent.as_ref().is_some_and(|state| state.last > last) {
            return Err(DecodeError::Number);
        }
        let credit = match reader.number()? {
            0 => None,
            1 => Some(reader.bucket()?),
            _ => return Err(DecodeError::Number),
        };
        let holds = holds(&mut reader)?;
        if !reader.0.is_empty() {
            return Err(DecodeError::Trailing);
        }
        Ok(Self { last, spent, credit, holds })
    }
}

fn holds(reader: &mut Reader<'_>) -> Result<Holds, DecodeError> {
    let (mut holds, mut sum) = (Holds::default(), 0_u64);
    let mut before = None;
    for _ in 0..reader.number()? {
        let until = Timestamp::from_micros(reader.number()?);
        let (id, amount) = (HoldId(reader.number()?), reader.number()?);
        sum = sum.checked_add(amount).ok_or(DecodeError::Number)?;
        if amount == 0 || before >= Some((until, id)) {
            return Err(DecodeError::Number);
        }
        before = Some((until, id));
        holds.insert(id, until, amount);
    }
    Ok(holds)
}
