//! What a rule asks of a request: dimensions and their patterns.
//!
//! Patterns are exact, `prefix*` or `*`. The order of [`Pattern`] and of a matcher is that of
//! being specific: exact before longer prefix before `*`, dimension by dimension.

use std::fmt;

use super::facts::Facts;

/// A thing that requests differ in. The order is the one in which matchers are compared.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) enum Dimension {
    Endpoint,
    Caller,
    Attribute(Box<str>),
}

impl Dimension {
    /// The two well-known attributes are dimensions of their own, however they are written.
    pub(super) fn named(name: &str) -> Self {
        match name {
            "endpoint" => Self::Endpoint,
            "caller" => Self::Caller,
            other => Self::Attribute(other.into()),
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Endpoint => "endpoint",
            Self::Caller => "caller",
            Self::Attribute(name) => name,
        }
    }

    /// What a request says of it.
    pub(super) fn of<'a>(&self, facts: &Facts<'a>) -> Option<&'a [u8]> {
        match self {
            Self::Endpoint => facts.endpoint,
            Self::Caller => facts.caller,
            Self::Attribute(name) => facts.attribute(name.as_bytes()),
        }
    }
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Pattern {
    Exact(Box<str>),
    Prefix(Box<str>),
    Any,
}

impl Pattern {
    /// `None` where a star stands elsewhere than at the end.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.find('*') {
            None => Some(Self::Exact(text.into())),
            Some(0) if text.len() == 1 => Some(Self::Any),
            Some(at) if at + 1 == text.len() => Some(Self::Prefix(text[..at].into())),
            Some(_) => None,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) => f.write_str(text),
            Self::Prefix(text) => write!(f, "{text}*"),
            Self::Any => f.write_str("*"),
        }
    }
}

/// A constraint for each dimension that a rule names, in the order of dimensions.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Matcher(Box<[(Dimension, Pattern)]>);

impl Matcher {
    /// The dimensions differ from each other.
    pub(super) fn new(mut constraints: Vec<(Dimension, Pattern)>) -> Self {
        constraints.sort_by(|(left, _), (right, _)| left.cmp(right));
        Self(constraints.into())
    }

    pub(crate) fn constraints(&self) -> &[(Dimension, Pattern)] {
        &self.0
    }
}

/// As people read it: `endpoint=/api/*, caller=u42`; all requests are `*`.
impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (dimension, pattern)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{}={pattern}", dimension.name())?;
        }
        if self.0.is_empty() { f.write_str("*") } else { Ok(()) }
    }
}
