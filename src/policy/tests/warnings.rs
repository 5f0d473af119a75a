//! What lint finds doubtful, and what differs between two documents.

use super::{NOW, OPTIONS};
use crate::policy::{Terms, diff, lint, parse};

fn findings(document: &str) -> Vec<String> {
    let found = lint(document.as_bytes(), Some("a"), &OPTIONS, NOW).expect("a good document");
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn doubtful_rules_are_found() {
    let rows = [
        ("name: a\nkeys_max: 9\n", "1:1: a: no rules and no limits: every request is unmatched"),
        (
            "rules:\n  - {caller: x, limit: 5, window: 1s, until: 1999-01-01T00:00:00Z}\n",
            "2:5: a: caller=x: its `until` has passed, so it does nothing; remove it",
        ),
        (
            "rules:\n  - {limit: 5, window: 1s, cost: 6}\n",
            "2:5: a: *: a request of the cost 6 never passes, for `5 per 1s` has room for 5",
        ),
        (
            "tenants:\n- name: b\n  limits:\n  - {limit: 100000, window: 1h}\n",
            "4:3: b: limits: `100000 per 1h` remembers up to 100000 requests; sliding-window \
             takes a bounded memory",
        ),
        (
            "rules:\n  - limits: [{limit: 5, window: 1h}, {limit: 5, window: 1m}]\n",
            "2:5: a: *: `5 per 1m` never binds: another limit is reached before it",
        ),
        (
            "rules:\n  - {per: [ip], limit: 5, window: 1h}\n",
            "2:5: a: ip=*: each value of `per` has a bucket: give the tenant a `keys_max`",
        ),
        (
            "name: b\nrules:\n  - {limit: 5, window: 1h}\n",
            "1:7: b: the file or key has another name than the tenant",
        ),
        (
            "rules:\n  - {limit: 5, window: 1h, scope: zone}\n",
            "2:5: a: *: `scope` means nothing where enforcement is central",
        ),
        (
            "rules:\n  - {limit: 5, window: 1h, mode: shadow, enforce_percent: 5}\n",
            "2:5: a: *: `enforce_percent` means nothing in shadow",
        ),
    ];
    for (document, finding) in rows {
        assert_eq!(findings(document), [finding], "{document}");
    }
}

#[test]
fn plain_document_has_no_findings() {
    let document = "name: a\nkeys_max: 1000\nlimits: [{limit: 100, window: 1m}]\nrules:\n\
                    - {endpoint: /a, per: [caller], limits: [{limit: 1, window: 1s}, \
                    {limit: 20, window: 1m}]}\n- {endpoint: /b, limit: 0, window: 1s}\n";
    assert_eq!(findings(document), Vec::<String>::new());
}

#[test]
fn difference_is_told_in_the_words_of_the_document() {
    let read = |text: &str| -> Vec<Terms> {
        parse(text.as_bytes(), None, &OPTIONS, NOW).expect("a good document")
    };
    let before = read(
        "tenants:\n- {name: gone, rules: []}\n- name: kept\n  tier: t1\n  rules:\n  \
         - {name: r, endpoint: /a, limit: 5, window: 1s}\n  \
         - {endpoint: /b, limit: 5, window: 1s, burst: 1}\n  \
         - {endpoint: /c, limit: 5, window: 1s}\n",
    );
    let after = read(
        "tenants:\n- {name: new, rules: []}\n- name: kept\n  keys_max: 7\n  rules:\n  \
         - {endpoint: /d, limit: 5, window: 1s}\n  \
         - {name: r, endpoint: /a*, limit: 5, window: 1s}\n  \
         - {endpoint: /b, limit: 5, window: 1m, burst: 1, cost: 2}\n",
    );
    let told: Vec<String> = diff(&before, &after).iter().map(ToString::to_string).collect();
    let expected = [
        "gone: removed",
        "kept: keys_max: (default) -> 7",
        "kept: tier: t1 -> (default)",
        "kept: endpoint=/b: cost: (default) -> 2",
        "kept: endpoint=/b: limits: 5 per 1s, burst 1 -> 5 per 1m, burst 1",
        "kept: endpoint=/c: removed",
        "kept: endpoint=/d: added",
        "kept: r: match: endpoint=/a -> endpoint=/a*",
        "new: added",
    ];
    assert_eq!(told, expected);
    assert!(diff(&before, &before).is_empty());
}
