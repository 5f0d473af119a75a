//! The members of an etcd cluster, tried one after another.
//!
//! A connection goes to one member. What fails there goes on with the next, so a member that is
//! dead costs one try, and which one is talked to is never left to chance. Files of certificates
//! are read for each connection, so that new ones are taken up.

use std::path::Path;

use etcd_client::{Certificate, Client, ConnectOptions, Error, Identity, TlsOptions};
use tokio::time::timeout;

use super::Fault;
use super::disk;
use super::options::{EtcdOptions, TlsOptions as TlsFiles, given};
use crate::telemetry::PolicyFault;
use crate::time::Duration;

/// Time to open a connection and log in.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(3);

/// Time for one page of documents, for a watch to begin, or for one write.
pub(super) const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);

/// A member takes offence at shorter ones and ends the connection: it asks for five seconds.
const KEEP_ALIVE_PERIOD: Duration = Duration::from_secs(10);

/// Without an answer to a keep-alive for this long, the member counts as gone.
const KEEP_ALIVE_PATIENCE: Duration = Duration::from_secs(3);

/// A chain of certificates has some kilobytes.
const PEM_BYTES_MAX: usize = 1 << 20;

// Numbers of gRPC.
const INVALID_ARGUMENT: i32 = 3;
const PERMISSION_DENIED: i32 = 7;
pub(super) const OUT_OF_RANGE: i32 = 11;
const UNAUTHENTICATED: i32 = 16;

#[derive(Clone, Debug)]
pub(super) struct Members {
    options: EtcdOptions,
    /// Which endpoint is tried next.
    next: usize,
}

impl Members {
    pub(super) fn new(options: EtcdOptions) -> Self {
        Self { options, next: 0 }
    }

    pub(super) fn prefix(&self) -> &str {
        &self.options.prefix
    }

    pub(super) fn count(&self) -> usize {
        self.options.endpoints.len()
    }

    /// Goes on with the next member.
    pub(super) fn pass(&mut self) {
        self.next = (self.next + 1) % self.count().max(1);
    }

    /// The member that is tried, for a person.
    pub(super) fn name(&self) -> &str {
        self.options.endpoints.get(self.next).map_or("", String::as_str)
    }

    pub(super) async fn connect(&self) -> Result<Client, Fault> {
        let options = self.connect_options().map_err(|text| self.unreachable(&text))?;
        let connecting = Client::connect([self.name()], Some(options));
        match timeout(CONNECT_TIME_MAX.as_std(), connecting).await {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => Err(self.fault(&error)),
            Err(_) => Err(self.unreachable("no answer")),
        }
    }

    fn connect_options(&self) -> Result<ConnectOptions, String> {
        let mut options = ConnectOptions::new()
            .with_connect_timeout(CONNECT_TIME_MAX.as_std())
            .with_keep_alive(KEEP_ALIVE_PERIOD.as_std(), KEEP_ALIVE_PATIENCE.as_std())
            .with_keep_alive_while_idle(true)
            // A member that has lost its leader is no source of what is true now.
            .with_require_leader(true)
            .with_auto_token_refresh(true);
        if !self.options.user.is_empty() {
            let password = self.options.password.secret().unwrap_or_default();
            options = options.with_user(&self.options.user, password);
        }
        if self.name().starts_with("https://") {
            options = options.with_tls(tls(&self.options.tls)?);
        }
        Ok(options)
    }

    pub(super) fn unreachable(&self, text: &str) -> Fault {
        let text = format!("ask {}: {text}", self.name());
        Fault::new(PolicyFault::Unreachable, text)
    }

    /// What the failure of a request to the member means.
    pub(super) fn fault(&self, error: &Error) -> Fault {
        let reason = match status_of(error) {
            Some(INVALID_ARGUMENT | PERMISSION_DENIED | UNAUTHENTICATED) => PolicyFault::Denied,
            _ => PolicyFault::Unreachable,
        };
        Fault::new(reason, format!("ask {}: {}", self.name(), with_causes(error)))
    }
}

/// The number by which a member says what is wrong, where one has answered.
pub(super) fn status_of(error: &Error) -> Option<i32> {
    match error {
        Error::GRpcStatus(status) => Some(status.code() as i32),
        _ => None,
    }
}

/// The text of an error, with what only its causes say: "transport error" helps nobody.
fn with_causes(error: &Error) -> String {
    let outer: &dyn std::error::Error = match error {
        Error::GRpcStatus(status) => status,
        Error::TransportError(error) => error,
        other => other,
    };
    let mut text = match error {
        Error::GRpcStatus(status) => status.message().to_owned(),
        other => other.to_string(),
    };
    let mut cause = outer.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = inner.source();
    }
    text
}

fn tls(files: &TlsFiles) -> Result<TlsOptions, String> {
    let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(pem(&files.ca)?));
    if let (Some(certificate), Some(key)) = (given(&files.certificate), given(&files.key)) {
        tls = tls.identity(Identity::from_pem(pem(certificate)?, pem(key)?));
    }
    if !files.server_name.is_empty() {
        tls = tls.domain_name(&files.server_name);
    }
    Ok(tls)
}

fn pem(path: &Path) -> Result<Vec<u8>, String> {
    disk::read(path, PEM_BYTES_MAX).map_err(|error| format!("read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use crate::watch::living_member::members;

    #[test]
    fn every_member_has_its_turn() {
        let mut members = members(["http://a".to_owned(), "http://b".to_owned()]);
        let mut names = Vec::new();
        for _ in 0..3 {
            names.push(members.name().to_owned());
            members.pass();
        }
        assert_eq!(names, ["http://a", "http://b", "http://a"]);
    }
}
