//! A way between two programs that the test can cut and mend.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Passes on what it gets; while it is cut, whoever comes is turned away.
pub(crate) struct Relay {
    port: u16,
    ways: Arc<Mutex<Ways>>,
}

#[derive(Default)]
struct Ways {
    is_cut: bool,
    /// Both ends of each connection that has not ended.
    open: Vec<[TcpStream; 2]>,
}

impl Relay {
    pub(crate) fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let ways = Arc::new(Mutex::new(Ways::default()));
        let relay = Self { port, ways: Arc::clone(&ways) };
        std::thread::spawn(move || {
            for came in listener.incoming().map_while(Result::ok) {
                let mut ways = ways.lock().expect("no thread panics with it");
                // Whoever is dropped here sees its connection end.
                if let (false, Ok(going)) = (ways.is_cut, TcpStream::connect(to)) {
                    pass(&came, &going);
                    pass(&going, &came);
                    ways.open.push([came, going]);
                }
            }
        });
        relay
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn cut(&self) {
        let mut ways = self.ways.lock().expect("no thread panics with it");
        ways.is_cut = true;
        for end in ways.open.drain(..).flatten() {
            // It may have ended by itself.
            drop(end.shutdown(Shutdown::Both));
        }
    }

    pub(crate) fn mend(&self) {
        self.ways.lock().expect("no thread panics with it").is_cut = false;
    }

    /// Connections since it was last cut.
    pub(crate) fn connections(&self) -> usize {
        self.ways.lock().expect("no thread panics with it").open.len()
    }
}

fn pass(from: &TcpStream, to: &TcpStream) {
    let mut from = from.try_clone().expect("a descriptor");
    let mut to = to.try_clone().expect("a descriptor");
    std::thread::spawn(move || {
        let mut buffer = [0; 4_096];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        // Either may have gone already.
        drop(to.shutdown(Shutdown::Both));
        drop(from.shutdown(Shutdown::Both));
    });
}
