//! One look at a server: its documents, how much it decides, and who is limited.
//!
//! RL.TOP is asked of each tenant, in pipelines. Rates of the whole server are differences between
//! two looks; those of a key are the server's own.
//!
//! Units: counts are requests, rates are per second of the clock here.

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::cli::{
    policy::tenants,
    resp::text,
    table::{Row, maps, thousands},
    target::{Connection, Target},
};
use crate::time::{Clock, Duration, Timestamp};

pub(super) const COLUMNS: [&str; 7] =
    ["tenant", "rule", "key", "denied", "admitted", "denied/s", "admitted/s"];

pub(super) const NOBODY: &str = "nobody is being limited";

/// Tenants that are asked for in one look; beyond it, name those that matter.
const TENANTS_MAX: usize = 10_000;

/// Requests sent together: they fit the buffers on the way.
const TOGETHER_MAX: usize = 64;

/// What to look at.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// All where none is named.
    pub(super) tenants: Vec<String>,
    /// Rows of all tenants together.
    pub(super) rows: usize,
}

/// Looks at a server again and again; after a failure by a new connection.
#[derive(Debug)]
pub(super) struct Looker {
    target: Target,
    scope: Scope,
    clock: Clock,
    connection: Option<Connection>,
    before: Option<(Timestamp, Totals)>,
}

/// Counters that only grow, but when the server is started anew.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Totals {
    pub(super) allowed: u64,
    pub(super) denied: u64,
}

/// What one look saw.
#[derive(Clone, Debug, Default)]
pub(super) struct Glimpse {
    pub(super) server: String,
    pub(super) tenants: usize,
    /// Of them, not asked for.
    pub(super) tenants_left_out: usize,
    pub(super) in_force: usize,
    pub(super) outdated: usize,
    pub(super) refused: usize,
    pub(super) totals: Totals,
    /// Decisions and denials per second; none at the first look.
    pub(super) rates: Option<[f64; 2]>,
    /// The most denied first, with [`COLUMNS`].
    pub(super) rows: Vec<Row>,
}

impl Looker {
    pub(super) fn new(target: Target, scope: Scope) -> Self {
        Self { target, scope, clock: Clock::system(), connection: None, before: None }
    }

    pub(super) fn look(&mut self) -> anyhow::Result<Glimpse> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.target.connect()?,
        };
        let mut glimpse = glimpse(&mut connection, &self.scope)?;
        // Only one that has answered all is asked again.
        self.connection = Some(connection);
        let now = self.clock.now();
        let before = self.before.replace((now, glimpse.totals));
        glimpse.server = self.target.to_string();
        glimpse.rates =
            before.and_then(|(then, before)| rates(before, glimpse.totals, now.since(then)));
        Ok(glimpse)
    }
}

fn glimpse(connection: &mut Connection, scope: &Scope) -> anyhow::Result<Glimpse> {
    let mut glimpse = Glimpse { totals: totals(connection)?, ..Glimpse::default() };
    for document in maps(&connection.ask_whole(&["RL.POLICY", "STATUS"])?)? {
        let is = |field| document.get(field).is_some_and(|value| !value.is_null());
        match (is("error"), is("in_force")) {
            (false, _) => glimpse.in_force += 1,
            (true, true) => glimpse.outdated += 1,
            (true, false) => glimpse.refused += 1,
        }
    }
    let known = tenants(connection)?;
    glimpse.tenants = known.len();
    let mut asked = if scope.tenants.is_empty() { known } else { scope.tenants.clone() };
    glimpse.tenants_left_out = asked.len().saturating_sub(TENANTS_MAX);
    asked.truncate(TENANTS_MAX);
    let count = scope.rows.to_string();
    for names in asked.chunks(TOGETHER_MAX) {
        let requests: Vec<Vec<&str>> =
            names.iter().map(|name| vec!["RL.TOP", name, "COUNT", &count]).collect();
        for (tenant, reply) in names.iter().zip(connection.ask_together(&requests)?) {
            glimpse.rows.extend(maps(&reply)?.into_iter().map(|row| shown(tenant, row)));
        }
        most_denied(&mut glimpse.rows, scope.rows);
    }
    Ok(glimpse)
}

fn totals(connection: &mut Connection) -> anyhow::Result<Totals> {
    let reply = connection.ask_whole(&["INFO", "tollgate"])?;
    let info = text(&reply).context("INFO answered no text")?;
    let figure = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|figure| figure.trim().parse().ok())
    };
    match (figure("decisions_allowed"), figure("decisions_denied")) {
        (Some(allowed), Some(denied)) => Ok(Totals { allowed, denied }),
        _ => bail!("INFO tells of no decisions; is it Tollgate?"),
    }
}

/// Decisions and denials per second. A server that was started anew begins at zero.
fn rates(before: Totals, now: Totals, elapsed: Duration) -> Option<[f64; 2]> {
    let seconds = elapsed.as_micros() as f64 / 1e6;
    if elapsed.is_zero() {
        return None;
    }
    let grown = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now) as f64 / seconds;
    let denied = grown(now.denied, before.denied);
    Some([grown(now.allowed, before.allowed) + denied, denied])
}

/// A row of RL.TOP under our columns.
fn shown(tenant: &str, mut row: Row) -> Row {
    let mut take = |name: &str| row.remove(name).unwrap_or_default();
    // Doubles come as text.
    let rate = |text: Value| text.as_str().and_then(|text| text.parse::<f64>().ok());
    let values = [
        json!(tenant),
        take("rule"),
        take("key"),
        take("denied"),
        take("admitted"),
        json!(rate(take("denied_per_second"))),
        json!(rate(take("admitted_per_second"))),
    ];
    COLUMNS.iter().map(|name| (*name).to_owned()).zip(values).collect()
}

/// Sorts by what is denied now, and keeps so many.
fn most_denied(rows: &mut Vec<Row>, rows_max: usize) {
    let figure = |row: &Row, column: &str| row.get(column).and_then(Value::as_f64).unwrap_or(0.0);
    let name = |row: &Row| COLUMNS[..3].iter().map(|c| row[*c].to_string()).collect::<Vec<_>>();
    rows.sort_by(|one, two| {
        let by = |column| figure(two, column).total_cmp(&figure(one, column));
        by("denied/s").then_with(|| by("denied")).then_with(|| name(one).cmp(&name(two)))
    });
    rows.truncate(rows_max);
}

impl Glimpse {
    /// What stands above the table.
    pub(super) fn heading(&self) -> [String; 2] {
        let Self { server, tenants, in_force, outdated, refused, totals, .. } = self;
        let left_out = match self.tenants_left_out {
            0 => String::new(),
            count => format!(" ({} not looked at: name some by --tenant)", thousands(count as u64)),
        };
        let count = |count: usize| thousands(count as u64);
        let mut others = String::new();
        for (documents, word) in [(*outdated, "outdated"), (*refused, "refused")] {
            if documents > 0 {
                others.extend([", ", &count(documents), " ", word]);
            }
        }
        let [tenants, in_force] = [*tenants, *in_force].map(count);
        let first =
            format!("{server}  {tenants} tenants{left_out}, {in_force} documents in force{others}");
        let second = if let Some([decided, denied]) = self.rates {
            let percent = if decided > 0.0 { denied * 100.0 / decided } else { 0.0 };
            let [decided, denied] = [decided, denied].map(|rate| thousands(rate.round() as u64));
            format!("{decided} checks/s, {denied} denied/s ({percent:.1} %)")
        } else {
            let [decided, denied] = [totals.allowed + totals.denied, totals.denied].map(thousands);
            format!("{decided} checks and {denied} denials since the start")
        };
        [first, second]
    }
}

impl From<&Glimpse> for Value {
    fn from(glimpse: &Glimpse) -> Self {
        let Glimpse { server, tenants, in_force, outdated, refused, totals, rates, rows, .. } =
            glimpse;
        // Names that a program can write after a dot.
        let rows = rows.iter().map(|row| {
            let named = |(name, value): (&String, &Self)| {
                (name.replace("/s", "_per_second"), value.clone())
            };
            row.iter().map(named).collect::<Row>()
        });
        json!({
            "server": server,
            "tenants": tenants,
            "tenants_left_out": glimpse.tenants_left_out,
            "documents": {"in_force": in_force, "outdated": outdated, "refused": refused},
            "checks": totals.allowed + totals.denied,
            "denied": totals.denied,
            "checks_per_second": rates.map(|[decided, _]| decided),
            "denied_per_second": rates.map(|[_, denied]| denied),
            "rows": rows.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tenant: &str, denied: u64, per_second: &str) -> Row {
        let row = [
            ("rule", json!("byip")),
            ("key", json!("1")),
            ("denied", json!(denied)),
            ("admitted", json!(7)),
            ("denied_per_second", json!(per_second)),
            ("admitted_per_second", json!("0.5")),
        ];
        shown(tenant, row.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    #[test]
    fn most_denied_now_stands_first_whatever_was_before() {
        let mut rows = vec![row("a", 900, "0"), row("b", 3, "1.5"), row("c", 4, "1.5")];
        most_denied(&mut rows, 2);
        let tenants: Vec<_> = rows.iter().map(|row| row["tenant"].clone()).collect();
        assert_eq!(tenants, ["c", "b"]);
    }

    #[test]
    fn rates_are_differences_and_begin_anew_with_the_server() {
        let [before, now] = [(10, 4), (30, 9)].map(|(allowed, denied)| Totals { allowed, denied });
        assert_eq!(rates(before, now, Duration::from_millis(500)), Some([50.0, 10.0]));
        assert_eq!(rates(now, before, Duration::from_secs(1)), Some([14.0, 4.0]));
        assert_eq!(rates(before, now, Duration::ZERO), None);
    }

    #[test]
    fn heading_tells_what_is_wrong_and_nothing_that_is_not() {
        let mut glimpse = Glimpse { server: "h:1".into(), tenants: 1_000, ..Glimpse::default() };
        glimpse.in_force = 2;
        let [first, second] = glimpse.heading();
        assert_eq!(first, "h:1  1,000 tenants, 2 documents in force");
        assert_eq!(second, "0 checks and 0 denials since the start");
        (glimpse.refused, glimpse.rates) = (1, Some([2_000.4, 500.0]));
        let [first, second] = glimpse.heading();
        assert_eq!(first, "h:1  1,000 tenants, 2 documents in force, 1 refused");
        assert_eq!(second, "2,000 checks/s, 500 denied/s (25.0 %)");
    }

    #[test]
    fn json_has_names_for_programs() {
        let glimpse = Glimpse { rows: vec![row("a", 3, "1.5")], ..Glimpse::default() };
        let json = Value::from(&glimpse);
        assert_eq!(json["rows"][0]["denied_per_second"], 1.5);
        assert_eq!(json["rows"][0]["tenant"], "a");
        assert!(json["checks_per_second"].is_null());
    }
}
