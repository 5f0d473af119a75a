//! For tests: an etcd of their own, on ports that were free, and settings that lead there.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use super::members::Members;
use super::options::EtcdOptions;

pub(super) fn members<const N: usize>(endpoints: [String; N]) -> Members {
    let settings = "{enabled: true, endpoints: [], prefix: /policies/, user: '', password: '', \
                    start_wait: 1s, tls: {ca: '', certificate: '', key: '', server_name: ''}}";
    let options: EtcdOptions = serde_yaml::from_str(settings).expect("settings");
    Members::new(EtcdOptions { endpoints: endpoints.into(), ..options })
}

/// An etcd of the test's own.
pub(super) struct Member {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Member {
    pub(super) fn start() -> Self {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let [port, peer_port] =
            listeners.map(|listener| listener.local_addr().expect("it is bound").port());
        let folder = tempfile::tempdir().expect("a folder");
        let [url, peer] = [port, peer_port].map(|port| format!("http://127.0.0.1:{port}"));
        let mut child = Command::new("etcd")
            .args(["--name", "test", "--unsafe-no-fsync", "--log-outputs", "stderr"])
            .arg("--data-dir")
            .arg(folder.path())
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("test={peer}")])
            .stderr(Stdio::piped())
            .spawn()
            .expect("etcd is installed: scripts/needs.sh");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let mut log = lines.by_ref().map_while(Result::ok);
        assert!(log.any(|line| line.contains("ready to serve client requests")));
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port, _folder: folder }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn kill(&mut self) {
        // It may have gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}
