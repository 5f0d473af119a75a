//! The first line of a script that begins with `#!`: its engine, name and flags.
//!
//! `#!lua flags=no-writes,allow-oom` heads a script, `#!lua name=mylib` a library. A script
//! without such a line is one of the old kind, which may do what it likes.
//!
//! Flags that no Redis knows are passed over unless [`UnknownFlags::Refuse`] is set: scripts of
//! published limiters carry some.

use crate::protocol::{Error, OwnedArgs};

/// What to do with a flag that no Redis knows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum UnknownFlags {
    #[default]
    Accept,
    Refuse,
}

/// What a script, or a function of a library, says about itself.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ScriptFlags(u8);

impl ScriptFlags {
    pub(crate) const NO_WRITES: Self = Self(1);
    pub(crate) const ALLOW_OOM: Self = Self(1 << 1);
    pub(crate) const ALLOW_STALE: Self = Self(1 << 2);
    pub(crate) const NO_CLUSTER: Self = Self(1 << 3);
    pub(crate) const ALLOW_CROSS_SLOT_KEYS: Self = Self(1 << 4);

    /// Names as FUNCTION LIST tells them, in the order in which Redis does.
    pub(crate) const NAMES: [(&'static str, Self); 5] = [
        ("no-writes", Self::NO_WRITES),
        ("allow-oom", Self::ALLOW_OOM),
        ("allow-stale", Self::ALLOW_STALE),
        ("no-cluster", Self::NO_CLUSTER),
        ("allow-cross-slot-keys", Self::ALLOW_CROSS_SLOT_KEYS),
    ];

    pub(crate) fn has(self, flag: Self) -> bool {
        self.0 & flag.0 == flag.0
    }

    pub(super) fn named(name: &[u8]) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, flag)| *flag)
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A script's first line, read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Heading {
    pub(super) flags: ScriptFlags,
    /// Bytes before the line end, which stays so that lines keep their numbers.
    pub(super) length: usize,
}

/// The heading of a script; `None` for one of the old kind.
pub(super) fn script_heading(text: &[u8], unknown: UnknownFlags) -> Result<Option<Heading>, Error> {
    if !text.starts_with(b"#!") {
        return Ok(None);
    }
    let Some(length) = memchr::memchr(b'\n', text) else {
        return Err(Error::text("Invalid script shebang"));
    };
    let words = OwnedArgs::split(&text[..length])
        .ok_or_else(|| Error::text("Invalid engine in script shebang"))?;
    let words = words.as_args();
    if words.name() != b"#!lua" {
        return Err(naming("Unexpected engine in script shebang: ", words.name()));
    }
    let mut flags = ScriptFlags::default();
    for word in words.skip(1).iter() {
        let Some(list) = word.strip_prefix(b"flags=") else {
            return Err(naming("Unknown lua shebang option: ", word));
        };
        if list.is_empty() {
            continue;
        }
        for name in list.split(|byte| *byte == b',') {
            match (ScriptFlags::named(name), unknown) {
                (Some(flag), _) => flags = flags.and(flag),
                (None, UnknownFlags::Accept) => {}
                (None, UnknownFlags::Refuse) => {
                    let what = "Unexpected flag in script shebang: ";
                    return Err(naming(what, name));
                }
            }
        }
    }
    Ok(Some(Heading { flags, length }))
}

/// A library's heading: the engine, the library's name, and where the code begins.
pub(super) fn library_heading(text: &[u8]) -> Result<(Vec<u8>, usize), Error> {
    if !text.starts_with(b"#!") {
        return Err(Error::text("Missing library metadata"));
    }
    let length = memchr::memchr(b'\n', text);
    let Some((words, length)) =
        length.and_then(|length| Some((OwnedArgs::split(&text[..length])?, length)))
    else {
        return Err(Error::text("Invalid library metadata"));
    };
    let words = words.as_args();
    let engine = words.name().strip_prefix(b"#!").unwrap_or_default();
    let mut name = None;
    for word in words.skip(1).iter() {
        let Some(given) = word.strip_prefix(b"name=") else {
            return Err(naming("Invalid metadata value given: ", word));
        };
        if name.replace(given).is_some() {
            let text = "Invalid metadata value, name argument was given multiple times";
            return Err(Error::text(text));
        }
    }
    let Some(name) = name else { return Err(Error::text("Library name was not given")) };
    if !engine.eq_ignore_ascii_case(b"lua") {
        return Err(Error::raw([b"ERR Engine '", engine, b"' not found"].concat()));
    }
    Ok((name.to_vec(), length))
}

fn naming(what: &str, word: &[u8]) -> Error {
    Error::raw([b"ERR ", what.as_bytes(), word].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> String {
        match script_heading(text.as_bytes(), UnknownFlags::Refuse) {
            Ok(heading) => format!("{:?}", heading.map(|heading| heading.length)),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn script_headings_are_read_as_redis_reads_them() {
        let table = [
            ("return 1", "None"),
            ("#!lua\nreturn 1", "Some(5)"),
            ("#!lua flags=\nreturn 1", "Some(12)"),
            ("#!lua flags=no-writes,allow-oom  \n", "Some(33)"),
            ("#!\"lua\" 'flags=no-writes'\n", "Some(25)"),
            ("#!lua flags=\"no-writes\n", "ERR Invalid engine in script shebang"),
            ("#! lua\n", "ERR Unexpected engine in script shebang: #!"),
            ("#!lua flags=no-writes,\n", "ERR Unexpected flag in script shebang: "),
            ("#!lua", "ERR Invalid script shebang"),
            ("#!python\n", "ERR Unexpected engine in script shebang: #!python"),
            ("#!lua name=x\n", "ERR Unknown lua shebang option: name=x"),
            ("#!lua flags=no-writes,x\n", "ERR Unexpected flag in script shebang: x"),
        ];
        for (text, expected) in table {
            assert_eq!(script(text), expected, "{text}");
        }
        let text = b"#!lua flags=allow-key-locking,no-writes\nreturn 1";
        let heading = script_heading(text, UnknownFlags::Accept).unwrap().unwrap();
        assert!(heading.flags.has(ScriptFlags::NO_WRITES));
        assert!(!heading.flags.has(ScriptFlags::ALLOW_OOM));
    }

    #[test]
    fn library_headings_are_read_as_redis_reads_them() {
        let table = [
            ("x", "ERR Missing library metadata"),
            ("#!lua", "ERR Invalid library metadata"),
            ("#!lua\nx", "ERR Library name was not given"),
            ("#!foo name=a\nx", "ERR Engine 'foo' not found"),
            ("#! name=a\nx", "ERR Engine '' not found"),
            ("#!\nx", "ERR Library name was not given"),
            ("#! lua name=a\nx", "ERR Invalid metadata value given: lua"),
            ("#!lua name=\"a\nx", "ERR Invalid library metadata"),
            ("#!lua foo=a\nx", "ERR Invalid metadata value given: foo=a"),
            (
                "#!lua name=a name=b\nx",
                "ERR Invalid metadata value, name argument was given multiple times",
            ),
        ];
        for (text, expected) in table {
            let error = library_heading(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), expected, "{text}");
        }
        assert_eq!(library_heading(b"#!LUA name=a\nx"), Ok((b"a".to_vec(), 12)));
        assert_eq!(library_heading(b"#!lua name=\"a\\x62\"\nx"), Ok((b"ab".to_vec(), 18)));
    }
}
