//! Reads a page of metrics as strictly as its format is written down (version 0.0.4), and
//! panics with the line where it is not one.

use std::collections::{BTreeMap, BTreeSet};

/// Every sample by its name and labels as they stand on the page.
#[derive(Debug)]
pub(crate) struct Page {
    samples: BTreeMap<String, f64>,
    kinds: BTreeMap<String, String>,
}

impl Page {
    pub(crate) fn read(text: &str) -> Self {
        let mut page = Self { samples: BTreeMap::new(), kinds: BTreeMap::new() };
        let mut helped = BTreeSet::new();
        let mut family = "";
        assert!(text.ends_with('\n'), "the last line has no end");
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect(line);
                assert!(is_name(name) && !help.is_empty(), "{line}");
                assert!(helped.insert(name.to_owned()), "a second time: {line}");
                family = name;
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect(line);
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(name, family, "TYPE does not follow its HELP: {line}");
                let before = page.kinds.insert(name.to_owned(), kind.to_owned());
                assert!(before.is_none(), "a second time: {line}");
            } else {
                page.read_sample(family, line);
            }
        }
        page
    }

    fn read_sample(&mut self, family: &str, line: &str) {
        let (series, value) = line.rsplit_once(' ').expect(line);
        let value: f64 = value.parse().expect(line);
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let kind = self.kinds.get(family).unwrap_or_else(|| panic!("no TYPE before: {line}"));
        let suffixes: &[&str] =
            if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        let known = suffixes.iter().any(|suffix| name == format!("{family}{suffix}"));
        assert!(known, "stands under {family}: {line}");
        assert!(is_labels(labels), "{line}");
        let before = self.samples.insert(series.to_owned(), value);
        assert!(before.is_none(), "a second time: {line}");
    }

    pub(crate) fn value(&self, series: &str) -> f64 {
        let value = self.samples.get(series);
        *value.unwrap_or_else(|| panic!("no {series} among {:#?}", self.samples))
    }

    pub(crate) fn has(&self, series: &str) -> bool {
        self.samples.contains_key(series)
    }

    /// Every family by its name, with its kind.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&str, &str)> {
        self.kinds.iter().map(|(name, kind)| (name.as_str(), kind.as_str()))
    }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// `name="value",...}`, where a value's quotes, backslashes and line ends are escaped.
fn is_labels(text: &str) -> bool {
    let mut rest = text;
    while rest != "}" {
        let Some((name, after)) = rest.split_once("=\"") else { return false };
        let mut escaped = false;
        let end = after.bytes().position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let Some(end) = end else { return false };
        if !is_name(name) {
            return false;
        }
        rest = &after[end + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None if rest == "}" => {}
            None => return false,
        }
    }
    true
}
