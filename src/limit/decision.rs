//! What a request asks and what it is answered: [`Cost`], [`Decision`], [`Verdict`].
//!
//! A denial is an answer, not an error. Only a denial carries a wait, so no caller can read one
//! from an allowed request. Spans are exact to the microsecond here; the helpers that end in
//! `_ms` are for the wire, where times round up and `remaining` has been rounded down already.

use crate::time::Duration;

/// The amount of quota that one request spends; zero only looks.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Cost(pub u64);

impl Cost {
    /// What a request costs that says nothing about it.
    pub const ONE: Self = Self(1);
    /// Spends nothing: allowed whenever the limit is above zero.
    pub const ZERO: Self = Self(0);
}

/// The answer to one request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Decision {
    pub verdict: Verdict,
    /// The figure reported to clients: the quota's capacity.
    pub limit: u64,
    /// What may still be spent at this moment, after this request; rounded down.
    pub remaining: u64,
    /// From now until nothing is spent any more, if nothing else is spent.
    pub reset_after: Duration,
}

/// Whether the request may pass.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    Allow,
    Deny {
        /// The same request passes after exactly this span if nothing else is spent until then;
        /// never zero. `None`: it never passes, because it costs more than the capacity.
        retry_after: Option<Duration>,
    },
}

impl Verdict {
    /// That of two denials which lasts longer; one that never ends lasts longest.
    pub(super) fn longest(self, other: Self) -> Self {
        match (self, other) {
            (Self::Allow, verdict) | (verdict, Self::Allow) => verdict,
            (Self::Deny { retry_after: one }, Self::Deny { retry_after: two }) => {
                let retry_after = one.zip(two).map(|(one, two)| one.max(two));
                Self::Deny { retry_after }
            }
        }
    }
}

impl Decision {
    pub const fn is_allowed(&self) -> bool {
        matches!(self.verdict, Verdict::Allow)
    }

    /// The wait of a denial that ends; `None` when allowed, and when it never passes.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.verdict {
            Verdict::Allow => None,
            Verdict::Deny { retry_after } => retry_after,
        }
    }

    /// For the wire: rounded up, -1 when allowed or never.
    pub const fn retry_after_ms(&self) -> i64 {
        match self.retry_after() {
            None => -1,
            Some(span) => wire_ms(span),
        }
    }

    /// For the wire: rounded up.
    pub const fn reset_after_ms(&self) -> i64 {
        wire_ms(self.reset_after)
    }
}

/// A 64-bit count of microseconds in milliseconds always fits, being a thousandth of it.
const fn wire_ms(span: Duration) -> i64 {
    span.as_millis_ceil() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(retry_after: Option<Duration>) -> Decision {
        let verdict = Verdict::Deny { retry_after };
        Decision { verdict, limit: 1, remaining: 0, reset_after: Duration::from_micros(1_001) }
    }

    #[test]
    fn wire_times_round_up() {
        let decision = denied(Some(Duration::from_micros(1)));
        assert_eq!((decision.retry_after_ms(), decision.reset_after_ms()), (1, 2));
        let longest = denied(Some(Duration::from_micros(u64::MAX)));
        assert_eq!(longest.retry_after_ms(), 18_446_744_073_709_552);
    }

    #[test]
    fn allowed_and_never_both_print_minus_one() {
        assert_eq!(denied(None).retry_after_ms(), -1);
        let allowed = Decision { verdict: Verdict::Allow, ..denied(None) };
        assert_eq!(allowed.retry_after_ms(), -1);
        assert!(allowed.is_allowed());
    }
}
