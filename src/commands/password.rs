//! A password among the settings, which is shown to nobody: not in the log, not by `tollgate
//! config`, not in a complaint.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// A password that neither `Debug` nor `Serialize` tells.
#[derive(Clone, Deserialize, Eq, PartialEq)]
pub(crate) struct Password(String);

impl Password {
    /// What must be said; `None` where nobody asks.
    pub(crate) fn secret(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|secret| !secret.is_empty())
    }

    fn shown(&self) -> &'static str {
        if self.secret().is_some() { "***" } else { "" }
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown())
    }
}

impl Serialize for Password {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_never_shown() {
        let password = Password("hunter2".into());
        assert_eq!(password.secret(), Some("hunter2"));
        assert_eq!(format!("{password:?}"), "\"***\"");
        assert_eq!(serde_yaml::to_string(&password).expect("text"), "'***'\n");
    }

    #[test]
    fn empty_password_asks_nobody() {
        let password = Password(String::new());
        assert_eq!(password.secret(), None);
        assert_eq!(format!("{password:?}"), "\"\"");
    }
}
