//! How much of what comes may pass: one interval in, the admitted share out.
//!
//! A rejector looks at what the last interval brought and says which share of the requests the
//! next one may admit. Which requests those are is not its matter: the [priorities](super::Cut)
//! decide. All of them are fed with the same figures and can stand for one another.

use crate::time::Duration;

use super::dagor::Dagor;
use super::feed_forward::FeedForward;
use super::pid::Pid;

/// What one interval brought. Counts are of the interval, unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    pub length: Duration,
    /// Requests that came, before any was refused.
    pub offered: u64,
    /// Requests that passed the rejector and went to the queue or straight to work.
    pub admitted: u64,
    /// Requests whose work began.
    pub started: u64,
    /// Requests waiting at its end.
    pub queued: u64,
    /// Requests in work, averaged over its time.
    pub in_flight: f64,
    /// Places for work that were free at its end.
    pub free: u64,
    /// Requests that may be in work at once.
    pub in_flight_max: u64,
    /// The mean wait of the requests whose work began.
    pub queue_delay: Duration,
}

/// Decides which share of the requests may pass.
pub trait Rejector: std::fmt::Debug + Send {
    /// Looks at an interval that has ended and tells the share to admit in the next, 0.0 to 1.0.
    fn observe(&mut self, interval: &Interval) -> f64;
}

/// Which rejector is at work.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum RejectorKind {
    /// Capacity over offered load: [`FeedForward`].
    #[default]
    FeedForward,
    /// A control loop on the queue's growth: [`Pid`].
    Pid,
    /// Steps down by a twentieth while the queue is slow: [`Dagor`].
    Dagor,
    /// Everything passes.
    Off,
}

impl RejectorKind {
    pub const ALL: [Self; 4] = [Self::FeedForward, Self::Pid, Self::Dagor, Self::Off];

    /// `feed_forward`, `pid`, `dagor` or `off`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FeedForward => "feed_forward",
            Self::Pid => "pid",
            Self::Dagor => "dagor",
            Self::Off => "off",
        }
    }

    /// Reads a name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == word)
    }

    /// A rejector of this kind that has seen nothing yet.
    pub fn build(self) -> Box<dyn Rejector> {
        match self {
            Self::FeedForward => Box::new(FeedForward::new()),
            Self::Pid => Box::new(Pid::default()),
            Self::Dagor => Box::new(Dagor::default()),
            Self::Off => Box::new(Open),
        }
    }
}

/// Admits everything.
#[derive(Clone, Copy, Debug)]
struct Open;

impl Rejector for Open {
    fn observe(&mut self, _: &Interval) -> f64 {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rejector_admits_all_of_nothing_and_stays_a_share() {
        let odd = [
            Interval::default(),
            Interval { offered: u64::MAX, in_flight: f64::NAN, ..Interval::default() },
            Interval { queued: u64::MAX, in_flight_max: 1, ..Interval::default() },
            Interval { started: u64::MAX, in_flight: f64::INFINITY, ..Interval::default() },
            Interval { admitted: u64::MAX, in_flight_max: u64::MAX, ..Interval::default() },
        ];
        for kind in RejectorKind::ALL {
            assert_eq!(RejectorKind::parse(kind.name()), Some(kind));
            let mut rejector = kind.build();
            assert!((rejector.observe(&odd[0]) - 1.0).abs() < f64::EPSILON, "{kind:?}");
            for interval in odd.iter().cycle().take(100) {
                let admit = rejector.observe(interval);
                assert!((0.0..=1.0).contains(&admit), "{kind:?}: {admit} of {interval:?}");
            }
        }
        assert_eq!(RejectorKind::parse("codel"), None);
    }
}
