//! The sections of INFO, one function each: lines of `field:value`.

use std::fmt::Write;

use super::call::Call;
use super::connection::REDIS_VERSION;
use super::host::Crowd;
use super::kept::StoreFacts;
use super::push::Kind;
use super::tally::{BUCKET_BOUNDS_NS, CommandCounts};
use super::twins::TwinCounts;
use crate::time::{Duration, Timestamp};

/// Appends formatted lines; a String takes all that is written.
macro_rules! lines {
    ($out:expr, $($format:tt)*) => {
        write!($out, $($format)*).expect("a String takes all that is written")
    };
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) fn server(call: &Call<'_, '_>, out: &mut String) {
    let facts = call.host.facts();
    let uptime_s = call.now.since(call.service.started()).as_millis() / 1_000;
    lines!(
        out,
        "redis_version:{REDIS_VERSION}\n\
         redis_git_sha1:00000000\n\
         redis_git_dirty:0\n\
         redis_build_id:0\n\
         redis_mode:standalone\n\
         tollgate_version:{VERSION}\n\
         os:{}\n\
         arch_bits:{}\n\
         monotonic_clock:POSIX clock_gettime\n\
         multiplexing_api:epoll\n\
         process_id:{}\n\
         process_supervised:no\n\
         run_id:{}\n\
         tcp_port:{}\n\
         server_time_usec:{}\n\
         uptime_in_seconds:{uptime_s}\n\
         uptime_in_days:{}\n\
         executable:{}\n\
         config_file:{}\n\
         io_threads_active:{}\n",
        facts.os,
        usize::BITS,
        facts.process_id,
        facts.run_id,
        facts.tcp_port,
        call.now.as_micros(),
        uptime_s / 86_400,
        facts.executable,
        facts.config_file,
        usize::from(facts.workers > 1),
    );
}

pub(super) fn clients(call: &Call<'_, '_>, out: &mut String) {
    let Crowd { connections, input_bytes_max, output_bytes_max } = call.host.crowd();
    lines!(
        out,
        "connected_clients:{connections}\n\
         cluster_connections:0\n\
         maxclients:{}\n\
         client_recent_max_input_buffer:{input_bytes_max}\n\
         client_recent_max_output_buffer:{output_bytes_max}\n\
         blocked_clients:{}\n\
         tracking_clients:{}\n\
         clients_in_timeout_table:0\n",
        call.service.runtime().connections_max(),
        call.service.waits().len(),
        call.service.tracking().counts().clients,
    );
}

pub(super) fn memory(call: &Call<'_, '_>, out: &mut String) {
    let (facts, engine) = (call.host.facts(), call.service.engine());
    let (used, max) = (engine.used_bytes() as u64, engine.memory_max() as u64);
    let peak = facts.used_peak_bytes as u64;
    let (scripts, libraries) = (call.service.scripts().stats(), call.service.libraries().stats());
    let sizes = [
        ("used_memory", used),
        ("used_memory_rss", facts.resident_bytes),
        ("used_memory_peak", peak),
        ("total_system_memory", facts.machine_bytes),
        ("used_memory_lua", call.service.script_runs().lua_bytes),
        ("used_memory_scripts", (scripts.bytes + libraries.bytes) as u64),
        ("maxmemory", max),
    ];
    for (name, bytes) in sizes {
        lines!(out, "{name}:{bytes}\n{name}_human:{}\n", human(bytes));
        if name == "used_memory_peak" {
            lines!(out, "used_memory_peak_perc:{:.2}%\n", percent(used, peak));
            lines!(out, "used_memory_dataset:{used}\nused_memory_overhead:0\n");
        }
    }
    lines!(
        out,
        "number_of_cached_scripts:{}\n\
         number_of_functions:{}\n\
         number_of_libraries:{}\n\
         used_memory_scripts_eval:{}\n\
         used_memory_functions:{}\n\
         evicted_scripts:{}\n\
         maxmemory_policy:{}\n\
         mem_fragmentation_ratio:{:.2}\n\
         mem_fragmentation_bytes:{}\n\
         mem_not_counted_for_evict:0\n\
         mem_replication_backlog:0\n\
         mem_clients_slaves:0\n\
         mem_allocator:libc\n\
         active_defrag_running:0\n\
         lazyfree_pending_objects:0\n\
         lazyfreed_objects:0\n",
        scripts.scripts,
        libraries.functions,
        libraries.libraries,
        scripts.bytes,
        libraries.bytes,
        scripts.evicted,
        engine.policy().name(),
        percent(facts.resident_bytes, used) / 100.0,
        facts.resident_bytes as i64 - used as i64,
    );
}

/// `part` of `whole`; zero where there is no whole.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// As Redis shortens a number of bytes.
fn human(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "K", "M", "G", "T", "P"];
    let mut unit = 0;
    let mut size = bytes as f64;
    while size >= 1_024.0 && unit + 1 < UNITS.len() {
        size /= 1_024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes}B") } else { format!("{size:.2}{}", UNITS[unit]) }
}

pub(super) fn persistence(call: &Call<'_, '_>, out: &mut String) {
    let kept = call.host.store();
    let has_journal = kept.as_ref().is_some_and(|kept| kept.journal != "off");
    let kept = kept.unwrap_or_else(|| StoreFacts {
        saved_at: call.service.started(),
        saved_ok: true,
        journal_ok: true,
        ..StoreFacts::default()
    });
    let word = |ok| if ok { "ok" } else { "err" };
    let spent = |span: Option<Duration>| span.map_or(-1, |span| span.as_millis() as i64 / 1_000);
    lines!(
        out,
        "loading:0\n\
         async_loading:0\n\
         rdb_changes_since_last_save:{}\n\
         rdb_bgsave_in_progress:{}\n\
         rdb_last_save_time:{}\n\
         rdb_last_bgsave_status:{}\n\
         rdb_last_bgsave_time_sec:{}\n\
         rdb_current_bgsave_time_sec:{}\n\
         rdb_saves:{}\n\
         aof_enabled:{}\n\
         aof_rewrite_in_progress:0\n\
         aof_rewrite_scheduled:0\n\
         aof_last_rewrite_time_sec:-1\n\
         aof_current_rewrite_time_sec:-1\n\
         aof_last_bgrewrite_status:{}\n\
         aof_last_write_status:{}\n",
        kept.changes_since,
        u8::from(kept.saving_since.is_some()),
        seconds(kept.saved_at),
        word(kept.saved_ok),
        spent(kept.saved_took),
        spent(kept.saving_since.map(|began| call.now.since(began))),
        kept.saves,
        u8::from(has_journal),
        word(kept.saved_ok),
        word(kept.journal_ok),
    );
    if has_journal {
        lines!(out, "aof_current_size:{}\n", kept.journal_bytes);
    }
}

pub(super) fn stats(call: &Call<'_, '_>, out: &mut String) {
    let (facts, baseline) = (call.host.facts(), call.service.baseline());
    let stats = baseline.stats_since(&call.stats());
    let counts = baseline.entries_since(call.service.entry_counts());
    let calls: u64 = counts.iter().map(|counts| counts.calls).sum();
    let errors: u64 = baseline.errors_since(call.service.error_counts()).values().sum();
    let before = baseline.facts;
    let channels = call.service.channels();
    let (tracked_keys, tracked_readers) = (stats.tracked_keys, stats.tracked_readers);
    let kilobytes = |bytes: u64| bytes as f64 / 1_024.0;
    lines!(
        out,
        "total_connections_received:{}\n\
         total_commands_processed:{calls}\n\
         instantaneous_ops_per_sec:{}\n\
         total_net_input_bytes:{}\n\
         total_net_output_bytes:{}\n\
         instantaneous_input_kbps:{:.2}\n\
         instantaneous_output_kbps:{:.2}\n\
         rejected_connections:{}\n\
         sync_full:0\n\
         sync_partial_ok:0\n\
         sync_partial_err:0\n\
         expired_keys:{}\n\
         evicted_keys:{}\n\
         evicted_clients:0\n\
         keyspace_hits:{}\n\
         keyspace_misses:{}\n\
         pubsub_channels:{}\n\
         pubsub_patterns:{}\n\
         pubsubshard_channels:{}\n\
         latest_fork_usec:0\n\
         total_forks:0\n\
         slave_expires_tracked_keys:0\n\
         tracking_total_keys:{}\n\
         tracking_total_items:{}\n\
         tracking_total_prefixes:{}\n\
         total_error_replies:{errors}\n\
         client_output_buffer_limit_disconnections:{}\n",
        facts.connections_received.saturating_sub(before.connections_received),
        facts.rates.commands,
        facts.input_bytes.saturating_sub(before.input_bytes),
        facts.output_bytes.saturating_sub(before.output_bytes),
        kilobytes(facts.rates.input_bytes),
        kilobytes(facts.rates.output_bytes),
        facts.connections_rejected.saturating_sub(before.connections_rejected),
        stats.expired,
        stats.evicted,
        stats.hits,
        stats.misses,
        channels.count(Kind::Channel),
        channels.count(Kind::Pattern),
        channels.count(Kind::Shard),
        tracked_keys,
        tracked_readers,
        call.service.tracking().counts().prefixes,
        (facts.closed_unread + facts.closed_pushes)
            .saturating_sub(before.closed_unread + before.closed_pushes),
    );
}

pub(super) fn replication(call: &Call<'_, '_>, out: &mut String) {
    lines!(
        out,
        "role:master\n\
         connected_slaves:0\n\
         master_failover_state:no-failover\n\
         master_replid:{}\n\
         master_replid2:{:040}\n\
         master_repl_offset:0\n\
         second_repl_offset:-1\n\
         repl_backlog_active:0\n\
         repl_backlog_size:0\n\
         repl_backlog_first_byte_offset:0\n\
         repl_backlog_histlen:0\n",
        call.host.facts().run_id,
        0,
    );
}

pub(super) fn cpu(call: &Call<'_, '_>, out: &mut String) {
    let facts = call.host.facts();
    lines!(
        out,
        "used_cpu_sys:{:.6}\n\
         used_cpu_user:{:.6}\n\
         used_cpu_sys_children:0.000000\n\
         used_cpu_user_children:0.000000\n",
        facts.cpu_system_s,
        facts.cpu_user_s,
    );
}

/// There are none; Redis shows the bare heading, too.
pub(super) fn modules(_: &Call<'_, '_>, _: &mut String) {}

pub(super) fn command_stats(call: &Call<'_, '_>, out: &mut String) {
    for (name, counts) in counted(call) {
        let micros = counts.nanos / 1_000;
        let each = if counts.calls == 0 { 0.0 } else { micros as f64 / counts.calls as f64 };
        lines!(
            out,
            "cmdstat_{name}:calls={},usec={micros},usec_per_call={each:.2},rejected_calls={},\
             failed_calls={}\n",
            counts.calls,
            counts.rejected,
            counts.failed,
        );
    }
}

/// The commands that were asked for at all.
fn counted<'c>(call: &Call<'c, '_>) -> impl Iterator<Item = (&'c str, CommandCounts)> {
    let entries = call.service.table().entries();
    let counted = entries.iter().map(|entry| entry.name.as_str());
    let counts = call.service.baseline().entries_since(call.service.entry_counts());
    let counted = counted.zip(counts);
    counted.filter(|(_, counts)| counts.calls + counts.rejected + counts.failed > 0)
}

pub(super) fn error_stats(call: &Call<'_, '_>, out: &mut String) {
    for (code, count) in call.service.baseline().errors_since(call.service.error_counts()) {
        lines!(out, "errorstat_{code}:count={count}\n");
    }
}

/// The upper bound of the bucket in which a percentile lies.
pub(super) fn latency_stats(call: &Call<'_, '_>, out: &mut String) {
    for (name, counts) in counted(call).filter(|(_, counts)| counts.calls > 0) {
        let [p50, p99, p999] =
            [0.5, 0.99, 0.999].map(|part| percentile_ns(&counts, part) as f64 / 1_000.0);
        lines!(out, "latency_percentiles_usec_{name}:p50={p50:.3},p99={p99:.3},p99.9={p999:.3}\n");
    }
}

fn percentile_ns(counts: &CommandCounts, part: f64) -> u64 {
    let wanted = (counts.calls as f64 * part).ceil() as u64;
    let mut seen = 0;
    let place = counts.buckets.iter().position(|count| {
        seen += count;
        seen >= wanted
    });
    let last = BUCKET_BOUNDS_NS.len() - 1;
    BUCKET_BOUNDS_NS[place.unwrap_or(last).min(last)]
}

pub(super) fn cluster(_: &Call<'_, '_>, out: &mut String) {
    lines!(out, "cluster_enabled:0\n");
}

pub(super) fn keyspace(call: &Call<'_, '_>, out: &mut String) {
    let stats = call.stats();
    for (db, database) in stats.databases.iter().enumerate().filter(|(_, d)| d.keys > 0) {
        let (keys, expiring) = (database.keys, database.expiring);
        lines!(out, "db{db}:keys={keys},expires={expiring},avg_ttl=0\n");
    }
}

pub(super) fn tollgate(call: &Call<'_, '_>, out: &mut String) {
    let (facts, engine) = (call.host.facts(), call.service.engine());
    let stats = call.service.baseline().stats_since(&call.stats());
    let from_memory = call.service.prefilter().counts().repeated;
    let twins = call.service.twin_counts();
    let scripts = call.service.script_runs();
    lines!(
        out,
        "version:{VERSION}\n\
         http_port:{}\n\
         workers:{}\n\
         shards:{}\n\
         decisions_allowed:{}\n\
         decisions_denied:{}\n\
         policy_buckets:{}\n\
         expired_holds:{}\n\
         checks_from_memory:{}\n\
         checks_of_unknown_tenants:{}\n\
         native_twin_calls:{}\n\
         native_twin_declined:{}\n\
         scripts_over_declared_keys:{}\n\
         scripts_over_all_keys:{}\n\
         scripts_rerun:{}\n\
         clock_gap_usec:{}\n\
         started_unix_time:{}\n",
        facts.http_port.unwrap_or_default(),
        facts.workers,
        engine.shards(),
        stats.allowed,
        stats.denied + from_memory,
        stats.buckets,
        stats.holds_expired,
        from_memory,
        call.service.unknown_tenants(),
        twins.iter().map(|twin| twin.answered).sum::<u64>(),
        twins.iter().map(|twin| twin.declined).sum::<u64>(),
        scripts.declared,
        scripts.all,
        scripts.again,
        facts.clock_gap_us,
        seconds(call.service.started()),
    );
    if let Some(kept) = call.host.store() {
        lines!(
            out,
            "restored_records:{}\n\
             damaged_bytes:{}\n\
             failed_writes:{}\n",
            kept.restored,
            kept.damaged_bytes,
            kept.failures,
        );
    }
}

/// The scripts that ran, or were to run, without Lua.
pub(super) fn twins(call: &Call<'_, '_>, out: &mut String) {
    for TwinCounts { name, answered, declined } in call.service.twin_counts() {
        if answered + declined > 0 {
            let name = name.replace(' ', "_");
            lines!(out, "twin_{name}:calls={answered},declined={declined}\n");
        }
    }
}

fn seconds(moment: Timestamp) -> u64 {
    moment.as_millis() / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shortened_as_in_redis() {
        for (bytes, text) in [
            (0, "0B"),
            (1_023, "1023B"),
            (1_024, "1.00K"),
            (2_228_336, "2.13M"),
            (25_276_502_016, "23.54G"),
        ] {
            assert_eq!(human(bytes), text);
        }
    }

    #[test]
    fn percentile_is_the_bound_of_its_bucket() {
        let mut counts = CommandCounts { calls: 100, ..CommandCounts::default() };
        counts.buckets[0] = 98;
        counts.buckets[2] = 2;
        assert_eq!(percentile_ns(&counts, 0.5), 250);
        assert_eq!(percentile_ns(&counts, 0.99), 4_000);
        assert_eq!(percentile_ns(&CommandCounts::default(), 0.5), 250);
    }
}
