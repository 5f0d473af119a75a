//! A Tollgate with policies of its own, which the test rewrites while it runs.
//!
//! The documents stand in one file. A change is renamed over it, as an editor or a deployment
//! would, and is in force when [`Governed::change`] returns.

use std::fs;
use std::path::PathBuf;

use crate::http::metrics;
use crate::policies::{APPLIED, SKIPPED, wait_until};
use crate::server::Tollgate;

pub(crate) struct Governed {
    pub(crate) tollgate: Tollgate,
    folder: tempfile::TempDir,
}

impl Governed {
    pub(crate) fn start(document: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("policies.yaml");
        fs::write(&file, document).expect("it is written");
        let path = format!("policies.path={}", file.display());
        let tollgate = Tollgate::start(&[&["--set", &path], flags].concat());
        let page = metrics(&tollgate);
        assert!(page.value(APPLIED) > 0.0, "the document is good: {page:?}");
        Self { tollgate, folder }
    }

    /// Puts other documents in force.
    pub(crate) fn change(&self, document: &str) {
        let counted = |page: &crate::exposition::Page| page.value(APPLIED) + page.value(SKIPPED);
        let before = counted(&metrics(&self.tollgate));
        let beside = self.file("policies.next");
        fs::write(&beside, document).expect("it is written");
        fs::rename(beside, self.file("policies.yaml")).expect("it is renamed");
        wait_until(&self.tollgate, |page| counted(page) > before);
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
