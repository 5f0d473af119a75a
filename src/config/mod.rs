//! Every setting and its default.
//!
//! Four layers, each over the one before: `config/tollgate.yaml` (embedded, the only place of
//! defaults), a file, the environment, flags. A layer says only what differs. Each value is
//! read as its type the moment it is laid on, so that a complaint names the place where the
//! wrong word stands; relations between settings are proven when all layers lie.
//!
//! No other room reads the environment.

mod error;
mod file;
mod layers;
mod relations;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::commands::{
    DecisionLogOptions, LatencyOptions, LimitOptions, LoadOptions, ScriptOptions, SlowlogOptions,
};
use crate::engine;
use crate::prefilter;
use crate::server;
use crate::store;
use crate::telemetry;
use crate::watch;

pub(crate) use error::Error;
use layers::Layers;

/// The settings in force: one field a section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) server: server::Options,
    pub(crate) engine: engine::Options,
    pub(crate) prefilter: prefilter::Options,
    pub(crate) limits: LimitOptions,
    pub(crate) policies: watch::Options,
    pub(crate) load: LoadOptions,
    pub(crate) store: store::Options,
    pub(crate) lua: ScriptOptions,
    pub(crate) slowlog: SlowlogOptions,
    pub(crate) latency: LatencyOptions,
    pub(crate) log: telemetry::Options,
    pub(crate) decision_log: DecisionLogOptions,
}

/// A setting given on the command line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Flag {
    /// The flag as a complaint should name it, such as `--port`.
    pub(crate) name: String,
    /// The setting, such as `server.port`.
    pub(crate) path: String,
    /// The value as written; a list is separated by commas.
    pub(crate) value: String,
}

impl Settings {
    /// The defaults under `file`, under what `environment` says in `TOLLGATE_*`, under `flags`.
    pub(crate) fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: &[Flag],
    ) -> Result<Self, Error> {
        let mut layers = Layers::default();
        if let Some(path) = file {
            file::lay(&mut layers, path)?;
        }
        layers.lay_environment(environment)?;
        layers.lay_flags(flags)?;
        let settings = layers.settings();
        relations::prove(&settings)?;
        Ok(settings)
    }

    /// All of them as a document that can be read back, but for the password.
    pub(crate) fn render(&self) -> String {
        serde_yaml::to_string(self).expect("settings are maps, lists and text")
    }
}

impl Settings {
    /// Every setting by its path, such as `server.port`, with its value as text.
    pub(crate) fn flatten(&self) -> Vec<(String, String)> {
        let mut flat = Vec::new();
        let value = serde_yaml::to_value(self).expect("settings are maps, lists and text");
        flatten_into(&mut flat, "", &value);
        flat
    }
}

fn flatten_into(flat: &mut Vec<(String, String)>, path: &str, value: &serde_yaml::Value) {
    if let serde_yaml::Value::Mapping(mapping) = value {
        for (key, value) in mapping {
            let key = key.as_str().unwrap_or_default();
            let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            flatten_into(flat, &path, value);
        }
        return;
    }
    let text = serde_yaml::to_string(value).expect("settings are maps, lists and text");
    flat.push((path.to_owned(), text.trim().to_owned()));
}

/// The environment of this process; a name or value that is not UTF-8 is read as near as can be.
pub(crate) fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().map(|(name, value)| {
        (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::{Bytes, OrAuto};
    use crate::time::Duration;

    fn load(
        document: &str,
        environment: &[(&str, &str)],
        flags: &[Flag],
    ) -> Result<Settings, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("my.yaml");
        std::fs::write(&path, document).expect("the file is written");
        let environment =
            environment.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let loaded = Settings::load(Some(&path), environment, flags);
        let folder = format!("{}/", folder.path().display());
        loaded.map_err(|err| err.to_string().replace(&folder, ""))
    }

    fn flag(name: &str, path: &str, value: &str) -> Flag {
        Flag { name: name.into(), path: path.into(), value: value.into() }
    }

    #[test]
    fn each_layer_lies_over_the_one_before() {
        let document = "server:\n  port: 1\n  backlog: 1\n  http: {bind: 127.0.0.2}\nengine:\n";
        let environment = [
            ("TOLLGATE_SERVER_PORT", "2"),
            ("TOLLGATE_SERVER_BIND", "127.0.0.1,::1"),
            ("TOLLGATE_SERVER_HTTP_PORT", "9090"),
            ("TOLLGATE_SERVER_PASSWORD", "0123"),
            ("TOLLGATE_ENGINE_MEMORY_MAX", "64mb"),
            ("PATH", "/bin"),
        ];
        let flags = [flag("--port", "server.port", "3"), flag("--set", "slowlog.threshold", "1s")];
        let settings = load(document, &environment, &flags).expect("all of it is right");
        assert_eq!(settings.server.port, 3);
        assert_eq!(settings.server.backlog, 1);
        assert_eq!(settings.server.bind.len(), 2);
        assert_eq!(settings.server.http.bind.to_string(), "127.0.0.2");
        assert_eq!(settings.server.http.port, OrAuto::Exactly(9090));
        assert_eq!(settings.server.password.secret(), Some("0123"));
        assert_eq!(settings.engine.memory_max, OrAuto::Exactly(Bytes::new(64 << 20)));
        assert_eq!(settings.slowlog.threshold, Duration::from_secs(1));
        assert_eq!(settings.server.pipeline_max.get(), 1024);
    }

    #[test]
    fn wrong_file_is_told_the_place_and_what_is_right() {
        let rows = [
            (
                "server:\n  prot: 1\n",
                "my.yaml:2:3: server: unknown setting `prot`, the nearest is `server.port`",
            ),
            ("port: 1\n", "my.yaml:1:1: unknown setting `port`, the nearest is `server.port`"),
            ("egnine: {}\n", "my.yaml:1:1: unknown setting `egnine`, the nearest is `engine`"),
            (
                "server:\n  port: 1\n  port: 2\n",
                "my.yaml:3:3: server: `port` stands here a second time",
            ),
            ("log: {}\nlog: {}\n", "my.yaml:2:1: `log` stands here a second time"),
            (
                "server:\n  port: 70000\n",
                "my.yaml:2:9: server.port: it cannot be `70000`, \
                 expected a whole number from 0 to 65535 (the default is `6379`)",
            ),
            (
                "server:\n  http:\n    bind: localhost\n",
                "my.yaml:3:11: server.http.bind: it cannot be `localhost`, \
                 expected an IP address such as 127.0.0.1 or ::1 (the default is `127.0.0.1`)",
            ),
            (
                "log: {level: loud}\n",
                "my.yaml:1:14: log.level: it cannot be `loud`, expected one of `error`, `warn`, \
                 `info`, `debug` (the default is `info`)",
            ),
            (
                "server:\n  idle_timeout: 300\n",
                "my.yaml:2:17: server.idle_timeout: it cannot be `300`, expected a number with a \
                 unit such as 500ms, 30s, 5m, 1h or 1d (the default is `0s`)",
            ),
            (
                "engine:\n  shards: 100\n",
                "my.yaml:2:11: engine.shards: it cannot be `100`, \
                 expected a power of two from 1 to 4096, such as 128 (the default is `256`)",
            ),
            (
                "server:\n  bind: []\n  args_max: 0\n",
                "my.yaml:3:13: server.args_max: it cannot be `0`, \
                 expected a whole number above 0 (the default is `1048576`)",
            ),
            (
                "log: 5\n",
                "my.yaml:1:6: log: invalid type: integer `5`, \
                 expected a section with the keys format, level",
            ),
        ];
        for (document, complaint) in rows {
            assert_eq!(load(document, &[], &[]).expect_err(document), complaint);
        }
    }

    #[test]
    fn bound_that_lets_nothing_through_is_refused() {
        let rows = [
            (
                "server: {output_bytes_max: 0kb}",
                "my.yaml:1:28: server.output_bytes_max: it cannot be `0kb`, \
                 expected at least 1 byte, for nothing fits into none (the default is `64mb`)",
            ),
            (
                "limits: {log_entries_max: 255}",
                "my.yaml:1:27: limits.log_entries_max: it cannot be `255`, \
                 expected a whole number from 256 to 4294967295 (the default is `65536`)",
            ),
        ];
        for (document, complaint) in rows {
            assert_eq!(load(document, &[], &[]).expect_err(document), complaint);
        }
    }

    #[test]
    fn broken_yaml_is_told_the_place() {
        let complaint = load("server:\n  port: [1\n", &[], &[]).expect_err("a bracket is open");
        assert!(complaint.starts_with("my.yaml:"), "{complaint}");
        let complaint = load("a: 1\n---\nb: 2\n", &[], &[]).expect_err("two documents");
        assert!(complaint.starts_with("my.yaml"), "{complaint}");
    }

    #[test]
    fn empty_file_changes_nothing() {
        for document in ["", "# nothing\n", "server:\n", "{}"] {
            assert_eq!(load(document, &[], &[]).expect(document).server.port, 6379);
        }
    }

    #[test]
    fn file_that_cannot_be_read_is_told() {
        let complaint = Settings::load(Some(Path::new("/nowhere/my.yaml")), [], &[]);
        let complaint = anyhow::Error::from(complaint.expect_err("there is none"));
        let told = format!("{complaint:#}");
        assert_eq!(
            told,
            "read settings from /nowhere/my.yaml: No such file or directory (os error 2)"
        );
        let complaint = load(&"#".repeat((1 << 20) + 1), &[], &[]).expect_err("it is too large");
        assert_eq!(complaint, "my.yaml has more than 1mb; settings have less");
    }

    #[test]
    fn wrong_environment_names_the_variable() {
        let complaint = load("", &[("TOLLGATE_SERVER_PROT", "1")], &[]).expect_err("misspelt");
        assert_eq!(
            complaint,
            "TOLLGATE_SERVER_PROT: no such setting, the nearest is `TOLLGATE_SERVER_PORT`"
        );
        let complaint = load("", &[("TOLLGATE_SERVER_PORT", "x")], &[]).expect_err("no number");
        assert!(complaint.starts_with("TOLLGATE_SERVER_PORT: it cannot be `x`"), "{complaint}");
    }

    #[test]
    fn wrong_flag_is_named() {
        let complaint = load("", &[], &[flag("--set", "server.prt", "1")]).expect_err("misspelt");
        assert_eq!(complaint, "--set: unknown setting `server.prt`, the nearest is `server.port`");
        let complaint = load("", &[], &[flag("--set", "server.http", "1")]).expect_err("a section");
        assert_eq!(
            complaint,
            "--set: `server.http` is a section, name one of its keys: enabled, bind, port"
        );
        let complaint = load("", &[], &[flag("--port", "server.port", "x")]).expect_err("a word");
        assert!(complaint.starts_with("--port: it cannot be `x`"), "{complaint}");
    }

    #[test]
    fn secret_stays_out_of_complaints_and_of_what_is_shown() {
        let settings = load("server: {password: hunter2}", &[], &[]).expect("it is right");
        assert!(settings.render().contains("password: '***'"), "{}", settings.render());
        assert!(!format!("{settings:?}").contains("hunter2"));
        let complaint = load("server: {password: 4711}", &[], &[]).expect_err("a number");
        assert!(!complaint.contains("4711"), "{complaint}");
    }

    #[test]
    fn rendered_settings_are_the_embedded_document() {
        let settings = load("", &[], &[]).expect("the defaults are right");
        let shown: serde_yaml::Value = serde_yaml::from_str(&settings.render()).expect("YAML");
        let embedded: serde_yaml::Value = serde_yaml::from_str(layers::DEFAULTS).expect("YAML");
        assert_eq!(shown, embedded);
    }
}
