//! The payload of FUNCTION DUMP, as a Redis writes and reads it.
//!
//! For each library an opcode and its code as a string of the RDB format; at the end the format's
//! version and a CRC-64 of all before it, both little-endian. Strings are written without
//! compression, which every Redis reads, and read with it.

use crate::protocol::Error;

/// A library's whole code follows.
const LIBRARY: u8 = 245;

/// The version that is written: that of Redis 7.0, which later ones read too.
const VERSION: u16 = 10;

/// The latest version whose strings are known to be as here.
const VERSION_MAX: u16 = 12;

/// Bytes of the version and the checksum.
const FOOTER_BYTES: usize = 10;

/// What one library may unpack to.
const CODE_BYTES_MAX: usize = 64 << 20;

pub(super) fn write_payload<'c>(codes: impl Iterator<Item = &'c [u8]>) -> Vec<u8> {
    let mut payload = Vec::new();
    for code in codes {
        payload.push(LIBRARY);
        write_length(&mut payload, code.len());
        payload.extend_from_slice(code);
    }
    payload.extend_from_slice(&VERSION.to_le_bytes());
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// The codes of a payload's libraries.
pub(super) fn read_payload(payload: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let wrong = || Error::text("DUMP payload version or checksum are wrong");
    let body = payload.len().checked_sub(FOOTER_BYTES).ok_or_else(wrong)?;
    let (checked, checksum) = payload.split_at_checked(body + 2).ok_or_else(wrong)?;
    let (mut rest, version) = checked.split_at(body);
    let version = u16::from_le_bytes([version[0], version[1]]);
    if version > VERSION_MAX || crc64(checked).to_le_bytes() != checksum {
        return Err(wrong());
    }
    let mut codes = Vec::new();
    while let Some((opcode, after)) = rest.split_first() {
        if *opcode != LIBRARY {
            return Err(Error::text("given type is not a function"));
        }
        rest = after;
        let code = read_string(&mut rest);
        codes.push(code.ok_or_else(|| Error::text("Failed loading library data"))?);
    }
    Ok(codes)
}

fn write_length(out: &mut Vec<u8>, length: usize) {
    match length {
        0..=0x3F => out.push(length as u8),
        0x40..=0x3FFF => out.extend_from_slice(&[0x40 | (length >> 8) as u8, length as u8]),
        _ => {
            out.push(0x80);
            // Code is far shorter than four bytes can say.
            out.extend_from_slice(&(length as u32).to_be_bytes());
        }
    }
}

/// A string, plain or compressed; numbers are no code.
fn read_string(rest: &mut &[u8]) -> Option<Vec<u8>> {
    const COMPRESSED: u8 = 0xC3;
    if rest.first() != Some(&COMPRESSED) {
        let length = read_length(rest)?;
        return Some(take(rest, length)?.to_vec());
    }
    take(rest, 1)?;
    let packed = read_length(rest)?;
    let length = read_length(rest)?;
    unpack(take(rest, packed)?, length)
}

fn read_length(rest: &mut &[u8]) -> Option<usize> {
    let first = take(rest, 1)?[0];
    match first >> 6 {
        0 => Some((first & 0x3F).into()),
        1 => Some(usize::from(first & 0x3F) << 8 | usize::from(take(rest, 1)?[0])),
        2 if first == 0x80 => {
            let bytes = take(rest, 4)?.try_into().ok()?;
            usize::try_from(u32::from_be_bytes(bytes)).ok()
        }
        2 if first == 0x81 => {
            let bytes = take(rest, 8)?.try_into().ok()?;
            usize::try_from(u64::from_be_bytes(bytes)).ok()
        }
        _ => None,
    }
}

fn take<'r>(rest: &mut &'r [u8], length: usize) -> Option<&'r [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

/// Undoes the LZF compression: runs of plain bytes, and references back into what is there.
fn unpack(mut packed: &[u8], length: usize) -> Option<Vec<u8>> {
    if length > CODE_BYTES_MAX {
        return None;
    }
    let mut out = Vec::with_capacity(length.min(packed.len() * 8));
    while !packed.is_empty() {
        let control = usize::from(take(&mut packed, 1)?[0]);
        if control < 32 {
            out.extend_from_slice(take(&mut packed, control + 1)?);
            continue;
        }
        let mut run = control >> 5;
        if run == 7 {
            run += usize::from(take(&mut packed, 1)?[0]);
        }
        let back = (control & 0x1F) << 8 | usize::from(take(&mut packed, 1)?[0]);
        let from = out.len().checked_sub(back + 1)?;
        if out.len() + run + 2 > length {
            return None;
        }
        // Byte by byte: a reference may reach into what it is just writing.
        for place in from..from + run + 2 {
            out.push(out[place]);
        }
    }
    (out.len() == length).then_some(out)
}

/// CRC-64 with the polynomial of Jones, lowest bit first.
fn crc64(bytes: &[u8]) -> u64 {
    const POLYNOMIAL: u64 = 0x95AC_9329_AC4B_C9B5;
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u64::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_redis() {
        assert_eq!(crc64(b"123456789"), 0xE9C6_D914_C4B8_D9CA);
    }

    #[test]
    fn what_is_written_is_read_again_and_a_changed_byte_refused() {
        let codes = [b"short".to_vec(), vec![b'x'; 100], vec![b'y'; 20_000]];
        let payload = write_payload(codes.iter().map(Vec::as_slice));
        assert_eq!(read_payload(&payload).unwrap(), codes);
        for place in [0, 3, payload.len() - 1] {
            let mut changed = payload.clone();
            changed[place] ^= 1;
            assert!(read_payload(&changed).is_err());
        }
        assert!(read_payload(b"foo").is_err());
    }

    #[test]
    fn compressed_strings_are_read() {
        // Three plain bytes, then nine from three back.
        assert_eq!(unpack(b"\x02abc\xE0\x00\x02", 12).unwrap(), b"abcabcabcabc");
        for (packed, length) in [(&b"\xE0\x00\x02"[..], 9), (b"\x02ab", 3), (b"\x02abc", 4)] {
            assert_eq!(unpack(packed, length), None);
        }
    }
}
