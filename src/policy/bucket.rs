//! The names of buckets: tenant, rule, quota, and the values of `per`, each behind its length.
//!
//! A rule is meant by its name, else by its matcher; a quota by its name, else by its place; so
//! what was spent survives a changed limit, and no two of them share a bucket. The names of the
//! `per` attributes are part of it, lest the callers of yesterday be the countries of today.
//!
//! Invariant: names can be read back, so different parts never make the same name.

use super::pattern::{Dimension, Matcher, Pattern};

/// What a rule's buckets are named by.
#[derive(Clone, Copy, Debug)]
pub(super) enum RuleIdentity<'a> {
    /// The tenant's own `limits`.
    Tenant,
    Named(&'a str),
    Matching(&'a Matcher),
}

/// What a quota's buckets are named by.
#[derive(Clone, Copy, Debug)]
pub(super) enum QuotaIdentity<'a> {
    Named(&'a str),
    Place(usize),
    Concurrency,
    Candidate,
}

/// What the names of all buckets of a tenant begin with. The engine reads it back, to charge
/// them to their tenant.
pub(super) fn put_tenant(tenant: &str, out: &mut Vec<u8>) {
    put(tenant.as_bytes(), out);
}

/// The tenant's name, which is text, and what is behind it.
fn take_tenant(name: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = take_length(name)?;
    let (tenant, rest) = rest.split_at_checked(length)?;
    Some((std::str::from_utf8(tenant).ok()?, rest))
}

/// Whose bucket has this name.
pub(super) fn tenant_of(name: &[u8]) -> Option<&str> {
    take_tenant(name).map(|(tenant, _)| tenant)
}

/// Rule and values of a bucket as people read them, also where the name is cut short.
pub(crate) fn shown_bucket(name: &[u8]) -> (String, String) {
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut parts = Vec::new();
    let mut rest = take_tenant(name).map_or(&[][..], |(_, rest)| rest);
    while let Some((length, bytes)) = take_length(rest) {
        let (part, behind) = bytes.split_at(length.min(bytes.len()));
        parts.push(part);
        rest = behind;
    }
    let rule = match parts.first() {
        Some([b'n', name @ ..]) => shown(name),
        Some([b't']) => "limits".to_owned(),
        Some(matcher) => shown_matcher(matcher),
        None => String::new(),
    };
    let values: Vec<String> = parts.iter().skip(3).map(|value| shown(value)).collect();
    (rule, values.join(", "))
}

/// What is left readable of a matcher that is not named: its texts.
fn shown_matcher(part: &[u8]) -> String {
    let is_text = |byte: &u8| byte.is_ascii_graphic() || *byte >= 0x80;
    let text: Vec<u8> = part.iter().skip(1).copied().filter(is_text).collect();
    String::from_utf8_lossy(&text).into_owned()
}

/// The name of a bucket up to the values.
pub(super) fn prefix(
    tenant: &str,
    rule: RuleIdentity<'_>,
    quota: QuotaIdentity<'_>,
    per: &[Dimension],
) -> Box<[u8]> {
    let mut out = Vec::with_capacity(64);
    put_tenant(tenant, &mut out);
    put(&rule_part(rule), &mut out);
    put(&quota_part(quota), &mut out);
    let mut names = Vec::new();
    for dimension in per {
        put_dimension(dimension, &mut names);
    }
    put(&names, &mut out);
    out.into()
}

/// Writes one of the values behind the prefix.
pub(super) fn put_value(value: &[u8], put: &mut impl FnMut(&[u8])) {
    let mut left = value.len();
    while left >= 0x80 {
        put(&[left as u8 | 0x80]);
        left >>= 7;
    }
    put(&[left as u8]);
    put(value);
}

/// Reads back the values behind the prefix; `None` where they are no values.
pub(super) fn values(mut rest: &[u8]) -> Option<Vec<&[u8]>> {
    let mut values = Vec::new();
    while !rest.is_empty() {
        let (length, bytes) = take_length(rest)?;
        let (value, behind) = bytes.split_at_checked(length)?;
        values.push(value);
        rest = behind;
    }
    Some(values)
}

fn rule_part(rule: RuleIdentity<'_>) -> Vec<u8> {
    match rule {
        RuleIdentity::Tenant => b"t".to_vec(),
        RuleIdentity::Named(name) => [b"n", name.as_bytes()].concat(),
        RuleIdentity::Matching(matcher) => {
            let mut part = b"m".to_vec();
            for (dimension, pattern) in matcher.constraints() {
                put_dimension(dimension, &mut part);
                let (kind, text) = match pattern {
                    Pattern::Exact(text) => (b'=', &**text),
                    Pattern::Prefix(text) => (b'^', &**text),
                    Pattern::Any => (b'*', ""),
                };
                part.push(kind);
                put(text.as_bytes(), &mut part);
            }
            part
        }
    }
}

fn quota_part(quota: QuotaIdentity<'_>) -> Vec<u8> {
    match quota {
        QuotaIdentity::Named(name) => [b"n", name.as_bytes()].concat(),
        QuotaIdentity::Place(place) => {
            let mut part = b"p".to_vec();
            put_length(place, &mut part);
            part
        }
        QuotaIdentity::Concurrency => b"c".to_vec(),
        QuotaIdentity::Candidate => b"x".to_vec(),
    }
}

fn put_dimension(dimension: &Dimension, out: &mut Vec<u8>) {
    match dimension {
        Dimension::Endpoint => out.push(b'e'),
        Dimension::Caller => out.push(b'c'),
        Dimension::Attribute(name) => {
            out.push(b'a');
            put(name.as_bytes(), out);
        }
    }
}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    put_length(bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
fn put_length(mut length: usize, out: &mut Vec<u8>) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

fn take_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut length = 0_usize;
    for (at, byte) in bytes.iter().enumerate().take(9) {
        length |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((length, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_read_back() {
        for length in [0, 1, 127, 128, 300, 16_384, usize::MAX >> 2] {
            let mut out = Vec::new();
            put_length(length, &mut out);
            assert_eq!(take_length(&out), Some((length, &[][..])));
        }
    }

    #[test]
    fn tenant_of_any_name_reads_back_by_its_length() {
        for tenant in ["t", &"n".repeat(127), &"n".repeat(300)] {
            let name = prefix(tenant, RuleIdentity::Tenant, QuotaIdentity::Concurrency, &[]);
            assert_eq!(tenant_of(&name), Some(tenant));
            let mut expected = Vec::new();
            put_length(tenant.len(), &mut expected);
            expected.extend_from_slice(tenant.as_bytes());
            assert!(name.starts_with(&expected));
        }
    }

    #[test]
    fn parts_never_run_together() {
        let exact = |text: &str| Pattern::Exact(text.into());
        let attribute = |name: &str| Dimension::Attribute(name.into());
        let matchers = [
            Matcher::new(vec![(Dimension::Endpoint, exact("a"))]),
            Matcher::new(vec![(Dimension::Caller, exact("a"))]),
            Matcher::new(vec![(attribute("caller2"), exact("a"))]),
            Matcher::new(vec![(Dimension::Endpoint, Pattern::Prefix("a".into()))]),
            Matcher::new(vec![(attribute("k"), exact("a_k2_b"))]),
            Matcher::new(vec![(attribute("k"), exact("a")), (attribute("k2"), exact("b"))]),
        ];
        let place = QuotaIdentity::Place(0);
        let mut rules: Vec<RuleIdentity> = matchers.iter().map(RuleIdentity::Matching).collect();
        rules.extend([RuleIdentity::Tenant, RuleIdentity::Named("t"), RuleIdentity::Named("m")]);
        let mut names: Vec<Box<[u8]>> = Vec::new();
        for tenant in ["t1", "t1:user", "t", "1"] {
            names.extend(rules.iter().map(|rule| prefix(tenant, *rule, place, &[])));
        }
        let quotas =
            [QuotaIdentity::Named("c"), QuotaIdentity::Place(1), QuotaIdentity::Concurrency];
        names.extend(quotas.map(|quota| prefix("t", RuleIdentity::Tenant, quota, &[])));
        for per in [Dimension::Caller, Dimension::Endpoint, attribute("caller2")] {
            names.push(prefix("t", RuleIdentity::Tenant, place, &[per]));
        }
        for (at, name) in names.iter().enumerate() {
            for other in &names[..at] {
                assert!(!name.starts_with(other) && !other.starts_with(name), "{name:?}");
            }
        }
    }
}
