//! [`Extended`] against what a real server answered: `incrbyfloat.txt`, made once on x86-64.

use super::super::{Error, Extended};

fn increment(left: &str, right: &str) -> Result<String, Error> {
    let left = Extended::parse(left.as_bytes()).ok_or(Error::NotFloat)?;
    let right = Extended::parse(right.as_bytes()).ok_or(Error::NotFloat)?;
    left.plus(right).map(|sum| sum.to_string()).ok_or(Error::IncrementNotFinite)
}

fn cases() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let lines = include_str!("incrbyfloat.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let mut parts = line.split('|');
        let mut part = || parts.next().expect("three parts a line");
        (part(), part(), part())
    })
}

#[test]
fn sums_print_to_the_byte_as_redis_prints_them() {
    assert!(cases().count() > 300);
    for (left, right, expected) in cases() {
        let found = match increment(left, right) {
            Ok(sum) => sum,
            Err(Error::NotFloat) => "invalid".to_owned(),
            Err(_) => "infinite".to_owned(),
        };
        assert_eq!(found, expected, "{left} + {right}");
    }
}

/// Those whose numbers are too long for a table: the sum keeps only 64 bits of them.
#[test]
fn longest_texts_are_read_and_longer_ones_refused() {
    let ones = "1".repeat(4_932);
    let sum = increment("0", &ones).expect("below the largest number");
    assert_eq!((sum.len(), &sum[..19]), (4_932, &ones[..19]));
    let fraction = format!("0.{}", "1".repeat(5_000));
    assert_eq!(increment("0", &fraction), Ok("0.11111111111111111".to_owned()));
    assert_eq!(increment("0", &"0".repeat(5_119)), Ok("0".to_owned()));
    assert_eq!(increment("0", &"0".repeat(5_120)), Err(Error::NotFloat));
    assert_eq!(increment("0", &"9".repeat(5_100)), Err(Error::NotFloat));
}
