//! RL.CHECK at a whole server: what is counted, and what many connections get at once.

use crate::governed::Governed;
use crate::http::metrics;
use crate::policies::is;

/// One a day for each address.
const ONE_A_DAY: &str = "name: acme\nrules: [{name: byip, per: [ip], limit: 1, window: 1d}]\n";

#[test]
fn check_is_one_decision_however_it_was_answered() {
    let governed = Governed::start(ONE_A_DAY, &[]);
    let mut connection = governed.tollgate.connect();
    // The first is allowed, the second denied and remembered, the rest denied from memory.
    for _ in 0..10 {
        connection.line("RL.CHECK acme - ATTR ip 1");
    }
    let info = connection.line("INFO tollgate");
    for line in ["decisions_allowed:1\\r", "decisions_denied:9\\r", "checks_from_memory:8\\r"] {
        assert!(info.contains(line), "{line}: {info}");
    }
    let page = metrics(&governed.tollgate);
    assert!(is(&page, "tollgate_checks_total{outcome=\"denied\"}", 9), "{page:?}");
}
