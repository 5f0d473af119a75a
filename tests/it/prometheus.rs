//! A real Prometheus scrapes a server, and answers every panel of the dashboard and every rule.
//!
//! Its configuration is the one that operators get, with the target and the interval changed. A
//! panel or an alert over a metric that is misspelt, or has gone, answers nothing: that is what
//! is looked for.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tollgate::time::Clock;

use crate::server::Tollgate;

/// Nothing that works takes this long: two scrapes and an evaluation are a few seconds.
const PATIENCE: Duration = Duration::from_secs(90);

const POLICIES: &str = "\
tenants:
  - name: shop
    rules:
      - {name: hard, endpoint: /pay, limit: 1, window: 1h}
      - {name: soft, per: [user], limit: 1, window: 1h, mode: shadow}
";

struct Prometheus {
    child: Child,
    port: u16,
}

impl Prometheus {
    /// Starts it in a folder, with our files but for the target and the interval.
    fn start(folder: &Path, target: u16) -> Self {
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/prometheus");
        let read = |name: &str| fs::read_to_string(ours.join(name)).expect("it is ours");
        let config = read("prometheus.yml");
        let changed = config
            .replace("tollgate:7379", &format!("127.0.0.1:{target}"))
            .replace("interval: 15s", "interval: 1s");
        assert_ne!(config, changed);
        fs::write(folder.join("prometheus.yml"), changed).expect("it is written");
        fs::write(folder.join("rules.yml"), read("rules.yml")).expect("it is written");
        let port = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = port.local_addr().expect("it is bound").port();
        let child = Command::new("prometheus")
            .current_dir(folder)
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus is installed: `make test` sees to it");
        Self { child, port }
    }

    /// What an expression yields now; None while nobody answers.
    fn query(&self, expression: &str) -> Option<Vec<Value>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let query = format!("query={}", encoded(expression));
        let head = "POST /api/v1/query HTTP/1.0\r\nContent-Type: application/x-www-form-urlencoded";
        let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{query}", query.len());
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        let answer: Value = serde_json::from_str(body).ok()?;
        assert_ne!(answer["status"], "error", "{expression}: {answer}");
        answer["data"]["result"].as_array().cloned()
    }

    /// Whether an expression yields a number.
    fn tells(&self, expression: &str) -> bool {
        let samples = self.query(expression).unwrap_or_default();
        let values = samples.iter().filter_map(|sample| sample["value"][1].as_str());
        values.filter_map(|value| value.parse::<f64>().ok()).any(f64::is_finite)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The expressions of the dashboard, by the title of their panel, as Grafana would ask them.
fn panels() -> Vec<(String, String)> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/config/grafana/dashboards/tollgate.json");
    let dashboard = fs::read_to_string(file).expect("it is ours");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("it is JSON");
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().expect("a list") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().expect("a text");
            let asked = expression
                .replace("$__rate_interval", "1m")
                .replace("$instance", ".*")
                .replace("$tenant", ".*");
            assert!(!asked.contains('$'), "{expression} has a variable that nobody fills");
            found.push((panel["title"].as_str().expect("a title").to_owned(), asked));
        }
    }
    found
}

/// What the rules look at, by their name: an alert's expression without its bound.
fn rules() -> BTreeMap<String, String> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/config/prometheus/rules.yml");
    let rules: Value =
        serde_yaml::from_str(&fs::read_to_string(file).expect("it is ours")).expect("it is YAML");
    let groups = rules["groups"].as_array().expect("a list").iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().expect("a list"));
    let looked_at = rules.map(|rule| {
        let expression = rule["expr"].as_str().expect("a text").trim();
        if let Some(name) = rule["record"].as_str() {
            return (name.to_owned(), expression.to_owned());
        }
        let name = rule["alert"].as_str().expect("a name").to_owned();
        let bound = expression.rfind(" > ").or_else(|| expression.rfind(" < "));
        let looked_at = &expression[..bound.unwrap_or_else(|| panic!("{name} has no bound"))];
        (name, looked_at.to_owned())
    });
    looked_at.collect()
}

#[test]
fn every_panel_and_rule_tells_something_of_a_running_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let policies = folder.path().join("policies.yaml");
    fs::write(&policies, POLICIES).expect("it is written");
    let kept = folder.path().join("kept");
    let [policies, kept] = [policies, kept].map(|path| path.into_os_string().into_string());
    let (policies, kept) = (policies.expect("text"), kept.expect("text"));
    let tollgate = Tollgate::start(&["--policies", &policies, "--data-dir", &kept]);
    let prometheus = Prometheus::start(folder.path(), tollgate.http_port());
    let mut open: Vec<(String, String)> = panels().into_iter().chain(rules()).collect();
    assert!(open.len() > 30, "only {} expressions", open.len());
    let mut connection = tollgate.connect();
    let clock = Clock::system();
    let begun = clock.now();
    while !open.is_empty() {
        let waited = clock.now().since(begun).as_std();
        assert!(waited < PATIENCE, "nothing is told of: {open:#?}");
        for words in ["RL.CHECK shop /pay ATTR user u1", "RL.CHECK nobody -", "RL.LIMIT k 1 1h"] {
            connection.line(words);
        }
        open.retain(|(_, expression)| !prometheus.tells(expression));
    }
    let down = prometheus.query("up{job=\"tollgate\"} < 1");
    assert_eq!(down, Some(Vec::new()), "it is up");
}

#[test]
fn alerts_and_what_to_do_about_them_are_the_same_set() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/docker/README.md");
    let readme = fs::read_to_string(readme).expect("it is ours");
    let told: Vec<&str> =
        readme.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let told: Vec<&str> = told.into_iter().filter(|name| name.starts_with("Tollgate")).collect();
    let rules = rules();
    let alerts: Vec<&str> =
        rules.keys().map(String::as_str).filter(|name| name.starts_with("Tollgate")).collect();
    let mut sorted = told.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, alerts);
}

#[test]
fn files_of_prometheus_are_what_its_own_tool_takes() {
    let check = Command::new("promtool")
        .args(["check", "config", "config/prometheus/prometheus.yml"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("promtool comes with prometheus");
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
}
