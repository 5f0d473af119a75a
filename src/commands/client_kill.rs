//! CLIENT KILL: ends the connections that all given filters match.
//!
//! A connection that ends itself is told the outcome first.

use super::acl;
use super::call::{Answer, Call};
use super::client_list::{Kind, peers};
use super::host::Peer;
use super::session::Outcome;
use crate::protocol::{Args, Error, Reply, parse_i64};

/// CLIENT KILL addr | <ID id | ADDR addr | LADDR addr | TYPE kind | USER user | SKIPME yes|no |
/// MAXAGE seconds> ...
pub(super) fn kill(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let words = call.args.skip(2);
    let old_form = words.len() == 1;
    let filter = if old_form {
        Filter { address: words.get(0), spares_caller: false, ..Filter::default() }
    } else {
        Filter::parse(words)?
    };
    let caller = call.session.id;
    let (mut killed, mut outcome) = (0, Outcome::Reply);
    for peer in peers(call) {
        let id = peer.session.id;
        if !filter.matches(&peer) || (filter.spares_caller && id == caller) {
            continue;
        }
        if id == caller {
            outcome = Outcome::Close;
            killed += 1;
        } else if call.host.kill(id) {
            killed += 1;
        }
    }
    match (old_form, killed) {
        (true, 0) => return Err(Error::text("No such client")),
        (true, _) => reply.ok(),
        (false, _) => reply.integer(killed),
    }
    Ok(outcome)
}

#[derive(Debug)]
struct Filter<'a> {
    id: Option<i64>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    kind: Option<Kind>,
    user: Option<&'static str>,
    age_min_s: i64,
    spares_caller: bool,
}

impl Default for Filter<'_> {
    fn default() -> Self {
        Self {
            id: None,
            address: None,
            local_address: None,
            kind: None,
            user: None,
            age_min_s: 0,
            spares_caller: true,
        }
    }
}

impl<'a> Filter<'a> {
    fn parse(words: Args<'a>) -> Result<Self, Error> {
        let mut filter = Self::default();
        let mut at = 0;
        while let Some(option) = words.get(at) {
            let value = words.get(at + 1).ok_or(Error::Syntax)?;
            filter.lay(option, value)?;
            at += 2;
        }
        Ok(filter)
    }

    fn lay(&mut self, option: &[u8], value: &'a [u8]) -> Result<(), Error> {
        match option.to_ascii_uppercase().as_slice() {
            b"ID" => {
                let id = parse_i64(value).filter(|id| *id > 0);
                let wrong = || Error::text("client-id should be greater than 0");
                self.id = Some(id.ok_or_else(wrong)?);
            }
            b"ADDR" => self.address = Some(value),
            b"LADDR" => self.local_address = Some(value),
            b"TYPE" => self.kind = Some(Kind::parse(value)?),
            b"USER" => {
                let user = acl::USERS.into_iter().find(|user| user.as_bytes() == value);
                self.user = Some(user.ok_or_else(|| Error::quoting("No such user", value))?);
            }
            b"SKIPME" => {
                self.spares_caller = match value.to_ascii_uppercase().as_slice() {
                    b"YES" => true,
                    b"NO" => false,
                    _ => return Err(Error::Syntax),
                }
            }
            b"MAXAGE" => {
                let no_number = || Error::text("maxage is not an integer or out of range");
                self.age_min_s = parse_i64(value).ok_or_else(no_number)?;
                if self.age_min_s <= 0 {
                    return Err(Error::text("maxage should be greater than 0"));
                }
            }
            _ => return Err(Error::Syntax),
        }
        Ok(())
    }

    fn matches(&self, peer: &Peer) -> bool {
        self.id.is_none_or(|id| id == peer.session.id as i64)
            && self.user.is_none_or(|user| user == peer.session.user())
            && self.address.is_none_or(|address| address == peer.address.as_bytes())
            && self.local_address.is_none_or(|address| address == peer.local_address.as_bytes())
            && self.kind.is_none_or(|kind| kind == Kind::of(peer))
            && self.age_min_s <= peer.age_s as i64
    }
}
