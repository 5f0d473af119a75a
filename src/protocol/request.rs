//! Requests out of a connection's buffer: all that are complete, as slices; the torn tail stays.
//!
//! One [`Scanner`] serves all connections of a worker: its lists are reused, so a request costs
//! no allocation. What a connection must remember between two reads is a [`Torn`]: where in its
//! unconsumed tail the scan stopped, so that a large request in small pieces is read once.
//!
//! Invariants: a scan in pieces finds exactly what a scan of the whole finds; each limit is
//! judged by what is announced, so nothing over a limit is ever waited for.

use super::args::{Args, Span};
use super::inline;
use super::scan::{self, Cursor, Stop};

/// Offsets into a buffer are four bytes wide; what lies further back is scanned later.
const INPUT_BYTES_MAX: usize = u32::MAX as usize;

/// Requests of one scan by default: as many as one batch may hold up the others.
const PIPELINE_MAX: usize = 1_024;

/// A span list with room for more than this is given back after use: 512 KB.
const SPANS_KEPT_MAX: usize = 1 << 16;
/// So are inline arguments that took more bytes than this.
const TEXT_KEPT_MAX: usize = 1 << 19;

/// What a client may send.
#[expect(clippy::struct_field_names, reason = "each is a maximum, and is named so where it is set")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Limits {
    /// One whole request: what a connection can make us hold before anything runs.
    pub(crate) request_bytes_max: usize,
    /// Arguments of one request: more would hold up the shards that its keys lock.
    pub(crate) args_max: usize,
    /// One argument; `proto-max-bulk-len` of Redis.
    pub(crate) bulk_bytes_max: usize,
    /// One inline line: it is typed by hand, and searched for its end.
    pub(crate) inline_bytes_max: usize,
    /// One header line: it holds a number, but Redis reads on this far for its end.
    pub(crate) header_bytes_max: usize,
    /// Requests taken by one scan: a longer pipeline waits its turn.
    pub(crate) pipeline_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes_max: 1 << 30,
            args_max: 1 << 20,
            bulk_bytes_max: 512 << 20,
            inline_bytes_max: 64 << 10,
            header_bytes_max: 64 << 10,
            pipeline_max: PIPELINE_MAX,
        }
    }
}

impl Limits {
    /// Nothing below these can be said in RESP, nothing above them fits an offset.
    fn bounded(self) -> Self {
        Self {
            request_bytes_max: self.request_bytes_max.clamp(1 << 10, INPUT_BYTES_MAX / 2),
            args_max: self.args_max.clamp(9, INPUT_BYTES_MAX / scan::ARG_BYTES_MIN),
            bulk_bytes_max: self.bulk_bytes_max.clamp(1, INPUT_BYTES_MAX / 2),
            inline_bytes_max: self.inline_bytes_max.clamp(1, INPUT_BYTES_MAX / 2),
            header_bytes_max: self.header_bytes_max.clamp(32, INPUT_BYTES_MAX / 2),
            pipeline_max: self.pipeline_max.max(1),
        }
    }
}

/// Whether the connection may make us hold much.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Trust {
    Authenticated,
    /// A password is wanted and has not been given. One request is taken a scan, because it may
    /// be the one that gives it.
    Unauthenticated,
}

/// Why a connection is closed: what was read is not RESP, or too much of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum ProtocolError {
    #[error("too big inline request")]
    InlineTooBig,
    #[error("unbalanced quotes in request")]
    UnbalancedQuotes,
    #[error("too big mbulk count string")]
    MultibulkHeaderTooBig,
    #[error("invalid multibulk length")]
    InvalidMultibulkLength,
    #[error("unauthenticated multibulk length")]
    UnauthenticatedMultibulkLength,
    #[error("expected '$', got '{}'", char::from(*.0))]
    ExpectedBulk(u8),
    #[error("too big bulk count string")]
    BulkHeaderTooBig,
    #[error("invalid bulk length")]
    InvalidBulkLength,
    #[error("unauthenticated bulk length")]
    UnauthenticatedBulkLength,
    #[error("expected CR LF after bulk")]
    UnterminatedBulk,
    #[error("too big request")]
    RequestTooBig,
    /// A web browser was made to speak to us: it must not learn that we are here.
    #[error("a line of HTTP")]
    CrossProtocol,
}

/// What one scan did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Scanned {
    /// Bytes of the requests taken, and of empty ones; drop them once the requests are handled.
    pub(crate) consumed: usize,
    /// Nothing more can be read from this connection, but the requests taken stand.
    pub(crate) failed: Option<ProtocolError>,
}

/// What a connection remembers of the request at the head of its unconsumed bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Torn {
    /// Arguments found; on the heap only while a multibulk request is torn.
    spans: Vec<Span>,
    at: usize,
    needs: usize,
    searched: u32,
    args_left: u32,
}

const _: () = assert!(size_of::<Torn>() <= 64);

impl Torn {
    /// Bytes still missing at the least, zero if nothing is torn: a hint for the size of the next
    /// read. It is only announced: a buffer that grows by it at once holds what was never sent.
    pub(crate) fn needs(&self) -> usize {
        self.needs
    }
}

/// Takes requests out of buffers; one for each worker.
#[derive(Debug)]
pub(crate) struct Scanner {
    limits: Limits,
    spans: Vec<Span>,
    requests: Vec<Request>,
    /// Inline arguments, unescaped.
    text: Vec<u8>,
}

/// The spans of one request.
#[derive(Clone, Copy, Debug)]
struct Request {
    first: u32,
    end: u32,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Input,
    /// The line ended here in the input.
    Text {
        end: u32,
    },
}

impl Scanner {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits: limits.bounded(), spans: Vec::new(), requests: Vec::new(), text: Vec::new() }
    }

    /// Takes the complete requests off the front of `input`, up to `pipeline_max`. There may be
    /// more: handle these, drop what was consumed, and scan again until none is found.
    ///
    /// `torn` belongs to the connection; `input` must begin where its last scan stopped.
    pub(crate) fn scan(&mut self, torn: &mut Torn, input: &[u8], trust: Trust) -> Scanned {
        self.clear();
        let input = input.get(..INPUT_BYTES_MAX).unwrap_or(input);
        let requests_max = match trust {
            Trust::Authenticated => self.limits.pipeline_max,
            Trust::Unauthenticated => 1,
        };
        let mut before = std::mem::take(torn);
        let mut at = 0;
        let (mut step, mut searched) = match before.args_left {
            0 => (Ok(0), before.searched as usize),
            _ => (self.resume(&mut before, torn, input, trust), 0),
        };
        loop {
            match step {
                Ok(next) => at = next,
                Err(Stop::Torn) => return Scanned { consumed: at, failed: None },
                Err(Stop::Refused(err)) => return Scanned { consumed: at, failed: Some(err) },
            }
            if self.requests.len() >= requests_max {
                return Scanned { consumed: at, failed: None };
            }
            let searched = std::mem::take(&mut searched);
            step = match input.get(at) {
                None => return Scanned { consumed: at, failed: None },
                Some(b'*') => self.multibulk(torn, input, Cursor::new(at, searched), trust),
                Some(_) => self.inline(torn, input, Cursor::new(at, searched)),
            };
        }
    }

    /// How many requests the last scan took.
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// One request of the last scan, whose `input` this must be.
    #[inline]
    pub(crate) fn request<'a>(&'a self, index: usize, input: &'a [u8]) -> Option<Args<'a>> {
        self.requests.get(index).map(|request| self.args(*request, input))
    }

    /// Where so many requests of the last scan ended in its input: what comes behind them can be
    /// scanned again.
    pub(crate) fn end_of(&self, requests: usize) -> usize {
        let Some(last) = requests.checked_sub(1).and_then(|last| self.requests.get(last)) else {
            return 0;
        };
        match last.source {
            Source::Input => {
                let last = self.spans.get(last.end as usize - 1);
                last.map_or(0, |last| last.end as usize + b"\r\n".len())
            }
            Source::Text { end } => end as usize,
        }
    }

    #[inline]
    fn args<'a>(&'a self, request: Request, input: &'a [u8]) -> Args<'a> {
        let spans = self.spans.get(request.first as usize..request.end as usize);
        let bytes = match request.source {
            Source::Input => input,
            Source::Text { .. } => &self.text,
        };
        Args::new(bytes, spans.unwrap_or_default())
    }

    fn clear(&mut self) {
        self.spans.clear();
        self.requests.clear();
        self.text.clear();
        if self.spans.capacity() > SPANS_KEPT_MAX {
            self.spans = Vec::new();
        }
        if self.text.capacity() > TEXT_KEPT_MAX {
            self.text = Vec::new();
        }
    }

    #[inline]
    fn multibulk(
        &mut self,
        torn: &mut Torn,
        input: &[u8],
        mut cursor: Cursor,
        trust: Trust,
    ) -> Result<usize, Stop> {
        let first = self.spans.len();
        let read = scan::count(input, &mut cursor, &self.limits, trust)
            .and_then(|()| scan::bulks(input, &mut cursor, &mut self.spans, &self.limits, trust));
        match read {
            Ok(()) => self.take_request(first, Source::Input),
            Err(stop) => {
                let found = self.spans.drain(first..);
                if stop == Stop::Torn {
                    *torn = cursor.torn(input.len());
                    torn.spans = found.map(|span| span.moved_back(cursor.start as u32)).collect();
                }
                return Err(stop);
            }
        }
        Ok(cursor.at)
    }

    /// Goes on with the multibulk request that was torn at the head of the buffer.
    fn resume(
        &mut self,
        before: &mut Torn,
        torn: &mut Torn,
        input: &[u8],
        trust: Trust,
    ) -> Result<usize, Stop> {
        let mut cursor = Cursor::new(0, before.searched as usize);
        cursor.at = before.at;
        cursor.args_left = before.args_left as usize;
        match scan::bulks(input, &mut cursor, &mut before.spans, &self.limits, trust) {
            Ok(()) => {
                self.spans.append(&mut before.spans);
                self.take_request(0, Source::Input);
                Ok(cursor.at)
            }
            Err(stop) => {
                if stop == Stop::Torn {
                    *torn = cursor.torn(input.len());
                    torn.spans = std::mem::take(&mut before.spans);
                }
                Err(stop)
            }
        }
    }

    fn inline(&mut self, torn: &mut Torn, input: &[u8], mut cursor: Cursor) -> Result<usize, Stop> {
        let rest = input.get(cursor.at..).unwrap_or_default();
        let line = rest.get(..=self.limits.inline_bytes_max).unwrap_or(rest);
        let unseen = line.get(cursor.searched..).unwrap_or_default();
        let Some(found) = memchr::memchr(b'\n', unseen) else {
            if line.len() > self.limits.inline_bytes_max {
                return Err(Stop::Refused(ProtocolError::InlineTooBig));
            }
            cursor.searched = line.len();
            cursor.end_min = input.len() + 1;
            *torn = cursor.torn(input.len());
            return Err(Stop::Torn);
        };
        let end = cursor.searched + found;
        let line = line.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let first = self.spans.len();
        inline::split(line, &mut self.text, &mut self.spans).map_err(|inline::Unbalanced| {
            self.spans.truncate(first);
            Stop::Refused(ProtocolError::UnbalancedQuotes)
        })?;
        let words = Args::new(&self.text, self.spans.get(first..).unwrap_or_default());
        if is_http(words.name()) {
            self.spans.truncate(first);
            return Err(Stop::Refused(ProtocolError::CrossProtocol));
        }
        let end = cursor.at + end + 1;
        self.take_request(first, Source::Text { end: end as u32 });
        Ok(end)
    }

    /// An empty request is passed over in silence.
    #[inline]
    fn take_request(&mut self, first: usize, source: Source) {
        let (first, end) = (first as u32, self.spans.len() as u32);
        if first < end {
            self.requests.push(Request { first, end, source });
        }
    }
}

/// The first words by which a forged HTTP request would reach us.
fn is_http(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"post") || word.eq_ignore_ascii_case(b"host:")
}

impl Cursor {
    fn new(at: usize, searched: usize) -> Self {
        Self { start: at, at, args_left: 0, searched, end_min: 0 }
    }

    /// What is to be remembered, counted from the start of the request.
    fn torn(&self, input_bytes: usize) -> Torn {
        Torn {
            spans: Vec::new(),
            at: self.at - self.start,
            needs: self.end_min.saturating_sub(input_bytes).max(1),
            searched: self.searched as u32,
            args_left: self.args_left as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUST: Trust = Trust::Authenticated;

    /// The first scan's count, and the hint, after each of the texts is appended.
    fn needs(pieces: &[&str]) -> Vec<usize> {
        let (mut scanner, mut torn) = (Scanner::new(Limits::default()), Torn::default());
        let mut buffer = Vec::new();
        let hints = pieces.iter().map(|piece| {
            buffer.extend_from_slice(piece.as_bytes());
            let scanned = scanner.scan(&mut torn, &buffer, TRUST);
            assert_eq!(scanned.failed, None);
            buffer.drain(..scanned.consumed);
            torn.needs()
        });
        hints.collect()
    }

    #[test]
    fn hint_is_what_is_missing_at_the_least() {
        assert_eq!(needs(&["PING\r\n", "", "PIN", "G\r", "\n"]), [0, 0, 1, 1, 0]);
        assert_eq!(needs(&["*", "3", "\r", "\n"]), [2, 2, 1, 18]);
        assert_eq!(
            needs(&["*2\r\n$3\r\nGET\r\n", "$", "1000", "\r\n", "abc"]),
            [6, 5, 2, 1_002, 999]
        );
        assert_eq!(
            needs(&["*3\r\n$5\r\n", "hello", "\r\n$1", "\r\na\r\n$0\r\n\r\n"]),
            [19, 14, 10, 0]
        );
    }

    #[test]
    fn torn_request_is_never_looked_at_twice() {
        let count = 65_536;
        let request = format!("*{count}\r\n") + &"$5\r\nhello\r\n".repeat(count);
        let (mut scanner, mut torn) = (Scanner::new(Limits::default()), Torn::default());
        let mut end = 0;
        while end < request.len() {
            end = (end + 1_000).min(request.len());
            let buffer = &request.as_bytes()[..end];
            let scanned = scanner.scan(&mut torn, buffer, TRUST);
            assert_eq!(scanned.failed, None);
            if scanned.consumed == 0 {
                // The next scan begins within one argument of where this one ended.
                assert!(end - torn.at <= 11 && torn.spans.len() * 11 + 20 > torn.at, "{torn:?}");
            }
        }
        let args = scanner.request(0, request.as_bytes()).expect("complete");
        assert_eq!((args.len(), args.get(count - 1)), (count, Some(&b"hello"[..])));
        // Nothing is torn any more, so nothing is held.
        assert_eq!((torn.spans.capacity(), torn.needs()), (0, 0));
        scanner.scan(&mut torn, b"PING\r\n", TRUST);
        assert!(scanner.spans.capacity() <= SPANS_KEPT_MAX, "a long list is given back");
    }

    #[test]
    fn long_line_is_searched_once_for_its_end() {
        for start in ["", "*", "*1\r\n$"] {
            let line = start.to_owned() + &"1".repeat(60_000);
            let (mut scanner, mut torn) = (Scanner::new(Limits::default()), Torn::default());
            for end in 1..=line.len() {
                scanner.scan(&mut torn, &line.as_bytes()[..end], TRUST);
                assert!(end - torn.at - torn.searched as usize <= 1, "{torn:?}");
            }
        }
    }

    #[test]
    fn limits_out_of_reason_are_brought_within() {
        let all = |value| Limits {
            request_bytes_max: value,
            args_max: value,
            bulk_bytes_max: value,
            inline_bytes_max: value,
            header_bytes_max: value,
            pipeline_max: value,
        };
        for limits in [all(0), all(usize::MAX)] {
            let (mut scanner, mut torn) = (Scanner::new(limits), Torn::default());
            let input = b"*1\r\n$1\r\na\r\n";
            let scanned = scanner.scan(&mut torn, input, TRUST);
            assert_eq!((scanned.consumed, scanner.len()), (input.len(), 1));
        }
    }
}
