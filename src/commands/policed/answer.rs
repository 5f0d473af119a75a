//! What a client is written of a verdict: five integers, and with DETAIL one array more.

use super::inquiry::Inquiry;
use super::verdict::Verdict;
use crate::protocol::Reply;

pub(super) fn write(inquiry: &Inquiry<'_>, verdict: &Verdict<'_>, reply: &mut Reply<'_>) {
    if !inquiry.detail {
        reply.integers(&verdict.figures);
        return;
    }
    reply.array(verdict.figures.len() + 1);
    verdict.figures.iter().for_each(|figure| reply.integer(*figure));
    write_detail(inquiry, verdict, reply);
}

/// Name and value in turns: which rule and why, who decided, which rule in shadow would have
/// denied (empty for none), the revision of the tenant's policy, and of a denial that stands
/// whatever is spent, for how long.
fn write_detail(inquiry: &Inquiry<'_>, verdict: &Verdict<'_>, reply: &mut Reply<'_>) {
    let texts = [
        ("rule", verdict.rule.map_or("", |rule| &rule.name)),
        ("reason", verdict.reason.name()),
        ("source", verdict.source.name()),
        ("shadow", inquiry.first_shadow(verdict).map_or("", |rule| &rule.name)),
    ];
    reply.array((texts.len() + 1 + usize::from(verdict.frozen.is_some())) * 2);
    for (name, text) in texts {
        reply.bulk(name);
        reply.bulk(text);
    }
    reply.bulk("revision");
    reply.integer(inquiry.tenant.map_or(0, |tenant| tenant.revision) as i64);
    if let Some(frozen) = verdict.frozen {
        reply.bulk("frozen_ms");
        reply.integer((frozen.as_micros() / 1_000) as i64);
    }
}
