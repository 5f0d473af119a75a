//! The pieces that encoded collections are made of: counts, and bytes behind their length.
//!
//! Lengths are of 32 bits, little-endian. What is decoded may have been damaged on its way: a
//! count is never trusted further than the bytes behind it reach.

/// Why bytes are not a collection.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the collection is cut short, or an element is there twice")]
pub(crate) struct DecodeError;

pub(super) fn put_len(len: usize, out: &mut Vec<u8>) {
    let len = u32::try_from(len).expect("a collection and its elements are bounded by requests");
    out.extend_from_slice(&len.to_le_bytes());
}

pub(super) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_len(bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// Reads one piece after another.
#[derive(Debug)]
pub(super) struct Pieces<'b>(pub(super) &'b [u8]);

impl<'b> Pieces<'b> {
    pub(super) fn len(&mut self) -> Result<usize, DecodeError> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (piece, rest) = self.0.split_first_chunk::<N>().ok_or(DecodeError)?;
        self.0 = rest;
        Ok(*piece)
    }

    pub(super) fn bytes(&mut self) -> Result<&'b [u8], DecodeError> {
        let len = self.len()?;
        let (piece, rest) = self.0.split_at_checked(len).ok_or(DecodeError)?;
        self.0 = rest;
        Ok(piece)
    }

    /// All has been read.
    pub(super) fn end(self) -> Result<(), DecodeError> {
        if self.0.is_empty() { Ok(()) } else { Err(DecodeError) }
    }
}
