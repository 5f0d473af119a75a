//! The settings while they are laid layer over layer: a tree that always reads as `Settings`.
//!
//! Invariant: every value in the tree was accepted by the type of its setting, for the tree is
//! read as a whole each time one is laid on, and put back when it does not read. That is some
//! microseconds a value and needs no second description of any setting.

use serde::Deserialize;
use serde_yaml::Value;

use super::{Error, Flag, Settings};

/// The embedded document: the shape of the tree, and its lowest layer.
pub(super) const DEFAULTS: &str = include_str!("../../config/tollgate.yaml");

const ENVIRONMENT_PREFIX: &str = "TOLLGATE_";

/// Whether Kubernetes sets this variable in every pod beside a service named tollgate.
fn is_of_kubernetes(name: &str, text: &str) -> bool {
    let numbered = name.strip_prefix("TOLLGATE_PORT_");
    name.starts_with("TOLLGATE_SERVICE_")
        || (name == "TOLLGATE_PORT" && text.contains("://"))
        || numbered.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// Settings whose value no complaint repeats.
const SECRETS: [&str; 2] = ["server.password", "policies.etcd.password"];

/// What serde calls its own types, and what people call them.
const EXPECTATIONS: [(&str, &str); 9] = [
    ("expected f64", "expected a number"),
    ("expected an array of length 3", "expected three numbers such as [0.8, 0.9, 0.97]"),
    ("expected u16", "expected a whole number from 0 to 65535"),
    ("expected u32", "expected a whole number from 0 to 4294967295"),
    ("expected usize", "expected a whole number"),
    ("expected a nonzero usize", "expected a whole number above 0"),
    ("expected a boolean", "expected true or false"),
    ("expected a sequence", "expected a list such as [127.0.0.1]"),
    ("invalid IP address syntax", "expected an IP address such as 127.0.0.1 or ::1"),
];

pub(super) struct Layers {
    tree: Value,
    defaults: Value,
}

impl Default for Layers {
    fn default() -> Self {
        let defaults: Value =
            serde_yaml::from_str(DEFAULTS).expect("a test reads the embedded document");
        Self { tree: defaults.clone(), defaults }
    }
}

impl Layers {
    pub(super) fn settings(&self) -> Settings {
        Settings::deserialize(&self.tree).expect("every value was accepted when it was laid on")
    }

    /// `TOLLGATE_SERVER_HTTP_PORT` is `server.http.port`; names without the prefix are not ours.
    pub(super) fn lay_environment(
        &mut self,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), Error> {
        let known: Vec<(String, String)> =
            self.paths().into_iter().map(|path| (variable(&path), path)).collect();
        for (name, text) in environment {
            let Some(rest) = name.strip_prefix(ENVIRONMENT_PREFIX) else { continue };
            if is_of_kubernetes(&name, &text) {
                continue;
            }
            let path = known.iter().find(|(variable, _)| *variable == name).map(|(_, path)| path);
            let laid = path.map_or_else(
                || {
                    let variables = known.iter().map(|(variable, _)| variable.as_str());
                    // Most often only the section was left out.
                    let end = format!("_{rest}");
                    let nearest = nearest(variables, |known| {
                        let unlike = usize::from(!known.ends_with(&end)) * name.len();
                        unlike + strsim::osa_distance(known, &name)
                    });
                    let near = nearest
                        .filter(|(_, distance)| *distance <= name.len() + rest.len() / NEAR_PART);
                    Err(format!("no such setting, {}", advice(near)))
                },
                |path| self.lay_text(path, &text),
            );
            laid.map_err(|complaint| Error::InEnvironment { name, complaint })?;
        }
        Ok(())
    }

    pub(super) fn lay_flags(&mut self, flags: &[Flag]) -> Result<(), Error> {
        for Flag { name, path, value } in flags {
            let laid = if self.section(path).is_some() {
                let keys = self.keys(path);
                Err(format!("`{path}` is a section, name one of its keys: {keys}"))
            } else {
                self.lay_text(path, value)
            };
            laid.map_err(|complaint| Error::InFlag { name: name.clone(), complaint })?;
        }
        Ok(())
    }

    /// Lays a value on the setting `path`, or says why it cannot be that.
    pub(super) fn lay(&mut self, path: &str, value: Value) -> Result<(), String> {
        let Some(place) = node_mut(&mut self.tree, path) else {
            return Err(self.unknown(path, path));
        };
        let before = std::mem::replace(place, value);
        let Err(err) = Settings::deserialize(&self.tree) else {
            return Ok(());
        };
        let refused = node_mut(&mut self.tree, path)
            .map(|place| std::mem::replace(place, before))
            .unwrap_or_default();
        let default = node(&self.defaults, path).map(shown).unwrap_or_default();
        let refused = if SECRETS.contains(&path) { "***".to_owned() } else { shown(&refused) };
        let expected = expectation(&err.to_string());
        Err(format!("it cannot be `{refused}`, {expected} (the default is `{default}`)"))
    }

    /// Whether `path` is a section: something with keys of its own.
    pub(super) fn section(&self, path: &str) -> Option<&serde_yaml::Mapping> {
        node(&self.defaults, path).and_then(Value::as_mapping)
    }

    /// The keys of a section, for a complaint.
    pub(super) fn keys(&self, path: &str) -> String {
        let keys = self.section(path).into_iter().flat_map(|section| section.keys());
        keys.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
    }

    /// The complaint about a `word` that stands for the setting `path`, which is none.
    pub(super) fn unknown(&self, path: &str, word: &str) -> String {
        let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
        let paths = self.paths();
        let sections =
            paths.iter().flat_map(|path| path.match_indices('.').map(|(at, _)| &path[..at]));
        let nearest = nearest(sections.chain(paths.iter().map(String::as_str)), |known| {
            let (its_section, its_key) = known.rsplit_once('.').unwrap_or(("", known));
            // A key of the same section is nearer than its like elsewhere.
            strsim::osa_distance(key, its_key) * 2 + usize::from(section != its_section)
        });
        let near = nearest.filter(|(_, distance)| *distance <= 1 + 2 * (key.len() / NEAR_PART));
        format!("unknown setting `{word}`, {}", advice(near))
    }

    /// Lays on what the environment or a flag says, which has no YAML types: text stays text
    /// where the setting is text, and a list is separated by commas.
    fn lay_text(&mut self, path: &str, text: &str) -> Result<(), String> {
        let value = match node(&self.defaults, path) {
            Some(Value::Sequence(list)) => {
                let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
                let is_of_numbers = list.first().is_some_and(Value::is_number);
                let read = |word| if is_of_numbers { scalar(word) } else { Value::from(word) };
                Value::Sequence(words.map(read).collect())
            }
            Some(Value::String(_)) | None => Value::from(text),
            Some(_) => scalar(text),
        };
        self.lay(path, value)
    }

    /// All settings, as `section.key`.
    fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        collect_paths(&self.defaults, "", &mut paths);
        paths
    }
}

/// A word as what it is in YAML: a number, a truth, or text.
fn scalar(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// `key` within the section `path`; the top of the document is the section "".
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn collect_paths(node: &Value, path: &str, paths: &mut Vec<String>) {
    let Some(section) = node.as_mapping() else {
        paths.push(path.to_owned());
        return;
    };
    for (key, value) in section {
        collect_paths(value, &join(path, key.as_str().unwrap_or_default()), paths);
    }
}

fn node<'tree>(tree: &'tree Value, path: &str) -> Option<&'tree Value> {
    path.split('.').filter(|key| !key.is_empty()).try_fold(tree, |node, key| node.get(key))
}

fn node_mut<'tree>(tree: &'tree mut Value, path: &str) -> Option<&'tree mut Value> {
    path.split('.').filter(|key| !key.is_empty()).try_fold(tree, |node, key| node.get_mut(key))
}

/// The variable that stands for a setting.
fn variable(path: &str) -> String {
    format!("{ENVIRONMENT_PREFIX}{}", path.replace('.', "_").to_ascii_uppercase())
}

/// A name is near another one if at most every so many-th of its letters is wrong.
const NEAR_PART: usize = 2;

/// The name that is nearest, and how far it is.
fn nearest<'a>(
    known: impl Iterator<Item = &'a str>,
    distance: impl Fn(&str) -> usize,
) -> Option<(&'a str, usize)> {
    known.map(|candidate| (candidate, distance(candidate))).min_by_key(|(_, distance)| *distance)
}

fn advice(near: Option<(&str, usize)>) -> String {
    match near {
        Some((name, _)) => format!("the nearest is `{name}`"),
        None => "`tollgate config` shows all there are".to_owned(),
    }
}

/// A value as a person would write it on one line.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(yes) => yes.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Sequence(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Mapping(_) => "a section".to_owned(),
        Value::Tagged(tagged) => shown(&tagged.value),
    }
}

/// The part of serde's message that says what would be right, in plain words.
fn expectation(message: &str) -> String {
    let expected = message.find("expected ").map_or(message, |start| &message[start..]);
    EXPECTATIONS
        .iter()
        .find(|(theirs, _)| *theirs == expected)
        .map_or(expected, |(_, ours)| ours)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_setting_has_a_variable_of_its_own() {
        let paths = Layers::default().paths();
        let variables: BTreeSet<String> = paths.iter().map(|path| variable(path)).collect();
        assert_eq!(variables.len(), paths.len());
        assert!(variables.contains("TOLLGATE_SERVER_HTTP_PORT"));
    }

    #[test]
    fn variables_of_kubernetes_are_not_ours() {
        let paths = Layers::default().paths();
        let ours = paths.iter().any(|path| is_of_kubernetes(&variable(path), "1"));
        assert!(!ours, "a setting could not be set");
        let foreign = [
            ("TOLLGATE_PORT", "tcp://10.0.0.1:6379"),
            ("TOLLGATE_PORT_6379_TCP_ADDR", "10.0.0.1"),
            ("TOLLGATE_SERVICE_HOST", "x"),
        ];
        let foreign = foreign.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert!(Layers::default().lay_environment(foreign).is_ok());
    }

    #[test]
    fn variable_without_its_section_is_told_the_whole_name() {
        let cases = [
            ("TOLLGATE_PORT", "TOLLGATE_SERVER_PORT"),
            ("TOLLGATE_HTTP_PORT", "TOLLGATE_SERVER_HTTP_PORT"),
            ("TOLLGATE_MEMORY_MAX", "TOLLGATE_ENGINE_MEMORY_MAX"),
        ];
        for (name, nearest) in cases {
            let given = [(name.to_owned(), "7100".to_owned())];
            let refused = Layers::default().lay_environment(given).expect_err(name).to_string();
            assert!(refused.contains(&format!("`{nearest}`")), "{refused}");
        }
    }

    #[test]
    fn refused_value_leaves_the_one_before() {
        let mut layers = Layers::default();
        layers.lay("server.port", Value::from(7)).expect("a port");
        layers.lay("server.port", Value::from("x")).expect_err("no port");
        assert_eq!(layers.settings().server.port, 7);
    }

    #[test]
    fn every_key_of_the_document_is_explained() {
        let mut above = "";
        let mut explained = 0;
        for line in DEFAULTS.lines() {
            let text = line.trim_start();
            if !text.starts_with('#') && text.contains(':') {
                let sentence = above.trim_start();
                assert!(
                    sentence.starts_with("# ") && sentence.ends_with('.'),
                    "`{text}` has no sentence above it"
                );
                explained += 1;
            }
            above = line;
        }
        assert!(explained > Layers::default().paths().len(), "sections count too");
    }
}
