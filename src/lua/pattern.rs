//! Lua's patterns, matched in stretches between which a script can be ended.
//!
//! Lua's own matcher goes back and tries again as often as a pattern allows, and nothing can
//! interrupt it: four repeats over a few kilobytes take hours. The prelude therefore gives it only
//! what it ends soon by any pattern, and the rest is matched here, to the same results: after
//! every [`STRETCH_STEPS`] whoever called is asked whether to go on.
//!
//! Places are counted in bytes from 0. As in Lua 5.1, a pattern ends at its first NUL. The depth
//! of recursion is at most the parts that repeat or are captured, which the prelude bounds.

/// Between two questions whether to go on: a millisecond or so.
const STRETCH_STEPS: usize = 1 << 18;

/// Captures of one pattern.
const CAPTURES_MAX: usize = 32;

const ESCAPE: u8 = b'%';

/// Characters without which a text to find is no pattern.
const SPECIAL: &[u8] = b"^$*+?.([%-";

/// Why nothing was found out.
#[derive(Debug)]
pub(super) enum Unmatched<E> {
    Malformed(&'static str),
    Stopped(E),
}

/// One part of what was matched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Capture {
    Text { start: usize, end: usize },
    Place(usize),
}

/// Where a pattern was found, and its captures.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) captures: Vec<Capture>,
}

/// Whether Lua's `find` looks for this text as it stands.
pub(super) fn is_plain(pattern: &[u8]) -> bool {
    !ended(pattern).iter().any(|byte| SPECIAL.contains(byte))
}

fn ended(pattern: &[u8]) -> &[u8] {
    memchr::memchr(0, pattern).map_or(pattern, |end| &pattern[..end])
}

/// Finds the pattern at `from` or, if it is not `anchored`, behind it. `go_on` is asked from time
/// to time.
pub(super) fn search<E>(
    (subject, pattern): (&[u8], &[u8]),
    (from, anchored): (usize, bool),
    go_on: &mut dyn FnMut() -> Result<(), E>,
) -> Result<Option<Found>, Unmatched<E>> {
    let pattern = ended(pattern);
    let captures = Vec::new();
    let mut matcher = Matcher { subject, pattern, captures, steps: 0, go_on };
    for start in from..=subject.len() {
        matcher.captures.clear();
        if let Some(end) = matcher.at(start, 0)? {
            return Ok(Some(Found { start, end, captures: matcher.finished()? }));
        }
        if anchored {
            break;
        }
    }
    Ok(None)
}

#[derive(Clone, Copy)]
enum Part {
    Open { start: usize },
    Closed(Capture),
}

struct Matcher<'a, E> {
    subject: &'a [u8],
    pattern: &'a [u8],
    captures: Vec<Part>,
    steps: usize,
    go_on: &'a mut dyn FnMut() -> Result<(), E>,
}

/// Where what was matched ends.
type End<E> = Result<Option<usize>, Unmatched<E>>;

impl<E> Matcher<'_, E> {
    fn spend(&mut self, steps: usize) -> Result<(), Unmatched<E>> {
        self.steps += steps;
        if self.steps >= STRETCH_STEPS {
            self.steps = 0;
            (self.go_on)().map_err(Unmatched::Stopped)?;
        }
        Ok(())
    }

    /// Matches all of the pattern from its place `at` on, with the subject from `s` on.
    fn at(&mut self, mut s: usize, mut at: usize) -> End<E> {
        loop {
            self.spend(1)?;
            let Some(&first) = self.pattern.get(at) else { return Ok(Some(s)) };
            match (first, self.pattern.get(at + 1)) {
                (b'(', Some(b')')) => {
                    return self.capture(Part::Closed(Capture::Place(s)), s, at + 2);
                }
                (b'(', _) => return self.capture(Part::Open { start: s }, s, at + 1),
                (b')', _) => return self.close(s, at + 1),
                (b'$', None) => return Ok((s == self.subject.len()).then_some(s)),
                (ESCAPE, Some(b'b')) => match self.balance(s, at + 2)? {
                    Some(end) => (s, at) = (end, at + 4),
                    None => return Ok(None),
                },
                (ESCAPE, Some(b'f')) => match self.frontier(s, at + 2)? {
                    Some(after) => at = after,
                    None => return Ok(None),
                },
                (ESCAPE, Some(digit)) if digit.is_ascii_digit() => match self.again(s, *digit)? {
                    Some(end) => (s, at) = (end, at + 2),
                    None => return Ok(None),
                },
                _ => {
                    let after = self.class_end(at)?;
                    let class = (at, after);
                    match self.pattern.get(after) {
                        Some(b'?') => {
                            if self.fits(s, class)?
                                && let Some(end) = self.at(s + 1, after + 1)?
                            {
                                return Ok(Some(end));
                            }
                            at = after + 1;
                        }
                        Some(b'*') => return self.longest(s, class, 0),
                        Some(b'+') => return self.longest(s, class, 1),
                        Some(b'-') => return self.shortest(s, class),
                        _ if self.fits(s, class)? => (s, at) = (s + 1, after),
                        _ => return Ok(None),
                    }
                }
            }
        }
    }

    fn longest(&mut self, s: usize, class: (usize, usize), least: usize) -> End<E> {
        let mut count = 0;
        while self.fits(s + count, class)? {
            count += 1;
        }
        for count in (least..=count).rev() {
            if let Some(end) = self.at(s + count, class.1 + 1)? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    fn shortest(&mut self, mut s: usize, class: (usize, usize)) -> End<E> {
        loop {
            if let Some(end) = self.at(s, class.1 + 1)? {
                return Ok(Some(end));
            }
            if !self.fits(s, class)? {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn capture(&mut self, part: Part, s: usize, at: usize) -> End<E> {
        if self.captures.len() >= CAPTURES_MAX {
            return Err(Unmatched::Malformed("too many captures"));
        }
        let before = self.captures.len();
        self.captures.push(part);
        let end = self.at(s, at)?;
        if end.is_none() {
            self.captures.truncate(before);
        }
        Ok(end)
    }

    fn close(&mut self, s: usize, at: usize) -> End<E> {
        let open = self.captures.iter().rposition(|part| matches!(part, Part::Open { .. }));
        let Some(place) = open else {
            return Err(Unmatched::Malformed("invalid pattern capture"));
        };
        let before = self.captures[place];
        if let Part::Open { start } = before {
            self.captures[place] = Part::Closed(Capture::Text { start, end: s });
        }
        let end = self.at(s, at)?;
        if end.is_none() {
            self.captures[place] = before;
        }
        Ok(end)
    }

    /// `%b` and its two characters.
    fn balance(&mut self, s: usize, at: usize) -> End<E> {
        let [open, close, ..] = self.pattern[at..] else {
            return Err(Unmatched::Malformed("unbalanced pattern"));
        };
        let subject = self.subject;
        if subject.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1_usize;
        for (place, byte) in (s + 1..).zip(&subject[s + 1..]) {
            self.spend(1)?;
            if *byte == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(place + 1));
                }
            } else if *byte == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// `%f` and its set. Returns where the pattern goes on.
    fn frontier(&mut self, s: usize, at: usize) -> End<E> {
        if self.pattern.get(at) != Some(&b'[') {
            return Err(Unmatched::Malformed("missing '[' after '%f' in pattern"));
        }
        let after = self.class_end(at)?;
        self.spend(after - at)?;
        let set = &self.pattern[at..after];
        let before = s.checked_sub(1).map_or(0, |place| self.subject[place]);
        let here = self.subject.get(s).copied().unwrap_or(0);
        Ok((!is_in_set(before, set) && is_in_set(here, set)).then_some(after))
    }

    /// What a capture has matched, once more.
    fn again(&mut self, s: usize, digit: u8) -> End<E> {
        let part = usize::from(digit).checked_sub(usize::from(b'1'));
        let part = part.and_then(|place| self.captures.get(place).copied());
        let Some(Part::Closed(capture)) = part else {
            return Err(Unmatched::Malformed("invalid capture index"));
        };
        let Capture::Text { start, end } = capture else { return Ok(None) };
        self.spend(end - start)?;
        let is_there = self.subject[s..].starts_with(&self.subject[start..end]);
        Ok(is_there.then(|| s + end - start))
    }

    /// Where the single character, class or set that begins at `at` ends.
    fn class_end(&self, at: usize) -> Result<usize, Unmatched<E>> {
        let byte = |place: usize| self.pattern.get(place).copied();
        match byte(at) {
            Some(ESCAPE) if byte(at + 1).is_none() => {
                Err(Unmatched::Malformed("malformed pattern (ends with '%')"))
            }
            Some(ESCAPE) => Ok(at + 2),
            Some(b'[') => {
                let mut place = if byte(at + 1) == Some(b'^') { at + 2 } else { at + 1 };
                loop {
                    let escapes = match byte(place) {
                        None => {
                            let text = "malformed pattern (missing ']')";
                            return Err(Unmatched::Malformed(text));
                        }
                        Some(byte) => byte == ESCAPE,
                    };
                    place += 1;
                    if escapes && byte(place).is_some() {
                        place += 1;
                    }
                    if byte(place) == Some(b']') {
                        return Ok(place + 1);
                    }
                }
            }
            _ => Ok(at + 1),
        }
    }

    fn fits(&mut self, s: usize, (at, after): (usize, usize)) -> Result<bool, Unmatched<E>> {
        self.spend(after - at)?;
        let Some(&byte) = self.subject.get(s) else { return Ok(false) };
        Ok(match self.pattern[at] {
            b'.' => true,
            ESCAPE => is_in_class(byte, self.pattern[at + 1]),
            b'[' => is_in_set(byte, &self.pattern[at..after]),
            other => byte == other,
        })
    }

    fn finished(&self) -> Result<Vec<Capture>, Unmatched<E>> {
        let capture = |part: &Part| match part {
            Part::Closed(capture) => Ok(*capture),
            Part::Open { .. } => Err(Unmatched::Malformed("unfinished capture")),
        };
        self.captures.iter().map(capture).collect()
    }
}

/// Whether a byte is in a set, which stands there with its brackets.
fn is_in_set(byte: u8, set: &[u8]) -> bool {
    let negates = set.get(1) == Some(&b'^');
    let mut rest = &set[if negates { 2 } else { 1 }..set.len() - 1];
    loop {
        let (is_in, after) = match *rest {
            [] => return negates,
            [ESCAPE, class, ..] => (is_in_class(byte, class), 2),
            [low, b'-', high, ..] => ((low..=high).contains(&byte), 3),
            [other, ..] => (byte == other, 1),
        };
        if is_in {
            return !negates;
        }
        rest = &rest[after..];
    }
}

fn is_in_class(byte: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => matches!(byte, b'\t'..=b'\r' | b' '),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return byte == class,
    };
    is_in != class.is_ascii_uppercase()
}
