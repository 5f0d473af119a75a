//! The flags that change settings, shared by the subcommands that have settings.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::config::{self, Error, Flag, Settings};

/// `--port` and its like are short for `--set`; where both are given, `--set` wins.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Settings")]
pub(super) struct SettingFlags {
    /// YAML file of settings; it needs to hold only what differs from the defaults
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on, by default 127.0.0.1; may be given more than once
    #[arg(long, value_name = "ADDR")]
    bind: Vec<IpAddr>,
    /// Port for RESP, by default 6379; 0 takes a free one and prints it
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Port for HTTP; without it, the RESP port plus 1000
    #[arg(long, value_name = "N")]
    http_port: Option<u16>,
    /// Folder or file of policy documents
    #[arg(long, value_name = "PATH")]
    policies: Option<PathBuf>,
    /// Read policies from etcd: members such as <http://127.0.0.1:2379>
    #[arg(long, value_name = "URL,...", conflicts_with = "policies")]
    etcd: Option<String>,
    /// Folder for snapshots and the journal; without it everything is kept in memory only
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Any setting by its name, such as `engine.memory_max=512mb`; may be given more than once
    #[arg(long, value_name = "SECTION.KEY=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
}

impl SettingFlags {
    /// The settings that these flags, their file and the environment make.
    pub(super) fn load(&self) -> Result<Settings, Error> {
        Settings::load(self.config.as_deref(), config::environment(), &self.flags())
    }

    /// The same without the environment: a test's server is what the test says.
    pub(super) fn load_without_environment(&self) -> Result<Settings, Error> {
        Settings::load(self.config.as_deref(), [], &self.flags())
    }

    pub(super) fn file(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    fn flags(&self) -> Vec<Flag> {
        let bind = self.bind.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(",");
        let shown = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let named = [
            ("--bind", "server.bind", Some(bind).filter(|addresses| !addresses.is_empty())),
            ("--port", "server.port", self.port.map(|port| port.to_string())),
            ("--http-port", "server.http.port", self.http_port.map(|port| port.to_string())),
            ("--policies", "policies.path", shown(&self.policies)),
            ("--data-dir", "store.path", shown(&self.data_dir)),
            ("--etcd", "policies.etcd.endpoints", self.etcd.clone()),
            ("--etcd", "policies.etcd.enabled", self.etcd.is_some().then(|| "true".to_owned())),
        ];
        let named = named.into_iter().filter_map(|(name, path, value)| {
            Some(Flag { name: name.to_owned(), path: path.to_owned(), value: value? })
        });
        let set = self.set.iter().map(|(path, value)| Flag {
            name: format!("--set {path}"),
            path: path.clone(),
            value: value.clone(),
        });
        named.chain(set).collect()
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(path, value)| (path.trim().to_owned(), value.to_owned()))
        .ok_or_else(|| "expected section.key=value, such as server.port=7000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: SettingFlags,
    }

    #[test]
    fn flags_become_settings() {
        let line = "t --bind 127.0.0.1 --bind ::1 --port 7 --http-port 8 --set log.level=warn";
        let flags = Line::parse_from(line.split(' ')).settings.flags();
        let settings = Settings::load(None, [], &flags).expect("all of it is right");
        assert_eq!(settings.server.bind.len(), 2);
        assert_eq!(settings.server.port, 7);
        assert_eq!(settings.server.http.port.to_string(), "8");
        assert!(settings.render().contains("level: warn"));
    }

    #[test]
    fn one_flag_turns_etcd_on_and_names_its_members() {
        let line = "t --etcd http://a:1,http://b:2";
        let flags = Line::parse_from(line.split(' ')).settings.flags();
        let settings = Settings::load(None, [], &flags).expect("all of it is right");
        assert!(settings.policies.etcd.enabled);
        assert_eq!(settings.policies.etcd.endpoints, ["http://a:1", "http://b:2"]);
        let both = Line::try_parse_from("t --etcd http://a:1 --policies b".split(' '));
        assert!(both.is_err());
    }

    #[test]
    fn value_may_hold_an_equals_sign() {
        assert_eq!(assignment("server.password=a=b"), Ok(("server.password".into(), "a=b".into())));
    }
}
