//! The server: engine, commands, listener and HTTP port, made from the settings.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use socket2::Socket;
use tracing::info;

use super::welcome;

use crate::admin::Http;
use crate::commands::{DecisionLog, Initial, NotedLines, Runtime, Service, ThrottleRounding};
use crate::config::Settings;
use crate::engine::Engine;
use crate::machine::Machine;
use crate::protocol::Limits;
use crate::server::{
    self, Ending, HTTP_PORT_OFFSET, HouseOptions, Hub, Identity, Manner, Plan, WatchOptions,
};
use crate::size::OrAuto;
use crate::store::{self, Store};
use crate::telemetry::{self, DecisionWriter, Events};
use crate::time::Clock;
use crate::watch::{self, Target, Watch};

/// Of the memory there is, this part (in quarters) is taken for keys and values by default.
const MEMORY_QUARTERS: u64 = 3;

/// Who answers on the RESP port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Listener {
    Commands,
    /// `+PONG` to everything: the floor that a measurement compares with.
    Pong,
}

/// A server ready to run: its sockets listen already, so its ports are known.
struct Prepared {
    hub: Arc<Hub>,
    plan: Plan,
    http: Option<Socket>,
    watch: Option<Watch>,
    store: Option<Store>,
    decisions: Option<DecisionWriter>,
}

impl Prepared {
    /// Runs until somebody stops the hub. HTTP is there first and goes last.
    async fn run(self) -> anyhow::Result<Ending> {
        let Self { hub, plan, http, watch, store, decisions } = self;
        let service = Arc::clone(hub.service());
        let http = http.map(|socket| Http::start(socket, Arc::clone(&hub))).transpose();
        let http = http.context("start the HTTP port")?;
        let served = server::serve(hub, plan).await;
        if let Some(store) = store {
            // Nobody changes anything any more.
            store.stop();
        }
        if let Some(http) = http {
            http.stop().await;
        }
        if let Some(watch) = watch {
            watch.stop();
        }
        if let Some(writer) = decisions {
            service.decision_log().end();
            writer.join();
        }
        Ok(served?)
    }
}

/// Serves until the process is told to stop. Told so twice it does not wait for its clients, and
/// fails.
pub(crate) fn serve(
    settings: &Settings,
    file: Option<&Path>,
    listener: Listener,
) -> anyhow::Result<()> {
    let events = Events::new();
    telemetry::start_logging(&settings.log, &events);
    telemetry::log_panics(&events);
    raise_descriptor_limit(settings.server.connections_max.get());
    let prepared = prepare(settings, file, listener, Clock::system(), events)?;
    control_thread()?.block_on(async {
        // Before anybody is told that we are there: who knows us may want us to stop.
        let mut signals = server::Signals::listen().context("hear signals")?;
        welcome::tell(settings, &prepared.hub);
        let stopper = Arc::clone(&prepared.hub);
        tokio::spawn(async move {
            let signal = signals.heard().await;
            info!(signal, "asked to stop");
            stopper.stop();
            let signal = signals.heard().await;
            info!(signal, "asked again to stop");
            stopper.hurry();
        });
        match prepared.run().await? {
            Ending::InOrder => Ok(()),
            Ending::Hurried => anyhow::bail!("asked twice to stop, not all was finished"),
            Ending::Abandoned => anyhow::bail!("a script could not be ended before the stop"),
        }
    })
}

/// Starts a server on a thread of its own, told the time by `clock`.
pub(crate) fn start(
    settings: &Settings,
    file: Option<&Path>,
    clock: Clock,
) -> anyhow::Result<Handle> {
    let prepared = prepare(settings, file, Listener::Commands, clock, Events::new())?;
    let runtime = control_thread()?;
    let stopper = Arc::clone(&prepared.hub);
    let thread = std::thread::Builder::new()
        .name("control".into())
        .spawn(move || runtime.block_on(prepared.run()))?;
    Ok(Handle { hub: stopper, thread: Some(thread) })
}

/// A server that runs beside the caller.
#[derive(Debug)]
pub(crate) struct Handle {
    hub: Arc<Hub>,
    thread: Option<std::thread::JoinHandle<anyhow::Result<Ending>>>,
}

impl Handle {
    pub(crate) fn port(&self) -> u16 {
        self.hub.identity().tcp_port
    }

    pub(crate) fn http_port(&self) -> Option<u16> {
        self.hub.identity().http_port
    }

    /// Stops the server and waits until it has.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        self.hub.stop();
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().map_err(|_| anyhow::anyhow!("the control thread panicked"))??;
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.hub.stop();
    }
}

fn prepare(
    settings: &Settings,
    file: Option<&Path>,
    listener: Listener,
    clock: Clock,
    events: Events,
) -> anyhow::Result<Prepared> {
    let options = &settings.server;
    let hosts: Vec<String> = options.bind.iter().map(IpAddr::to_string).collect();
    let sockets = server::bind(&hosts, options.port, options.backlog)?;
    let port = sockets.first().and_then(server::local_port).context("no address to listen on")?;
    let http = bind_http(settings, port)?;
    let workers = worker_count(settings);
    let identity = Identity {
        run_id: run_id()?,
        config_file: file.map(|path| path.display().to_string()).unwrap_or_default(),
        tcp_port: port,
        http_port: http.as_ref().and_then(server::local_port),
        workers,
        settings: settings.flatten(),
    };
    let manner = Manner {
        limits: limits(settings),
        workers,
        keepalive: options.keepalive,
        pong: listener == Listener::Pong,
        beats: settings.load.enabled,
    };
    let house = HouseOptions {
        expiry_period: settings.engine.expiry_period,
        expiry_budget: settings.engine.expiry_budget,
    };
    let watch = WatchOptions {
        enabled: settings.load.enabled,
        sample_period: settings.load.sample_period,
        queue_timeout: settings.load.queue_timeout,
        in_flight_bytes_max: settings.load.in_flight_bytes_max,
    };
    let plan = Plan { sockets, manner, house, watch, drain_timeout: options.drain_timeout };
    let (decision_log, lines) = DecisionLog::new(&settings.decision_log);
    let decisions = lines.map(|lines| write_decisions(lines, &settings.decision_log.path));
    let hub = hub(settings, clock, (identity, events), decision_log)?;
    let store = open_store(settings, &hub)?;
    let watch = watch_policies(settings, &hub)?;
    if let Some(watch) = &watch {
        hub.write_policies_by(watch.writer().clone());
    }
    let decisions = decisions.transpose()?;
    Ok(Prepared { hub, plan, http, watch, store, decisions })
}

/// Takes over what the data folder holds, where there is one.
fn open_store(settings: &Settings, hub: &Hub) -> anyhow::Result<Option<Store>> {
    let target = store::Target { service: Arc::clone(hub.service()), clock: hub.clock().clone() };
    let store = store::open(&settings.store, target)?;
    if let Some(store) = &store {
        hub.save_by(store.saver().clone());
    }
    Ok(store)
}

/// Begins to watch policies, where there are any to watch.
fn watch_policies(settings: &Settings, hub: &Hub) -> anyhow::Result<Option<Watch>> {
    let service = Arc::clone(hub.service());
    let target = Target { service, events: hub.events().policies(), clock: hub.clock().clone() };
    if !settings.policies.etcd.enabled {
        return Ok(watch::watch_path(&settings.policies, target)?);
    }
    #[cfg(feature = "etcd")]
    return Ok(Some(watch::watch_etcd(&settings.policies, target)?));
    #[cfg(not(feature = "etcd"))]
    anyhow::bail!("this program was built without etcd: set policies.etcd.enabled to false");
}

fn write_decisions(lines: NotedLines, path: &Path) -> anyhow::Result<DecisionWriter> {
    let mut secret = [0; 32];
    random(&mut secret)?;
    let path = Some(path).filter(|path| !path.as_os_str().is_empty());
    DecisionWriter::start(lines, path, secret).context("open the decision log")
}

/// Left to us, the HTTP port follows the RESP port: a thousand above it, or free as it was.
fn bind_http(settings: &Settings, port: u16) -> anyhow::Result<Option<Socket>> {
    let server = &settings.server;
    let http_port = match server.http.port {
        OrAuto::Exactly(port) => port,
        OrAuto::Auto if server.port == 0 => 0,
        OrAuto::Auto => port.checked_add(HTTP_PORT_OFFSET).context("no port is so high")?,
    };
    let bind = server.http.enabled.then(|| server::bind_http(server.http.bind, http_port));
    Ok(bind.transpose()?)
}

fn control_thread() -> anyhow::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("start the control thread")
}

fn hub(
    settings: &Settings,
    clock: Clock,
    (identity, events): (Identity, Events),
    decision_log: DecisionLog,
) -> anyhow::Result<Arc<Hub>> {
    let engine = Engine::new(settings.engine.shards.number(), seed()?);
    engine.set_tracked_keys_max(settings.engine.tracked_keys_max.get());
    engine.set_memory_max(match settings.engine.memory_max {
        OrAuto::Exactly(bytes) => bytes.as_usize(),
        OrAuto::Auto => usize::try_from(Machine::here().memory_limit_bytes() / 4 * MEMORY_QUARTERS)
            .unwrap_or(usize::MAX),
    });
    engine.set_policy(settings.engine.memory_policy);
    let now = clock.now();
    let service = Service::new(engine, Runtime::new(initial(settings)), now);
    let service = Arc::new(service.with_decision_log(decision_log));
    Ok(Arc::new(Hub::new(service, clock, identity, events)))
}

fn initial(settings: &Settings) -> Initial {
    Initial {
        password: settings.server.password.secret().unwrap_or_default().to_owned(),
        operator_password: settings.server.operator_password.secret().map(str::to_owned),
        protected: settings.server.protected_mode,
        connections_max: settings.server.connections_max.get(),
        idle_timeout: settings.server.idle_timeout,
        output_bytes_max: settings.server.output_bytes_max,
        push_bytes_max: settings.server.push_bytes_max,
        turn_max: settings.server.turn_max,
        subscriptions_max: settings.server.subscriptions_max.get(),
        key_bytes_max: settings.engine.key_bytes_max,
        value_bytes_max: settings.engine.value_bytes_max,
        log_entries_max: settings.limits.log_entries_max,
        dragonfly_rounding: settings.limits.throttle_rounding == ThrottleRounding::Dragonfly,
        scripts: settings.lua.clone(),
        prefilter: settings.prefilter.clone(),
        policies: settings.policies.for_policies(),
        load: settings.load.clone(),
        slowlog_threshold: settings.slowlog.threshold,
        slowlog_entries_max: settings.slowlog.entries_max,
        latency_threshold: settings.latency.threshold,
    }
}

fn limits(settings: &Settings) -> Limits {
    let options = &settings.server;
    Limits {
        request_bytes_max: options.request_bytes_max.as_usize(),
        args_max: options.args_max.get(),
        bulk_bytes_max: options.bulk_bytes_max.as_usize(),
        inline_bytes_max: options.inline_bytes_max.as_usize(),
        header_bytes_max: options.inline_bytes_max.as_usize(),
        pipeline_max: options.pipeline_max.get(),
    }
}

fn worker_count(settings: &Settings) -> usize {
    match settings.server.workers {
        OrAuto::Exactly(workers) => workers.get(),
        OrAuto::Auto => {
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            cores.saturating_sub(1).max(1)
        }
    }
}

fn random(bytes: &mut [u8]) -> anyhow::Result<()> {
    use std::io::Read;
    let mut source = std::fs::File::open("/dev/urandom").context("open /dev/urandom")?;
    source.read_exact(bytes).context("read /dev/urandom")
}

/// Keys are hashed under a seed that nobody outside knows.
fn seed() -> anyhow::Result<u64> {
    let mut bytes = [0; 8];
    random(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Forty hex digits.
fn run_id() -> anyhow::Result<String> {
    let (mut head, mut tail) = ([0; 4], [0; 16]);
    random(&mut head)?;
    random(&mut tail)?;
    Ok(format!("{:08x}{:032x}", u32::from_ne_bytes(head), u128::from_ne_bytes(tail)))
}

/// Every connection is a descriptor; the soft limit is often lower than the settings allow.
fn raise_descriptor_limit(connections_max: usize) {
    /// Listeners, logs, `/proc` files and the runtime's own.
    const OTHERS: u64 = 64;
    use rustix::process::{Resource, getrlimit, setrlimit};
    let want = connections_max as u64 + OTHERS;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= want) {
        return;
    }
    limit.current = Some(limit.maximum.map_or(want, |maximum| maximum.min(want)));
    let raised = setrlimit(Resource::Nofile, limit);
    if raised.is_err() || limit.current.is_some_and(|current| current < want) {
        let descriptors = limit.current.unwrap_or_default();
        tracing::warn!(descriptors, connections_max, "fewer file descriptors than connections");
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;
    use crate::config::Flag;

    fn flag(path: &str, value: &str) -> Flag {
        Flag { name: path.into(), path: path.into(), value: value.into() }
    }

    fn ask(port: u16, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        stream.write_all(bytes).expect("it takes this");
        stream.shutdown(std::net::Shutdown::Write).expect("a socket option");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("it ends in order");
        reply
    }

    #[test]
    fn panic_ends_its_own_connection_and_leaks_nothing_to_the_next() {
        let flags = [
            flag("server.port", "0"),
            flag("server.http.enabled", "false"),
            flag("server.workers", "1"),
        ];
        let settings = Settings::load(None, [], &flags).expect("the flags are right");
        let handle = start(&settings, None, Clock::system()).expect("a free port");
        let port = handle.port();
        // Nor does a script's keep what the script holds locked, whether it is caught or not.
        for script in ["redis.call('PANIC')", "pcall(redis.call, 'PANIC')"] {
            let request = format!("EVAL \"redis.call('SET', KEYS[1], 1) {script}\" 1 k\r\n");
            drop(ask(port, request.as_bytes()));
            let next = b"SET k 2\r\nEVAL \"return redis.call('GET', KEYS[1])\" 1 k\r\n";
            assert_eq!(ask(port, next), "+OK\r\n$1\r\n2\r\n", "{script}");
        }
        // Whole in one read, and torn between two: the buffers are others.
        assert_eq!(ask(port, b"PING\r\nPANIC\r\nPING\r\n"), "");
        let mut torn = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        torn.write_all(b"*1\r\n$4\r\nPI").expect("it takes this");
        assert_eq!(ask(port, b"PING\r\n"), "+PONG\r\n");
        torn.write_all(b"NG\r\n*1\r\n$5\r\nPANIC\r\n").expect("it takes this");
        let mut rest = Vec::new();
        // The panicking connection ends in any way.
        drop(torn.read_to_end(&mut rest));
        for _ in 0..3 {
            assert_eq!(ask(port, b"ECHO mine\r\n"), "$4\r\nmine\r\n");
        }
        handle.stop().expect("it stops in order");
    }
}
