//! How late a thread comes to what is ready.
//!
//! A timer that is due waits for its turn just as a socket that has become readable does, and the
//! system does not tell since when one is. So each thread that answers looks how late it comes to
//! a timer of [`BEAT`]: that is how long a request waits that arrives at any moment.

use crate::load::Latencies;
use crate::time::{Clock, Duration};

/// How often a thread looks.
const BEAT: Duration = Duration::from_millis(10);

/// Notes for ever how late the thread is that this runs on.
pub(super) async fn beat(late: &Latencies, clock: &Clock) {
    let mut before = clock.now();
    loop {
        tokio::time::sleep(BEAT.as_std()).await;
        let now = clock.now();
        let late_us = now.since(before).as_micros().saturating_sub(BEAT.as_micros());
        late.note(Duration::from_micros(late_us));
        before = now;
    }
}
