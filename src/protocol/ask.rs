//! Requests as a caller writes them: arrays of bulk strings.
//!
//! The other side of the scanner, for programs of ours that ask a server: the client library,
//! `tollgate check` and `tollgate bench`. Appends only, so that many requests make one write.

/// Appends a request of these words.
pub(crate) fn write_request<Word: AsRef<[u8]>>(words: &[Word], out: &mut Vec<u8>) {
    write_header(b'*', words.len(), out);
    for word in words {
        write_word(word.as_ref(), out);
    }
}

/// Appends one word of a request whose header has been written.
pub(crate) fn write_word(word: &[u8], out: &mut Vec<u8>) {
    write_header(b'$', word.len(), out);
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// Appends the line that says how much follows.
pub(crate) fn write_header(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_an_array_of_bulk_strings() {
        let mut out = Vec::new();
        write_request(&["AUTH", "", "p w"], &mut out);
        assert_eq!(out, b"*3\r\n$4\r\nAUTH\r\n$0\r\n\r\n$3\r\np w\r\n");
    }
}
