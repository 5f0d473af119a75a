//! What operators deploy: the Dockerfile, the compose file and the systemd unit say only what is
//! there, and are read by the program as they stand.
//!
//! No image is built here. What can be wrong without one is looked at: paths, flags, settings,
//! and that the health command tells a server that is well from one that is not.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_yaml::Value;

use crate::server::{Tollgate, command};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The instructions of the Dockerfile, continued lines joined.
fn instructions() -> Vec<(String, String)> {
    let text = read("docker/Dockerfile").replace("\\\n", " ");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let told = lines.filter(|line| !line.starts_with('#')).map(|line| {
        let (word, rest) = line.split_once(' ').expect("a word and the rest");
        (word.to_owned(), rest.trim().to_owned())
    });
    told.collect()
}

fn all_of(word: &str) -> Vec<String> {
    let of_word = instructions().into_iter().filter(|(first, _)| first == word);
    of_word.map(|(_, rest)| rest).collect()
}

/// A list as the JSON form of CMD writes it.
fn words(json: &str) -> Vec<String> {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

/// What the program makes of flags and environment. Panics with its words where it refuses them.
fn config(flags: &[&str], environment: &BTreeMap<String, String>) -> Value {
    let mut config = command(&[&["config"], flags].concat());
    let output = config.envs(environment).output().expect("the program is built");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{flags:?} {environment:?}: {error}");
    serde_yaml::from_slice(&output.stdout).expect("it prints YAML")
}

/// The part of a document under a path such as `server.http`.
fn part<'v>(document: &'v Value, path: &str) -> &'v Value {
    path.split('.').fold(document, |value, key| {
        value.get(key).unwrap_or_else(|| panic!("{path} is not in the document"))
    })
}

fn text(document: &Value, path: &str) -> String {
    part(document, path).as_str().unwrap_or_else(|| panic!("{path} is no text")).to_owned()
}

fn texts(document: &Value, path: &str) -> Vec<String> {
    let list = part(document, path).as_sequence().unwrap_or_else(|| panic!("{path}: no list"));
    list.iter().map(|one| one.as_str().expect("a text").to_owned()).collect()
}

#[test]
fn what_the_dockerfile_copies_is_there() {
    let manifest: String = read("Cargo.toml");
    let rust = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \""));
    let rust = rust.expect("the manifest names one").trim_end_matches('"');
    assert!(all_of("FROM")[0].starts_with(&format!("rust:{rust}-")), "builds with another Rust");
    let mut of_build = 0;
    for copy in all_of("COPY") {
        let Some(rest) = copy.strip_prefix("--from=build /src/") else {
            assert_eq!(copy, ". .", "a path of the context");
            continue;
        };
        let source = rest.split(' ').next().expect("a path");
        let built = source.strip_prefix("target/release/");
        assert!(built.map_or_else(|| root().join(source).exists(), |name| name == "tollgate"));
        of_build += 1;
    }
    assert_eq!(of_build, 2, "the program and its licence");
    assert!(all_of("USER").last().is_some_and(|user| user != "root"));
}

#[test]
fn settings_of_the_image_are_settings() {
    let pairs = all_of("ENV").join(" ");
    let environment: BTreeMap<String, String> = pairs
        .split_whitespace()
        .map(|pair| pair.split_once('=').expect("NAME=value"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let config = config(&[], &environment);
    assert_eq!(texts(&config, "server.bind"), ["0.0.0.0"]);
    assert_eq!(text(&config, "log.format"), "json");
    let volume = all_of("VOLUME").remove(0);
    assert!(text(&config, "policies.last_good").starts_with(&format!("{volume}/")));
    let exposed = [part(&config, "server.port"), part(&config, "server.http.port")];
    let exposed = exposed.map(|port| port.as_u64().map_or("7379".to_owned(), |n| n.to_string()));
    assert_eq!(all_of("EXPOSE"), [exposed.join(" ")]);
}

#[test]
fn health_command_of_the_image_tells_well_from_gone() {
    let check = all_of("HEALTHCHECK").remove(0);
    let (_, json) = check.split_once("CMD ").expect("a command");
    let words = words(json);
    assert_eq!(words[0], "tollgate");
    let tollgate = Tollgate::start(&[]);
    let port = tollgate.http_port().to_string();
    let arguments: Vec<String> =
        words[1..].iter().map(|word| word.replace("7379", &port)).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let health = |more: &[&str]| {
        let output = command(&[&arguments, more].concat()).output().expect("it is built");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(health(&[]), (Some(0), "{\"status\":\"live\"}\n".to_owned()));
    assert_eq!(health(&["--ready"]), (Some(0), "{\"status\":\"ready\"}\n".to_owned()));
    tollgate.stop();
    assert_eq!(health(&[]), (Some(1), String::new()));
    let wrong = command(&["health", "--url", "127.0.0.1:7379"]).output().expect("it is built");
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn compose_file_names_what_is_there() {
    let compose: Value = serde_yaml::from_str(&read("docker/compose.yaml")).expect("it is YAML");
    let docker = root().join("docker");
    let context = docker.join(text(&compose, "services.tollgate.build.context"));
    assert!(context.join(text(&compose, "services.tollgate.build.dockerfile")).exists());
    let named = part(&compose, "volumes").as_mapping().expect("a mapping");
    for (name, service) in part(&compose, "services").as_mapping().expect("a mapping") {
        for port in texts(service, "ports") {
            assert!(port.starts_with("127.0.0.1:"), "{name:?} faces others at {port}");
        }
        for volume in texts(service, "volumes") {
            let (source, _) = volume.split_once(':').expect("a source and a place");
            let is_there = docker.join(source).exists() && source.starts_with("../");
            assert!(is_there || named.contains_key(source), "{source} is not there");
        }
    }
}

#[test]
fn compose_file_starts_the_server_with_settings_that_it_has() {
    let compose: Value = serde_yaml::from_str(&read("docker/compose.yaml")).expect("it is YAML");
    let tollgate = part(&compose, "services.tollgate");
    let environment = part(tollgate, "environment").as_mapping().expect("a mapping");
    let environment: BTreeMap<String, String> = environment
        .iter()
        .map(|(name, value)| (name.as_str().expect("a name"), value.as_str().expect("a text")))
        .map(|(name, value)| (name.to_owned(), substituted(value)))
        .collect();
    let command = texts(tollgate, "command");
    let flags: Vec<&str> = command[1..].iter().map(String::as_str).collect();
    assert_eq!(command[0], "serve");
    let config = config(&flags, &environment);
    assert_eq!(texts(&config, "policies.etcd.endpoints"), ["http://etcd:2379"]);
    assert_eq!(text(&config, "server.http.bind"), "0.0.0.0");
    assert_eq!(part(&config, "server.protected_mode"), &Value::Bool(false));
    for password in ["server.password", "server.operator_password"] {
        assert_eq!(text(&config, password), "***", "{password} is set");
    }
    let scraped: Value =
        serde_yaml::from_str(&read("config/prometheus/prometheus.yml")).expect("it is YAML");
    let job = &part(&scraped, "scrape_configs").as_sequence().expect("a list")[0];
    let targets = &part(job, "static_configs").as_sequence().expect("a list")[0];
    assert_eq!(texts(targets, "targets"), ["tollgate:7379"]);
}

/// What compose makes of `${NAME:-default}` where NAME is not set.
fn substituted(value: &str) -> String {
    let default = value.strip_prefix("${").and_then(|rest| rest.split_once(":-"));
    default.map_or(value, |(_, rest)| rest.trim_end_matches('}')).to_owned()
}

#[test]
fn systemd_unit_starts_the_server_as_it_can_be_started() {
    let unit = read("config/systemd/tollgate.service");
    let of = |key: &str| -> Vec<String> {
        unit.lines()
            .filter_map(|line| line.strip_prefix(key)?.strip_prefix('='))
            .map(String::from)
            .collect()
    };
    let start = of("ExecStart").remove(0);
    let mut flags = start.split(' ');
    assert!(flags.next().is_some_and(|program| program.ends_with("/tollgate")));
    assert_eq!(flags.next(), Some("serve"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tollgate.yaml");
    fs::write(&file, "server:\n  port: 7001\n").expect("it is written");
    let file = file.to_str().expect("its name is text");
    let flags: Vec<&str> =
        flags.map(|flag| if flag.starts_with("/etc/") { file } else { flag }).collect();
    let environment = of("Environment");
    let environment = environment.iter().map(|pair| pair.split_once('=').expect("NAME=value"));
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = config(&flags, &environment.collect());
    assert_eq!(part(&config, "server.port").as_u64(), Some(7001));
    assert!(text(&config, "policies.last_good").starts_with("/var/lib/tollgate/"));
    assert_eq!(of("StateDirectory"), ["tollgate"]);
    assert_eq!(of("User"), ["tollgate"]);
}
