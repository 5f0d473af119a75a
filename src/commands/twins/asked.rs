//! What the tests of equality ask: requests as they are usual, and all that is unusual, other
//! commands on the same keys, and time that passes.

use proptest::prelude::*;
use proptest::sample::select;

use crate::protocol::Resp;

/// What happens next.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Ask(Vec<String>, Resp),
    Command(String),
    Wait(u64),
}

fn step(args: BoxedStrategy<Vec<String>>) -> impl Strategy<Value = Step> {
    let commands = [
        "DEL k",
        "SET k 5",
        "SET k 0",
        "SET k -3",
        "SET k 7 PX 1500",
        "SET k 1.5",
        "SET k 010",
        "SET k 9007199254740993",
        "SET k 9223372036854775807 PX 900",
        "SET k x",
        "PERSIST k",
        "APPEND k 1",
        "RPUSH k 1700000000.5 1699999999",
        "RPUSH k a",
        "HSET k f v",
        "ZADD k 1 m",
        "ZADD k 1700000000900000 m 1700000001900000.5 n",
        "ZADD k 1700000000500 m 1700000002000 a",
        "ZADD k 1700000000700.5 c +inf z",
        "ZADD k 1700000000900 a 1700000001000 c 1700000001000 d",
        "HSET k window 1 count x",
        "HSET k window 1700000000 count 3 before 2",
        "HSET k level 1500000 at 1700000000000000",
        "HSET k level -5 at 7",
        "PEXPIRE k 700",
        "SET k 1700000000900000",
        "SET k 1700000009000000 PX 800",
        "SADD k m",
        "SET k 1700000000333.25 PX 2000",
        "SET k -35660799.5",
        "HSET k tokens 2 last_refreshed 1699999998",
        "HSET k tokens 2",
        "ZADD k 1700000000100 1700000000100 1700000000200.5 1700000000200.5",
        "ZADD k -5 7",
        "SET k2 3 PX 1500",
        "SET k2 2",
        "SET k2 x",
        "DEL k2",
    ];
    prop_oneof![
        8 => (args, select(vec![Resp::V2, Resp::V3]))
            .prop_map(|(args, resp)| Step::Ask(args, resp)),
        2 => select(commands.map(str::to_owned).to_vec()).prop_map(Step::Command),
        3 => prop_oneof![0_u64..2_000_000, 0_u64..3_000].prop_map(Step::Wait),
    ]
}

/// Small whole numbers mostly, and all that is unusual.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => (0_i64..9).prop_map(|number| number.to_string()),
        6 => (1_i64..3_000).prop_map(|number| number.to_string()),
        1 => any::<i64>().prop_map(|number| number.to_string()),
        1 => select(["", "-1", "1.5", "1e3", "0x10", " 7", "x", "nan", "-0", "1125899906842625"]
            .map(str::to_owned).to_vec()),
    ]
}

pub(super) fn steps(args: BoxedStrategy<Vec<String>>) -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(args), 1..40)
}

pub(super) fn numbers(least: usize, most: usize) -> BoxedStrategy<Vec<String>> {
    proptest::collection::vec(number(), least..=most).boxed()
}

/// Points or an amount, and a number of seconds.
pub(super) fn points_and_seconds() -> BoxedStrategy<Vec<String>> {
    let points = prop_oneof![number(), (-5_i64..5).prop_map(|number| number.to_string())];
    proptest::collection::vec(points, 0..5).boxed()
}

/// Mostly so that units of two windows meet.
pub(super) fn limit_window_cost() -> BoxedStrategy<Vec<String>> {
    let limit = prop_oneof![8 => (0_i64..9).prop_map(|limit| limit.to_string()), 1 => number()];
    let window = select(["1000", "700", "2500", "1"].map(str::to_owned).to_vec());
    let window = prop_oneof![8 => window, 1 => number()];
    let usual = (limit, window, (0_i64..4).prop_map(|cost| cost.to_string()));
    let usual = usual.prop_map(|(limit, window, cost)| vec![limit, window, cost]);
    prop_oneof![4 => usual, 1 => numbers(0, 4)].boxed()
}

/// Limit, milliseconds, and a name.
pub(super) fn lease() -> BoxedStrategy<Vec<String>> {
    let lease = select(["0", "500", "1000", "2000"].map(str::to_owned).to_vec());
    let lease = prop_oneof![6 => lease, 1 => number()];
    let name = select(["a", "b", "c", "d", "m", ""].map(str::to_owned).to_vec());
    let limit = prop_oneof![6 => (0_i64..4).prop_map(|limit| limit.to_string()), 1 => number()];
    let usual = (limit, lease, name).prop_map(|(limit, lease, name)| vec![limit, lease, name]);
    prop_oneof![8 => usual, 1 => numbers(0, 4)].boxed()
}

pub(super) fn fastify() -> BoxedStrategy<Vec<String>> {
    let switch = || select(["true", "false", ""].map(str::to_owned).to_vec());
    let max = (0_i64..4).prop_map(|number| number.to_string());
    (number(), max, switch(), switch())
        .prop_map(|(window, max, goes_on, backs_off)| vec![window, max, goes_on, backs_off])
        .boxed()
}

/// A caller's clock, limit, seconds and amount.
pub(super) fn moving_window() -> BoxedStrategy<Vec<String>> {
    let moment = prop_oneof![
        (0_u64..5_000_000)
            .prop_map(|more| format!("{}", (1_700_000_000_000_000 + more) as f64 / 1e6)),
        (1_699_999_998_i64..1_700_000_005).prop_map(|moment| moment.to_string()),
        number(),
    ];
    let small = || prop_oneof![9 => (0_i64..5).prop_map(|small| small.to_string()), 1 => number()];
    (moment, small(), small(), small())
        .prop_map(|(moment, limit, expiry, amount)| vec![moment, limit, expiry, amount])
        .boxed()
}

/// A number of units and a rate, or seconds between two.
pub(super) fn bucket() -> BoxedStrategy<Vec<String>> {
    let rate =
        select(["1", "2", "0.5", "1.6666666666666667", "0.1", "0"].map(str::to_owned).to_vec());
    let rate = prop_oneof![8 => rate, 1 => number()];
    let small = || prop_oneof![9 => (0_i64..6).prop_map(|small| small.to_string()), 1 => number()];
    (rate, small(), small()).prop_map(|(rate, capacity, cost)| vec![rate, capacity, cost]).boxed()
}

/// Milliseconds by a caller's clock.
fn millis() -> impl Strategy<Value = String> {
    let usual = (1_700_000_000_000_i64..1_700_000_004_000).prop_map(|moment| moment.to_string());
    prop_oneof![9 => usual, 1 => number()]
}

/// The moment, burst, rate, period, cost.
pub(super) fn redis_gcra() -> BoxedStrategy<Vec<String>> {
    let period = select(["1000", "500", "700"].map(str::to_owned).to_vec());
    let small = || prop_oneof![9 => (0_i64..6).prop_map(|small| small.to_string()), 1 => number()];
    (millis(), small(), small(), prop_oneof![9 => period, 1 => number()], small())
        .prop_map(|(now, burst, rate, period, cost)| vec![now, burst, rate, period, cost])
        .boxed()
}

/// Seconds, limit, cost, and the moment.
pub(super) fn period_limit_cost() -> BoxedStrategy<Vec<String>> {
    let small = || prop_oneof![9 => (0_i64..6).prop_map(|small| small.to_string()), 1 => number()];
    (small(), small(), small(), millis())
        .prop_map(|(period, limit, cost, now)| vec![period, limit, cost, now])
        .boxed()
}

/// Windows of a second mostly, so that one turns into the next.
pub(super) fn limit_seconds_amount() -> BoxedStrategy<Vec<String>> {
    let seconds = select(["1", "1", "2"].map(str::to_owned).to_vec());
    let small = || prop_oneof![9 => (0_i64..6).prop_map(|small| small.to_string()), 1 => number()];
    (small(), prop_oneof![9 => seconds, 1 => number()], small())
        .prop_map(|(limit, seconds, amount)| vec![limit, seconds, amount])
        .boxed()
}

/// The millisecond, a window, a limit, and whether to look only.
pub(super) fn async_ratelimiter() -> BoxedStrategy<Vec<String>> {
    let millis = (0_i64..300_000).prop_map(|more| 1_700_000_000_000.0 + more as f64 / 1_000.0);
    let moment = millis.prop_map(|at| at.to_string());
    let window = select(["100", "1", "30", "250"].map(str::to_owned).to_vec());
    let max = prop_oneof![9 => (0_i64..4).prop_map(|max| max.to_string()), 1 => number()];
    let peek = select(["0", "1", ""].map(str::to_owned).to_vec());
    let (moment, window) =
        (prop_oneof![9 => moment, 1 => number()], prop_oneof![9 => window, 1 => number()]);
    (moment, window, max, peek)
        .prop_map(|(moment, window, max, peek)| vec![moment, window, max, peek])
        .boxed()
}
