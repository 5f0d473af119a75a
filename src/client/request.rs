//! What a caller asks: [`Limit`] by a quota of its own, [`Check`] by a tenant's policy.
//!
//! Both only borrow, and become the bytes of one request. Those bytes are also the name under
//! which a denial is remembered: another cost or quota is another request.

use crate::limit::{Algorithm, Align, Cost, Quota};
use crate::load::Tier;
use crate::protocol::{write_header, write_word};

/// A limit on a key: `RL.LIMIT`.
#[derive(Clone, Copy, Debug)]
pub struct Limit<'a> {
    pub(super) key: &'a [u8],
    quota: Quota,
    cost: Cost,
}

impl<'a> Limit<'a> {
    pub fn new(key: &'a (impl AsRef<[u8]> + ?Sized), quota: Quota) -> Self {
        Self { key: key.as_ref(), quota, cost: Cost::ONE }
    }

    #[must_use]
    pub fn cost(self, cost: Cost) -> Self {
        Self { cost, ..self }
    }

    pub(super) fn request(&self, look: Look) -> Vec<u8> {
        let Self { key, quota, cost } = self;
        let mut words = Words::of(&[b"RL.LIMIT", key]);
        words.number(quota.limit());
        words.push(quota.window().to_string().as_bytes());
        if quota.algorithm() != Algorithm::default() {
            words.pair("ALGORITHM", quota.algorithm().name());
        }
        if quota.burst() != 0 {
            words.push(b"BURST");
            words.number(quota.burst());
        }
        if quota.align() != Align::default() {
            words.pair("ALIGN", quota.align().name());
        }
        if *cost != Cost::ONE {
            words.push(b"COST");
            words.number(cost.0);
        }
        words.finish(look)
    }
}

/// A request as a tenant's policy sees it: `RL.CHECK` and its kin.
#[derive(Clone, Debug)]
pub struct Check<'a> {
    pub(super) tenant: &'a [u8],
    endpoint: Option<&'a [u8]>,
    caller: Option<&'a [u8]>,
    attributes: Vec<(&'a [u8], &'a [u8])>,
    cost: Option<Cost>,
    tier: Option<Tier>,
}

impl<'a> Check<'a> {
    pub fn new(tenant: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self {
            tenant: tenant.as_ref(),
            endpoint: None,
            caller: None,
            attributes: Vec::new(),
            cost: None,
            tier: None,
        }
    }

    #[must_use]
    pub fn endpoint(self, endpoint: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self { endpoint: Some(endpoint.as_ref()), ..self }
    }

    #[must_use]
    pub fn caller(self, caller: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self { caller: Some(caller.as_ref()), ..self }
    }

    #[must_use]
    pub fn attribute(
        mut self,
        name: &'a (impl AsRef<[u8]> + ?Sized),
        value: &'a (impl AsRef<[u8]> + ?Sized),
    ) -> Self {
        self.attributes.push((name.as_ref(), value.as_ref()));
        self
    }

    /// Without it, the policy says what the request costs.
    #[must_use]
    pub fn cost(self, cost: Cost) -> Self {
        Self { cost: Some(cost), ..self }
    }

    #[must_use]
    pub fn tier(self, tier: Tier) -> Self {
        Self { tier: Some(tier), ..self }
    }

    /// `verb tenant endpoint ...`.
    pub(super) fn words(&self, verb: &[&[u8]]) -> Words {
        let mut words = Words::of(verb);
        words.push(self.tenant);
        words.push(self.endpoint.unwrap_or(b"-"));
        if let Some(caller) = self.caller {
            words.push(b"CALLER");
            words.push(caller);
        }
        for (name, value) in &self.attributes {
            words.push(b"ATTR");
            words.push(name);
            words.push(value);
        }
        if let Some(cost) = self.cost {
            words.push(b"COST");
            words.number(cost.0);
        }
        if let Some(tier) = self.tier {
            words.pair("TIER", tier.name());
        }
        words
    }

    pub(super) fn request(&self, look: Look, told: Told) -> Vec<u8> {
        let mut words = self.words(&[b"RL.CHECK"]);
        match told {
            Told::Briefly => {}
            Told::InDetail => words.push(b"DETAIL"),
        }
        words.finish(look)
    }
}

/// Whether a request spends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Look {
    Spend,
    Peek,
}

/// How much the server tells about a check: what is to be remembered needs the revision.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Told {
    Briefly,
    InDetail,
}

/// A request while its words are still being counted.
#[derive(Debug, Default)]
pub(super) struct Words {
    count: usize,
    bytes: Vec<u8>,
}

impl Words {
    pub(super) fn of(words: &[&[u8]]) -> Self {
        let mut all = Self::default();
        for word in words {
            all.push(word);
        }
        all
    }

    pub(super) fn push(&mut self, word: &[u8]) {
        self.count += 1;
        write_word(word, &mut self.bytes);
    }

    fn pair(&mut self, name: &str, value: &str) {
        self.push(name.as_bytes());
        self.push(value.as_bytes());
    }

    pub(super) fn number(&mut self, number: u64) {
        self.push(itoa::Buffer::new().format(number).as_bytes());
    }

    pub(super) fn finish(mut self, look: Look) -> Vec<u8> {
        match look {
            Look::Spend => {}
            Look::Peek => self.push(b"PEEK"),
        }
        let mut request = Vec::with_capacity(self.bytes.len() + 8);
        write_header(b'*', self.count, &mut request);
        request.append(&mut self.bytes);
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    fn line(request: &[u8]) -> String {
        let text = String::from_utf8_lossy(request);
        let words = text.split("\r\n").skip(1).filter(|word| !word.starts_with('$'));
        words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    }

    fn quota(algorithm: Algorithm) -> Quota {
        Quota::new(algorithm, 10, Duration::from_secs(60)).expect("a valid quota")
    }

    #[test]
    fn limit_says_only_what_is_not_the_default() {
        let plain = Limit::new("key", quota(Algorithm::SlidingLog));
        assert_eq!(
            plain.request(Look::Spend),
            b"*4\r\n$8\r\nRL.LIMIT\r\n$3\r\nkey\r\n$2\r\n10\r\n$2\r\n1m\r\n"
        );
        let quota = quota(Algorithm::FixedWindow).with_align(Align::First);
        let quota = quota.with_burst(5).expect("a valid burst");
        let full = Limit::new("key", quota).cost(Cost(3)).request(Look::Peek);
        let expected = "RL.LIMIT key 10 1m ALGORITHM fixed-window BURST 5 ALIGN first COST 3 PEEK";
        assert_eq!(line(&full), expected);
        assert!(full.starts_with(b"*13\r\n"));
    }

    #[test]
    fn check_says_what_is_known_of_the_request() {
        let brief = Check::new("acme").request(Look::Spend, Told::Briefly);
        assert_eq!(line(&brief), "RL.CHECK acme -");
        let check = Check::new("acme").endpoint("/login").caller("u42").attribute("plan", "free");
        let full = check.attribute("zone", "eu").cost(Cost(2)).tier(Tier::T3);
        assert_eq!(
            line(&full.request(Look::Peek, Told::InDetail)),
            "RL.CHECK acme /login CALLER u42 ATTR plan free ATTR zone eu COST 2 TIER t3 DETAIL PEEK"
        );
    }
}
