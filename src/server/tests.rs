//! What the hub promises to who counts and who asks; and a hub for the tests of other rooms.

use std::sync::Arc;

use super::hub::{Hub, Identity, Readiness, Traffic};
use super::peer::PeerState;
use crate::commands::{Initial, Runtime, Service, Session};
use crate::engine::Engine;
use crate::telemetry::Events;
use crate::time::{Clock, Timestamp};

/// A hub without connections, at the epoch.
pub(crate) fn hub(password: &str, protected: bool) -> Hub {
    let initial = Initial { password: password.to_owned(), protected, ..Initial::small() };
    hub_of(initial, Clock::manual(Timestamp::EPOCH))
}

/// A hub without connections, with settings of its own.
pub(super) fn hub_of(initial: Initial, clock: Clock) -> Hub {
    let service = Service::new(Engine::new(4, 1), Runtime::new(initial), clock.now());
    let identity = Identity {
        run_id: "0".repeat(40),
        config_file: String::new(),
        tcp_port: 6379,
        http_port: None,
        workers: 1,
        settings: Vec::new(),
    };
    Hub::new(Arc::new(service), clock, identity, Events::new())
}

#[test]
fn traffic_never_goes_down_while_connections_end() {
    const CONNECTIONS: u64 = 2_000;
    let hub = Arc::new(hub("", true));
    let other = Arc::clone(&hub);
    let ending = std::thread::spawn(move || {
        let address = ([127, 0, 0, 1], 1).into();
        for id in 0..CONNECTIONS {
            let session = Session::new(id, true);
            let peer = PeerState::new((address, address), 0, session, Timestamp::EPOCH);
            peer.received(3);
            peer.sent(5);
            other.admit(id, Arc::new(peer));
            other.forget(id);
        }
    });
    let mut latest = Traffic::default();
    while !ending.is_finished() {
        let traffic = hub.traffic();
        assert!(traffic.input_bytes >= latest.input_bytes, "{traffic:?} after {latest:?}");
        assert!(traffic.output_bytes >= latest.output_bytes, "{traffic:?} after {latest:?}");
        latest = traffic;
    }
    ending.join().expect("it does not panic");
    assert_eq!(hub.traffic().input_bytes, 3 * CONNECTIONS);
    assert_eq!(hub.traffic().output_bytes, 5 * CONNECTIONS);
}

#[test]
fn readiness_ends_with_the_wish_to_stop_and_does_not_come_back() {
    let hub = hub("", true);
    assert_eq!(hub.readiness(), Readiness::Starting);
    hub.open();
    assert_eq!(hub.readiness(), Readiness::Ready);
    hub.stop();
    hub.open();
    assert_eq!(hub.readiness(), Readiness::Draining);
}
