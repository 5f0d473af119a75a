//! The settings of the listeners: where they listen, and what one client may make grow.
//!
//! Defaults stand in `config/tollgate.yaml` and nowhere else.

use std::net::IpAddr;
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use crate::commands::Password;
use crate::size::{BytesMax, OrAuto};
use crate::time::Duration;

/// Where the HTTP port is left to us, it is this far above the RESP port.
pub(crate) const HTTP_PORT_OFFSET: u16 = 1_000;

/// The section `server`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    /// Addresses to listen on for RESP; at least one.
    pub(crate) bind: Vec<IpAddr>,
    /// Port for RESP; 0 takes a free one.
    pub(crate) port: u16,
    /// The HTTP port: metrics and health.
    pub(crate) http: HttpOptions,
    /// What AUTH must say; empty asks nobody.
    pub(crate) password: Password,
    /// What AUTH must say before commands for administrators; empty leaves them to everyone.
    pub(crate) operator_password: Password,
    /// Refuse clients from other machines while there is no password.
    pub(crate) protected_mode: bool,
    /// Who may use DEBUG.
    pub(crate) debug: DebugUsers,
    /// Clients at one time; more are told so and closed.
    pub(crate) connections_max: NonZeroUsize,
    /// A client silent for this long, in either direction, is closed; zero waits for ever.
    pub(crate) idle_timeout: Duration,
    /// Period of TCP keepalive; zero turns it off.
    pub(crate) keepalive: Duration,
    /// Threads that serve clients.
    pub(crate) workers: OrAuto<NonZeroUsize>,
    /// Connections that the kernel holds until they are accepted.
    pub(crate) backlog: u32,
    /// All bytes of one request.
    pub(crate) request_bytes_max: BytesMax,
    /// Arguments of one request, the command's name among them.
    pub(crate) args_max: NonZeroUsize,
    /// Bytes of one argument.
    pub(crate) bulk_bytes_max: BytesMax,
    /// Bytes of a request typed as a line, and of the head of any other.
    pub(crate) inline_bytes_max: BytesMax,
    /// Requests of one client answered in one turn; then the other clients have theirs.
    pub(crate) pipeline_max: NonZeroUsize,
    /// How long one client is answered in one turn; zero for as long as it takes.
    pub(crate) turn_max: Duration,
    /// Replies that a slow reader may pile up beyond the one being sent before it is closed.
    pub(crate) output_bytes_max: BytesMax,
    /// Pushes that may wait for a slow reader before it is closed.
    pub(crate) push_bytes_max: BytesMax,
    /// Channels and patterns of one client.
    pub(crate) subscriptions_max: NonZeroUsize,
    /// How long a shutdown waits for replies under way.
    pub(crate) drain_timeout: Duration,
}

/// Clients that may use DEBUG. It is read by its name in the settings: nothing else needs it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DebugUsers {
    Nobody,
    /// Those of this machine.
    Local,
    Everyone,
}

/// The section `server.http`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpOptions {
    /// Listen at all.
    pub(crate) enabled: bool,
    /// Address to listen on.
    pub(crate) bind: IpAddr,
    /// Port; auto is the RESP port plus 1000.
    pub(crate) port: OrAuto<u16>,
}
