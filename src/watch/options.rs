//! The settings of policies: where they come from, and what is met where there is none.
//!
//! Defaults stand in `config/tollgate.yaml` and nowhere else.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::commands::Password;
use crate::policy::{self, Unmatched};
use crate::size::BytesMax;
use crate::time::Duration;

/// The section `policies`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    /// Folder or file of documents; empty reads none.
    pub(crate) path: PathBuf,
    /// How often `path` is looked over, whether or not the system has told of a change.
    pub(crate) poll_period: Duration,
    /// The answer to a request that no rule matches.
    pub(crate) unmatched: Unmatched,
    /// Bytes of one document.
    pub(crate) document_bytes_max: BytesMax,
    /// File that keeps the last good documents; empty keeps none.
    pub(crate) last_good: PathBuf,
    /// Policies from etcd.
    pub(crate) etcd: EtcdOptions,
}

/// The section `policies.etcd`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EtcdOptions {
    /// Read policies from etcd at all.
    pub(crate) enabled: bool,
    /// Members of the cluster, each as `http://HOST:PORT` or `https://HOST:PORT`; at least one.
    pub(crate) endpoints: Vec<String>,
    /// What the keys of policies begin with.
    pub(crate) prefix: String,
    /// Whom to log in as; empty does not.
    pub(crate) user: String,
    pub(crate) password: Password,
    /// How long a start waits for the first documents.
    pub(crate) start_wait: Duration,
    /// Encryption, for endpoints with `https://`.
    pub(crate) tls: TlsOptions,
}

/// The section `policies.etcd.tls`: PEM files, each empty where there is none.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsOptions {
    /// Certificates of who may sign for the cluster.
    pub(crate) ca: PathBuf,
    /// Our own certificate, where the cluster asks for one.
    pub(crate) certificate: PathBuf,
    /// The key of our certificate.
    pub(crate) key: PathBuf,
    /// The name in the cluster's certificate; empty takes the host of the endpoint.
    pub(crate) server_name: String,
}

impl Options {
    pub(crate) fn path(&self) -> Option<&Path> {
        given(&self.path)
    }

    /// What they say to who compiles documents.
    pub(crate) fn for_policies(&self) -> policy::Options {
        policy::Options {
            unmatched: self.unmatched,
            document_bytes_max: self.document_bytes_max.bytes(),
        }
    }

    pub(crate) fn last_good(&self) -> Option<&Path> {
        given(&self.last_good)
    }
}

/// A setting that is a path, or empty for none.
pub(super) fn given(path: &Path) -> Option<&Path> {
    Some(path).filter(|path| !path.as_os_str().is_empty())
}
