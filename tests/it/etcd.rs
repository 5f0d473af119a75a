//! An etcd of the test's own, on ports that were free, and a client of it.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use etcd_client::{Client, ConnectOptions, Error, Txn, TxnOp};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Operations of one transaction, by etcd's own default.
const TXN_OPS_MAX: usize = 128;

pub(crate) struct Etcd {
    child: Option<Child>,
    folder: TempDir,
    ports: [u16; 2],
    flags: Vec<String>,
    options: ConnectOptions,
    runtime: Runtime,
}

impl Etcd {
    pub(crate) fn start() -> Self {
        Self::start_with(|_| (Vec::new(), ConnectOptions::new()))
    }

    /// With flags, and options for our client, that may need files in the folder they are given.
    pub(crate) fn start_with(prepare: impl FnOnce(&Path) -> (Vec<String>, ConnectOptions)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (flags, options) = prepare(folder.path());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let mut etcd = Self { child: None, folder, ports: free_ports(), flags, options, runtime };
        etcd.restart();
        etcd
    }

    /// Starts it on the ports and data that it had, and waits until it serves.
    pub(crate) fn restart(&mut self) {
        let [peer_port, _] = self.ports;
        let peer = format!("http://127.0.0.1:{peer_port}");
        let mut child = Command::new("etcd")
            .args(["--name", "test", "--unsafe-no-fsync", "--log-outputs", "stderr"])
            .arg("--data-dir")
            .arg(self.folder.path().join("data"))
            .args(["--listen-client-urls", &self.url(), "--advertise-client-urls", &self.url()])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("test={peer}")])
            .args(&self.flags)
            .stderr(Stdio::piped())
            .spawn()
            .expect("etcd is installed: scripts/needs.sh");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let mut log = lines.by_ref().map_while(Result::ok);
        let serves = log.any(|line| line.contains("ready to serve client requests"));
        // Its log goes on: somebody must read it, or it would wait for its reader.
        std::thread::spawn(move || lines.for_each(drop));
        self.child = Some(child);
        assert!(serves, "etcd does not start");
    }

    pub(crate) fn url(&self) -> String {
        let scheme =
            if self.flags.iter().any(|flag| flag == "--cert-file") { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.ports[1])
    }

    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.ports[1]).into()
    }

    /// A folder that lives as long as it does.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.as_ref().expect("it runs").id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.expect("kill is there").success());
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
        }
    }

    /// Does something with a client. Returns what comes of it.
    pub(crate) fn ask<T>(
        &self,
        work: impl AsyncFnOnce(Client) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.runtime.block_on(async {
            let client = Client::connect([self.url()], Some(self.options.clone())).await?;
            work(client).await
        })
    }

    /// Writes a document. Returns its revision.
    pub(crate) fn put(&self, key: &str, text: &str) -> i64 {
        let put = async |mut client: Client| client.put(key, text, None).await;
        let put = self.ask(put).expect("it answers");
        put.header().expect("a header").revision()
    }

    pub(crate) fn get(&self, key: &str) -> Option<String> {
        let get = async |mut client: Client| client.get(key, None).await;
        let found = self.ask(get).expect("it answers");
        let text = |key: &etcd_client::KeyValue| key.value_str().expect("it is text").to_owned();
        found.kvs().first().map(text)
    }

    pub(crate) fn delete(&self, key: &str) -> i64 {
        let delete = async |mut client: Client| client.delete(key, None).await;
        let deleted = self.ask(delete).expect("it answers");
        deleted.header().expect("a header").revision()
    }

    /// Writes many documents, in as few transactions as can be.
    pub(crate) fn put_all(&self, documents: &[(String, String)]) {
        let put_all = async |mut client: Client| {
            for documents in documents.chunks(TXN_OPS_MAX) {
                let put =
                    |(key, text): &(String, String)| TxnOp::put(key.as_str(), text.as_str(), None);
                let puts: Vec<TxnOp> = documents.iter().map(put).collect();
                client.txn(Txn::new().and_then(puts)).await?;
            }
            Ok(())
        };
        self.ask(put_all).expect("it answers");
    }

    pub(crate) fn compact(&self, revision: i64) {
        let compact = async |mut client: Client| client.compact(revision, None).await;
        self.ask(compact).expect("it answers");
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Held at one time, so that they differ.
fn free_ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("it is bound").port())
}
