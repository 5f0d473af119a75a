//! From the text of a document to its tenants, or to a complaint with its place.
//!
//! A document is taken as a whole: one wrong word refuses all its tenants. Its size is looked at
//! before anything else.

use std::collections::HashMap;
use std::fmt::Write;

use crate::size::Bytes;
use crate::time::Timestamp;
use crate::yaml::{self, Complaint, Step, locate};

use super::document::Document;
use super::index::Index;
use super::make::{Problem, make};
use super::options::Options;
use super::tenant::Terms;

/// A tenant that is not in force yet.
pub(super) type Draft = (Terms, Index);

/// A good document.
pub(super) struct Compiled {
    /// Whether it is a list `tenants:`, not the fields of a single one.
    pub(super) is_list: bool,
    pub(super) drafts: Vec<Draft>,
}

/// The tenants of a document, not in force. `tenant` is the name that its source gives to a
/// single one.
pub(crate) fn parse(
    text: &[u8],
    tenant: Option<&str>,
    options: &Options,
    now: Timestamp,
) -> Result<Vec<Terms>, Complaint> {
    let compiled = compile(text, tenant, options.document_bytes_max, now)?;
    Ok(compiled.drafts.into_iter().map(|(terms, _)| terms).collect())
}

/// The tenants of a document. `tenant` is the name that its source gives to a single tenant.
pub(super) fn compile(
    text: &[u8],
    tenant: Option<&str>,
    bytes_max: Bytes,
    now: Timestamp,
) -> Result<Compiled, Complaint> {
    if text.len() as u64 > bytes_max.as_u64() {
        let text = format!("the document has {} bytes, more than {bytes_max}", text.len());
        return Err(Complaint { line: 1, column: 1, text });
    }
    let text = std::str::from_utf8(text).map_err(|err| {
        let wrong = "the document is no text: here stands what is not UTF-8";
        Complaint::at_byte(text, err.valid_up_to(), wrong.to_owned())
    })?;
    match yaml::read(text)? {
        Document::One(document) => {
            let draft = make(&document, tenant, now);
            draft
                .map(|draft| Compiled { is_list: false, drafts: vec![draft] })
                .map_err(|problem| placed(text, &[], problem))
        }
        Document::Many(document) => {
            let mut drafts: Vec<Draft> = Vec::with_capacity(document.tenants.len());
            let mut known: HashMap<Box<str>, usize> = HashMap::new();
            for (at, tenant) in document.tenants.iter().enumerate() {
                let path = [Step::Key("tenants".to_owned()), Step::Index(at)];
                let draft =
                    make(tenant, None, now).map_err(|problem| placed(text, &path, problem))?;
                if let Some(earlier) = known.insert(draft.0.name.clone(), at) {
                    return Err(second_of_name(text, &draft.0.name, at, earlier));
                }
                drafts.push(draft);
            }
            Ok(Compiled { is_list: true, drafts })
        }
    }
}

fn second_of_name(text: &str, name: &str, at: usize, earlier: usize) -> Complaint {
    let path = |at| vec![Step::Key("tenants".to_owned()), Step::Index(at)];
    let problem = Problem {
        path: [path(at), vec![Step::Key("name".to_owned())]].concat(),
        other: Some(path(earlier)),
        text: format!("a second tenant has the name `{name}`"),
    };
    placed(text, &[], problem)
}

/// A problem of the tenant at `tenant`, with its place and its path in front.
fn placed(text: &str, tenant: &[Step], problem: Problem) -> Complaint {
    let path = [tenant, &problem.path].concat();
    let (line, column) = locate(text, &path);
    let mut complaint = problem.text;
    if !path.is_empty() {
        complaint = format!("{}: {complaint}", shown(&path));
    }
    if let Some(other) = problem.other {
        let (line, _) = locate(text, &[tenant, &other].concat());
        complaint = format!("{complaint} (the first stands at line {line})");
    }
    Complaint { line, column, text: complaint }
}

/// A path as the YAML library shows it: `tenants[0].rules[2].limit`.
fn shown(path: &[Step]) -> String {
    let mut shown = String::new();
    for step in path {
        let written = match step {
            Step::Key(key) if shown.is_empty() => write!(shown, "{key}"),
            Step::Key(key) => write!(shown, ".{key}"),
            Step::Index(at) => write!(shown, "[{at}]"),
        };
        written.expect("a String takes what is written");
    }
    shown
}
