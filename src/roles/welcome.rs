//! What a server says when it has started: to the log, and to the person who sits before it.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tracing::{info, warn};

use crate::config::Settings;
use crate::server::{Hub, Identity, is_elsewhere};
use crate::telemetry::LogFormat;

pub(super) fn tell(settings: &Settings, hub: &Hub) {
    let Identity { tcp_port: port, http_port, workers, .. } = *hub.identity();
    let engine = hub.service().engine();
    info!(
        version = env!("CARGO_PKG_VERSION"),
        port,
        http_port,
        workers,
        shards = engine.shards(),
        memory_max_bytes = engine.memory_max(),
        "ready"
    );
    let beyond = settings.server.bind.iter().any(|address| is_elsewhere(*address));
    if beyond && settings.server.password.secret().is_none() {
        if settings.server.protected_mode {
            warn!("without a password, clients on other machines are turned away");
        } else {
            warn!("without a password, whoever reaches this server may use it");
        }
    }
    // Every line of a log for machines is an object.
    if settings.log.format == LogFormat::Text {
        let http = http_port.map(|port| reachable(settings.server.http.bind, port));
        // Who closed the terminal does not miss the hint.
        drop(std::io::stderr().lock().write_all(welcome(port, http).as_bytes()));
    }
}

fn welcome(port: u16, http: Option<SocketAddr>) -> String {
    let resp = format!(
        "Tollgate listens on port {port}. Try it:  redis-cli -p {port} RL.LIMIT user:42 5 10s\n"
    );
    let http = http.map(|http| {
        let port = http.port();
        format!("Metrics and health are on port {port}:  curl http://{http}/metrics\n")
    });
    resp + &http.unwrap_or_default()
}

/// Where this machine reaches what listens on `host`.
fn reachable(host: IpAddr, port: u16) -> SocketAddr {
    let host = match host {
        IpAddr::V4(host) if host.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(host) if host.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        host => host,
    };
    SocketAddr::new(host, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn person_is_told_both_ports_and_how_to_try_them() {
        let http = reachable(Ipv6Addr::UNSPECIFIED.into(), 7379);
        let text = welcome(6379, Some(http));
        assert!(text.contains("redis-cli -p 6379 RL.LIMIT"), "{text}");
        assert!(text.ends_with("curl http://[::1]:7379/metrics\n"), "{text}");
        assert!(!welcome(6379, None).contains("curl"));
    }
}
