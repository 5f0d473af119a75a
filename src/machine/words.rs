//! The words of the system's files: each reader finds one figure, or nothing.

/// The number behind a name at the beginning of a line, as `status` and `meminfo` have them.
pub(super) fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line?.split_whitespace().next()?.parse().ok()
}

/// The number behind a name, as `cpu.stat` and `memory.stat` have them.
pub(super) fn counter(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (found, number) = line.split_once(' ')?;
        (found == name).then(|| number.trim().parse().ok())?
    })
}

/// User and system seconds: the 14th and 15th words, counted after the name, which may itself
/// hold blanks and parentheses.
pub(super) fn cpu_seconds(stat: &str) -> Option<(f64, f64)> {
    let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut words = after_name.split_whitespace().skip(11).map(str::parse::<f64>);
    let mut next = || Some(words.next()?.ok()? / ticks_per_second);
    Some((next()?, next()?))
}

/// How many processors `status` lists as allowed, such as `0-3,8`.
pub(super) fn cpus_allowed(status: &str) -> Option<u32> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().split(',').try_fold(0_u32, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        last.checked_sub(first)?.checked_add(1)?.checked_add(sum)
    })
}

/// `avg10` of the line that begins with `who` (`some` or `full`), in percent.
pub(super) fn stalled_percent(text: &str, who: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(who))?;
    let word = line.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?;
    word.parse().ok()
}

/// `cpu.max` of version 2: quota and period as cores; nothing for `max`.
pub(super) fn cores_of_quota(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace().map(str::parse::<f64>);
    let (quota_us, period_us) = (words.next()?.ok()?, words.next()?.ok()?);
    (quota_us > 0.0 && period_us > 0.0).then_some(quota_us / period_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_past_a_name_with_blanks() {
        let ticks = rustix::param::clock_ticks_per_second();
        let (user, system) = (ticks * 3, ticks * 2);
        let stat = format!("1 (a ) b) S 0 0 0 0 0 0 0 0 0 0 {user} {system} 0");
        assert_eq!(cpu_seconds(&stat), Some((3.0, 2.0)));
        assert_eq!(cpu_seconds("1 (a) S 0"), None);
    }

    #[test]
    fn allowed_processors_are_counted_over_their_ranges() {
        for (list, count) in [
            ("0", Some(1)),
            ("0-3", Some(4)),
            ("0-1,4-5,9", Some(5)),
            ("3-1", None),
            ("0-4294967295", None),
            ("", None),
            ("a", None),
        ] {
            assert_eq!(cpus_allowed(&format!("Cpus_allowed_list:\t{list}\n")), count, "{list}");
        }
        assert_eq!(cpus_allowed("Name: x\n"), None);
    }

    #[test]
    fn stalls_are_those_of_the_last_ten_seconds() {
        let text = "some avg10=1.50 avg60=2.00 total=7\nfull avg10=0.25 avg60=0.00 total=1\n";
        assert_eq!(stalled_percent(text, "some"), Some(1.5));
        assert_eq!(stalled_percent(text, "full"), Some(0.25));
        assert_eq!(stalled_percent("some avg60=1.00\n", "some"), None);
        assert_eq!(stalled_percent("", "some"), None);
    }

    #[test]
    fn quota_is_a_number_of_cores_and_max_is_none() {
        for (text, cores) in [
            ("150000 100000\n", Some(1.5)),
            ("max 100000\n", None),
            ("-1 100000", None),
            ("100000 0", None),
            ("100000", None),
        ] {
            assert_eq!(cores_of_quota(text), cores, "{text}");
        }
    }

    #[test]
    fn counters_are_found_by_their_whole_name() {
        let text = "total_inactive_file 9\ninactive_file 5\nnr x\n";
        assert_eq!(counter(text, "inactive_file"), Some(5));
        assert_eq!(counter(text, "nr"), None);
        assert_eq!(counter(text, "file"), None);
    }
}
