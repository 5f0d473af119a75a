//! What must hold between settings, each of which is right by itself.

use crate::commands::Password;
use crate::server::{HTTP_PORT_OFFSET, Options};
use crate::size::OrAuto;
use crate::watch::EtcdOptions;

use super::{Error, Settings};
use crate::time::Duration;

/// The counts of samples are made for twice a second; much less often, nothing would be seen.
const SAMPLE_PERIOD_MAX: Duration = Duration::from_secs(10);

pub(super) fn prove(settings: &Settings) -> Result<(), Error> {
    let proofs = [addresses, passwords, http, load, policies, ports, sizes, spans];
    let complaint = proofs.into_iter().find_map(|proof| proof(settings));
    complaint.map_or(Ok(()), |complaint| Err(Error::Relation(complaint)))
}

fn addresses(settings: &Settings) -> Option<String> {
    settings.server.bind.is_empty().then(|| {
        "server.bind is empty, so that nobody could connect: name an address such as 127.0.0.1"
            .to_owned()
    })
}

fn passwords(settings: &Settings) -> Option<String> {
    let (server, etcd) = (&settings.server, &settings.policies.etcd);
    let all = [
        ("server.password", &server.password),
        ("server.operator_password", &server.operator_password),
        ("policies.etcd.password", &etcd.password),
    ];
    let is_shown = |password: &Password| password.secret() == Some("***");
    if let Some((name, _)) = all.iter().find(|(_, password)| is_shown(password)) {
        return Some(format!(
            "{name} is `***`, which `tollgate config` prints in place of a password: write the \
             password itself"
        ));
    }
    let is_same = server.password.secret().is_some() && server.password == server.operator_password;
    is_same.then(|| {
        "server.operator_password is the same as server.password, so that every client would be \
         an operator: give them one each"
            .to_owned()
    })
}

fn load(settings: &Settings) -> Option<String> {
    let load = &settings.load;
    if load.sample_period.is_zero() || load.sample_period > SAMPLE_PERIOD_MAX {
        return Some(format!(
            "load.sample_period is {}: write more than 0s and at most {SAMPLE_PERIOD_MAX}",
            load.sample_period
        ));
    }
    if load.queue_timeout.is_zero() {
        return Some("load.queue_timeout is 0, so that any wait is too long: write 100ms".into());
    }
    if load.retry_after_min > load.retry_after_max {
        return Some(format!(
            "load.retry_after_min ({}) is above load.retry_after_max ({}): swap them",
            load.retry_after_min, load.retry_after_max
        ));
    }
    if let Err(complaint) = load.thresholds() {
        return Some(format!("load.enter, exit, up and down do not go together: {complaint}"));
    }
    load.declared().err().map(|complaint| format!("load.signals: {complaint}"))
}

fn policies(settings: &Settings) -> Option<String> {
    let policies = &settings.policies;
    if policies.poll_period.is_zero() {
        return Some("policies.poll_period is 0, which never rests: write at least 1s".to_owned());
    }
    if !policies.etcd.enabled {
        return None;
    }
    if let Some(path) = policies.path() {
        return Some(format!(
            "policies.etcd.enabled is true and policies.path is {}: policies come from one place, \
             so leave one of the two out",
            path.display()
        ));
    }
    etcd(&policies.etcd)
}

fn etcd(options: &EtcdOptions) -> Option<String> {
    if options.endpoints.is_empty() {
        return Some(
            "policies.etcd.endpoints is empty: name a member such as http://127.0.0.1:2379"
                .to_owned(),
        );
    }
    if options.prefix.is_empty() {
        return Some(
            "policies.etcd.prefix is empty, so that every key of etcd would be a policy: write a \
             beginning such as /policies/"
                .to_owned(),
        );
    }
    let tls = &options.tls;
    if tls.certificate.as_os_str().is_empty() != tls.key.as_os_str().is_empty() {
        return Some(
            "of policies.etcd.tls.certificate and policies.etcd.tls.key one is empty: our \
             certificate needs its key, so name both or neither"
                .to_owned(),
        );
    }
    options.endpoints.iter().find_map(|endpoint| {
        let is_encrypted = endpoint.starts_with("https://");
        if !is_encrypted && !endpoint.starts_with("http://") {
            return Some(format!(
                "policies.etcd.endpoints holds `{endpoint}`: begin it with http:// or https://"
            ));
        }
        (is_encrypted && tls.ca.as_os_str().is_empty()).then(|| {
            format!(
                "policies.etcd.endpoints holds `{endpoint}` and policies.etcd.tls.ca is empty: \
                 name the file with the certificates that sign for the cluster"
            )
        })
    })
}

fn http(settings: &Settings) -> Option<String> {
    let Options { http, operator_password, .. } = &settings.server;
    let is_far = http.enabled && !http.bind.is_loopback();
    (is_far && operator_password.secret().is_none()).then(|| {
        format!(
            "server.http.bind is {}, where other machines may reach it, and there is no \
             server.operator_password: set one, or bind 127.0.0.1",
            http.bind
        )
    })
}

fn ports(settings: &Settings) -> Option<String> {
    let server = &settings.server;
    if !server.http.enabled || server.port == 0 {
        return None;
    }
    match server.http.port {
        OrAuto::Auto => server.port.checked_add(HTTP_PORT_OFFSET).is_none().then(|| {
            format!(
                "server.http.port is auto, which is server.port ({}) plus {HTTP_PORT_OFFSET} and \
                 past 65535: name a port, or set server.http.enabled to false",
                server.port
            )
        }),
        OrAuto::Exactly(port) => (port == server.port).then(|| {
            format!("server.http.port and server.port are both {port}: they need one each")
        }),
    }
}

fn sizes(settings: &Settings) -> Option<String> {
    let server = &settings.server;
    (server.request_bytes_max.bytes() < server.bulk_bytes_max.bytes()).then(|| {
        format!(
            "server.request_bytes_max ({}) is less than server.bulk_bytes_max ({}), so that no \
             argument of that size could arrive: raise the first or lower the second",
            server.request_bytes_max, server.bulk_bytes_max
        )
    })
}

fn spans(settings: &Settings) -> Option<String> {
    let engine = &settings.engine;
    if engine.expiry_period.is_zero() {
        return Some("engine.expiry_period is 0, which never rests: write at least 1ms".to_owned());
    }
    (engine.expiry_budget >= engine.expiry_period).then(|| {
        format!(
            "engine.expiry_budget ({}) leaves nothing of engine.expiry_period ({}) for requests: \
             make it shorter",
            engine.expiry_budget, engine.expiry_period
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Flag;

    fn complaint(pairs: &[(&str, &str)]) -> String {
        let flags: Vec<Flag> = pairs
            .iter()
            .map(|&(path, value)| Flag {
                name: "--set".into(),
                path: path.into(),
                value: value.into(),
            })
            .collect();
        Settings::load(None, [], &flags).map_or_else(|err| err.to_string(), |_| String::new())
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        let etcd = ("policies.etcd.enabled", "true");
        let signal = "lag systemic 1 1s,lag systemic 2 1s";
        let rows: [(&[(&str, &str)], &str); 26] = [
            (&[("load.sample_period", "0s")], "load.sample_period is 0s: write more than 0s"),
            (&[("load.sample_period", "1m")], "load.sample_period is 1m: write more than 0s"),
            (&[("load.queue_timeout", "0s")], "load.queue_timeout is 0"),
            (&[("load.retry_after_min", "2s")], "load.retry_after_min (2s) is above"),
            (&[("load.enter", "0.8,0.7,0.9")], "load.enter, exit, up and down do not go together"),
            (&[("load.exit", "0.8,0.85,0.9")], "load.enter, exit, up and down do not go together"),
            (&[("load.enter", "0.8,0.9,.nan")], "load.enter, exit, up and down do not go together"),
            (&[("load.down", "0")], "load.enter, exit, up and down do not go together: 0 is no"),
            (&[("load.signals", signal)], "load.signals: signal `lag` is declared twice"),
            (&[("policies.etcd.password", "***")], "policies.etcd.password is `***`"),
            (&[("policies.poll_period", "0s")], "policies.poll_period is 0"),
            (&[etcd, ("policies.path", "a")], "policies.etcd.enabled is true and policies.path"),
            (&[etcd, ("policies.etcd.endpoints", "")], "policies.etcd.endpoints is empty"),
            (&[etcd, ("policies.etcd.endpoints", "a:1")], "policies.etcd.endpoints holds `a:1`"),
            (&[etcd, ("policies.etcd.endpoints", "https://a:1")], "policies.etcd.endpoints holds"),
            (&[etcd, ("policies.etcd.tls.key", "a")], "of policies.etcd.tls.certificate and"),
            (&[("server.operator_password", "***")], "server.operator_password is `***`"),
            (
                &[("server.operator_password", "a"), ("server.password", "a")],
                "server.operator_password is the same as server.password",
            ),
            (&[("server.http.bind", "0.0.0.0")], "server.http.bind is 0.0.0.0, where other"),
            (&[("server.http.bind", "192.0.2.1")], "server.http.bind is 192.0.2.1, where"),
            (&[("server.bind", "")], "server.bind is empty"),
            (&[("server.port", "65000")], "server.http.port is auto"),
            (&[("server.http.port", "6379")], "server.http.port and server.port are both 6379"),
            (&[("server.request_bytes_max", "1mb")], "server.request_bytes_max (1mb) is less"),
            (&[("engine.expiry_period", "0s")], "engine.expiry_period is 0"),
            (&[("engine.expiry_budget", "100ms")], "engine.expiry_budget (100ms) leaves nothing"),
        ];
        for (pairs, beginning) in rows {
            let complaint = complaint(pairs);
            assert!(complaint.starts_with(beginning), "{pairs:?}: {complaint}");
        }
    }

    #[test]
    fn settings_at_their_bounds_are_taken() {
        let rows: [&[(&str, &str)]; 11] = [
            &[("load.retry_after_min", "1500ms")],
            &[("load.sample_period", "1ms"), ("load.down", "1")],
            &[("load.signals", "lag per_tenant 2.5 30s,pool systemic 64 1s")],
            &[("policies.etcd.enabled", "true"), ("policies.etcd.endpoints", "http://a:1")],
            &[("server.http.bind", "0.0.0.0"), ("server.operator_password", "a")],
            &[("server.http.bind", "0.0.0.0"), ("server.http.enabled", "false")],
            &[("server.http.bind", "::1")],
            &[("server.port", "64535")],
            &[("server.port", "65535"), ("server.http.enabled", "false")],
            &[("server.port", "0"), ("server.http.port", "0")],
            &[("server.request_bytes_max", "512mb")],
        ];
        for pairs in rows {
            assert_eq!(complaint(pairs), "", "{pairs:?}");
        }
    }
}
