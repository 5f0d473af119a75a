//! Arguments of one request: slices of the buffer they arrived in.
//!
//! [`Args`] is two slices and free to copy.
//!
//! Invariant: no index panics; what is not there is `None`, or an empty [`Args`].

/// A byte range of a buffer. Four-byte offsets keep a million arguments at 8 MB.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    /// The same bytes once the first `bytes` of the buffer are gone.
    pub(super) fn moved_back(self, bytes: u32) -> Self {
        Self { start: self.start - bytes, end: self.end - bytes }
    }

    fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// The name and arguments of a request.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    /// `spans` must lie within `bytes`; one that does not reads as empty.
    pub(super) fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Self { bytes, spans }
    }

    /// How many there are, the name included.
    pub(crate) fn len(self) -> usize {
        self.spans.len()
    }

    pub(crate) fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    pub(crate) fn get(self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|span| span.of(self.bytes))
    }

    /// The first argument, as it was typed; empty only if there are none.
    pub(crate) fn name(self) -> &'a [u8] {
        self.get(0).unwrap_or_default()
    }

    pub(crate) fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> + DoubleEndedIterator {
        self.spans.iter().map(move |span| span.of(self.bytes))
    }

    /// The first `count`, or all where there are fewer.
    pub(crate) fn first(self, count: usize) -> Self {
        Self { spans: self.spans.get(..count).unwrap_or(self.spans), ..self }
    }

    /// All from `index` on; empty past the end.
    pub(crate) fn skip(self, index: usize) -> Self {
        Self { spans: self.spans.get(index..).unwrap_or_default(), ..self }
    }
}

impl std::fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|arg| arg.escape_ascii().to_string())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::OwnedArgs;
    use super::*;

    #[test]
    fn any_index_answers_without_panic() {
        let owned = OwnedArgs::of([b"SET".as_slice(), b"", b"value"]);
        let args = owned.as_args();
        assert_eq!((args.len(), args.is_empty(), args.name()), (3, false, &b"SET"[..]));
        assert_eq!((args.get(1), args.get(2)), (Some(&b""[..]), Some(&b"value"[..])));
        assert_eq!((args.get(3), args.get(usize::MAX)), (None, None));
        assert!(args.skip(3).is_empty() && args.skip(usize::MAX).is_empty());
        assert_eq!(args.skip(1).iter().rev().collect::<Vec<_>>(), [&b"value"[..], b""]);
        assert_eq!(args.skip(9).name(), b"");
        assert_eq!((args.first(1).len(), args.first(9).len()), (1, 3));
        assert_eq!(format!("{args:?}"), r#"["SET", "", "value"]"#);
    }

    #[test]
    fn spans_outside_the_buffer_read_as_empty() {
        let spans = [Span { start: 2, end: 9 }, Span { start: 3, end: 1 }];
        let args = Args::new(b"abc", &spans);
        assert_eq!(args.iter().collect::<Vec<_>>(), [b"", b""]);
    }
}
