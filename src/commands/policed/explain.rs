//! RL.EXPLAIN: every quota that applies to a request, as a PEEK finds it.

use super::asking::Takes;
use super::inquiry::{Applied, Inquiry};
use crate::commands::request::{Ground, Request};
use crate::engine::{Answers, Asked, Manner, View};
use crate::limit::{Decision, Level};
use crate::policy::{Mode, shown_bucket};
use crate::protocol::{Error, Reply};

const EXPLAIN: Takes = Takes {
    name: "RL.EXPLAIN",
    usage: "CALLER c, ATTR name value, COST n or TIER t",
    options: &[b"COST"],
};

/// Answers an array of maps, one for each quota of each rule that applies, in the order of the
/// document: `rule`, `class`, `key`, `quota`, `used`, `held`, `mode`, `verdict`, `binds`.
pub(super) fn explain(
    request: &Request<'_>,
    mut ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let held = request.hold_court();
    let inquiry = Inquiry::read(request.court(&held), request.args.skip(1), &EXPLAIN)?;
    ground.transact_over(inquiry.scope(), request, |view| inquiry.show(view, reply))
}

impl Inquiry<'_> {
    fn show(&self, view: &mut View<'_>, reply: &mut Reply<'_>) {
        // Nothing is stored, so nothing can be without room.
        let answers = view.check_buckets(self.asked, Manner::Peek, None).unwrap_or_default();
        let binding = self.binding(&answers);
        reply.array(self.asked.len());
        for (place, (asked, applied)) in self.asked.iter().zip(self.applied).enumerate() {
            let level = view.bucket_level(asked.key, &asked.bound);
            let is_allowed = answers.get(place).is_none_or(Decision::is_allowed);
            let row = Row { asked, applied, level, is_allowed, binds: binding == Some(place) };
            row.write(reply);
        }
    }

    /// The quota that is reported: the first enforced one that fails, else the one that has
    /// least left.
    fn binding(&self, answers: &Answers) -> Option<usize> {
        self.sum_up(answers).reported
    }
}

struct Row<'r> {
    asked: &'r Asked<'r>,
    applied: &'r Applied<'r>,
    level: Level,
    is_allowed: bool,
    binds: bool,
}

impl Row<'_> {
    fn write(&self, reply: &mut Reply<'_>) {
        let rule = self.applied.rule;
        let mode = match rule.mode {
            _ if self.applied.is_candidate => "candidate",
            Mode::Enforce if rule.enforce_percent < 100 => "partly",
            Mode::Enforce => "enforce",
            Mode::Shadow => "shadow",
            Mode::Off => "off",
        };
        let verdict = if self.is_allowed { "allow" } else { "deny" };
        reply.map(9);
        let texts = [
            ("rule", rule.name.to_string()),
            ("class", rule.class()),
            ("key", shown_bucket(self.asked.key.bytes()).1),
            ("quota", self.applied.quota.to_string()),
            ("mode", mode.to_owned()),
            ("verdict", verdict.to_owned()),
        ];
        for (name, text) in texts {
            reply.bulk(name);
            reply.bulk(text);
        }
        for (name, number) in [("used", self.level.used), ("held", self.level.held)] {
            reply.bulk(name);
            reply.integer(i64::try_from(number).unwrap_or(i64::MAX));
        }
        reply.bulk("binds");
        reply.integer(i64::from(self.binds));
    }
}
