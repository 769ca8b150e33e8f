//! The daemon of the machine: its metrics, its limit of files, and its heartbeats in the map.

use super::finding::{Finding, Status};
use super::{names, read};
use crate::connect::MapArgs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::{MapStore, NodeId, NodeState};
use tidegraph_platform::{Clock, metric};

const DAEMON: &str = "machine.daemon";
const FILES: &str = "machine.files";
const MEMBER: &str = "machine.member";
const CERTIFICATE: &str = "machine.certificate";
const LOOK_AT_UNIT: &str = "systemctl status tidegraph-node; tail /var/log/tidegraph/node.log";

/// Time that a certificate should be valid: one of a deployment on AWS lives for a week, and is renewed when it has more
/// than four days left. The alarm comes at two.
const SOON: Duration = Duration::from_secs(3 * 86_400);
const URGENT: Duration = Duration::from_secs(86_400);
/// Open files that a daemon may need: connections, Kafka, and files of spilled pages.
const LEAST_FILES: u64 = 65_536;
/// Time limit of the metrics.
const PATIENCE: Duration = Duration::from_secs(5);
const MOST_METRICS_BYTES: u64 = 8 << 20;
/// Pause between the two looks at heartbeats, of which there is one each second.
const PAUSE: Duration = Duration::from_secs(3);

/// Asks the daemon for its metrics, and looks at the limits of its process.
pub fn look(metrics: SocketAddr) -> Vec<Finding> {
    let (answered, certificate) = match scrape(metrics) {
        Ok(text) => (judge_metrics(metrics, &text), judge_certificate(&text)),
        Err(error) => {
            let seen = format!("http://{metrics}/metrics: {error}");
            let answered = Finding::wrong(Status::Failed, DAEMON, seen, "the daemon's metrics", LOOK_AT_UNIT);
            (answered, Finding::unknown(CERTIFICATE, "the daemon's metrics do not say", LOOK_AT_UNIT))
        }
    };
    vec![answered, certificate, files_of(metrics)]
}

/// Judges how long the certificate of the daemon is valid, from its metrics.
fn judge_certificate(text: &str) -> Finding {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse::<f64>().ok())
    };
    let Some(left) = value(metric::CERTIFICATE_LEFT) else {
        return Finding::absent(CERTIFICATE, "the daemon has no certificate for other processes");
    };
    let refused = value(metric::CERTIFICATES_UNUSABLE).unwrap_or_default();
    let hours = (left / 3600.0).floor();
    let seen = format!("{hours} h left, {refused} reads of new certificates could not be used");
    let status = if left < URGENT.as_secs_f64() {
        Status::Failed
    } else if left < SOON.as_secs_f64() {
        Status::Warning
    } else {
        return Finding::ok(CERTIFICATE, seen);
    };
    let wanted = format!("at least {} h", SOON.as_secs() / 3600);
    let remedy = "put new files in place of the old ones, or see why the daemon cannot read its secret: /var/log/tidegraph/node.log";
    Finding::wrong(status, CERTIFICATE, seen, wanted, remedy)
}

fn scrape(metrics: SocketAddr) -> Result<String, String> {
    let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build();
    let mut answer = ureq::Agent::new_with_config(config)
        .get(format!("http://{metrics}/metrics"))
        .call()
        .map_err(|error| error.to_string())?;
    let body = answer.body_mut().with_config().limit(MOST_METRICS_BYTES).read_to_string();
    body.map_err(|error| error.to_string())
}

fn judge_metrics(metrics: SocketAddr, text: &str) -> Finding {
    let samples = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let ours = samples.filter(|line| line.starts_with("tidegraph_")).count();
    if ours > 0 {
        return Finding::ok(DAEMON, format!("http://{metrics}/metrics has {ours} series of Tidegraph"));
    }
    let seen = format!("http://{metrics}/metrics answers, with no metric of Tidegraph");
    let remedy = "another process has the port, or the daemon has just begun: ss -ltnp, and look again";
    Finding::wrong(Status::Warning, DAEMON, seen, "metrics that begin with tidegraph_", remedy)
}

/// Looks at the limit of open files of the daemon that serves these metrics.
fn files_of(metrics: SocketAddr) -> Finding {
    let Some(pid) = daemon(metrics) else {
        return Finding::unknown(FILES, "no daemon with these metrics runs here", LOOK_AT_UNIT);
    };
    match read(format!("/proc/{pid}/limits")) {
        Ok(limits) => {
            let open = names(Path::new(&format!("/proc/{pid}/fd"))).ok().map(|files| files.len() as u64);
            judge_files(&pid, &limits, open)
        }
        Err(error) => Finding::unknown(FILES, error, "run it as the daemon's user, or with sudo"),
    }
}

/// Finds the process of the daemon: `tidegraph-node serve` with this address of metrics.
fn daemon(metrics: SocketAddr) -> Option<String> {
    let processes = names(Path::new("/proc")).unwrap_or_default();
    let mut numbers = processes.into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    numbers.find(|pid| {
        let command = read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        is_daemon(&command, metrics)
    })
}

/// Whether a command line, whose words end with a zero byte, is that of the daemon.
fn is_daemon(command: &str, metrics: SocketAddr) -> bool {
    let words: Vec<&str> = command.split('\0').collect();
    let address = metrics.to_string();
    words.get(1) == Some(&"serve")
        && words.windows(2).any(|pair| pair[0] == "--metrics-listen" && pair[1] == address)
}

/// Judges the line of open files in a text of `/proc/PID/limits`.
fn judge_files(pid: &str, limits: &str, open: Option<u64>) -> Finding {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let Some(soft) = line.and_then(|rest| rest.split_whitespace().next()) else {
        return Finding::unknown(FILES, format!("/proc/{pid}/limits has no line of open files"), "");
    };
    let limit = if soft == "unlimited" { Some(u64::MAX) } else { soft.parse().ok() };
    let used = open.map_or(String::new(), |open| format!(", {open} are open"));
    let seen = format!("process {pid} may open {soft} files{used}");
    let is_near = open.zip(limit).is_some_and(|(open, limit)| open > limit / 10 * 8);
    if limit.is_some_and(|limit| limit >= LEAST_FILES) && !is_near {
        return Finding::ok(FILES, seen);
    }
    let status = if is_near { Status::Failed } else { Status::Warning };
    let wanted = format!("at least {LEAST_FILES}, with room");
    Finding::wrong(status, FILES, seen, wanted, "set LimitNOFILE of the unit tidegraph-node (1048576)")
}

/// Looks for the node's state and heartbeats in the map.
pub fn look_at_member(map: &MapArgs, node: Option<&str>, clock: &Arc<dyn Clock>) -> Finding {
    let Some(node) = node else {
        let seen = "no node was named (--node, or TIDEGRAPH_NODE of /run/tidegraph/machine.env)";
        return Finding::absent(MEMBER, seen);
    };
    member(map, node, clock).unwrap_or_else(|error| {
        let seen = format!("the map cannot be read: {}", tidegraph_platform::chain(error.as_ref()));
        let remedy = "run it with the variables of /opt/tidegraph/etc/fleet.env, and see whether the endpoint of DynamoDB answers";
        Finding::unknown(MEMBER, seen, remedy)
    })
}

fn member(map: &MapArgs, node: &str, clock: &Arc<dyn Clock>) -> anyhow::Result<Finding> {
    let id = NodeId::new(node)?;
    let store = map.open_for_command(clock)?;
    let loaded = store.load(&map.graph, None)?;
    let wanted = format!("{node} is up, and sends a heartbeat each second");
    let Some(known) = loaded.node(&id) else {
        let seen = format!("{node} is not in the map of {}", map.graph);
        return Ok(Finding::wrong(Status::Failed, MEMBER, seen, wanted, LOOK_AT_UNIT));
    };
    let counter = |store: &dyn MapStore| -> anyhow::Result<Option<(u64, u64)>> {
        let beats = store.heartbeats(&map.graph)?;
        Ok(beats.get(&id).map(|beat| (beat.generation, beat.counter)))
    };
    let before = counter(&*store)?;
    clock.sleep(PAUSE);
    let after = counter(&*store)?;
    let replicas = loaded.held_by(&id).count();
    let seen = format!("{node} is {} in the map of {}, with {replicas} replicas", known.state, map.graph);
    if after.is_none() || before == after {
        let seen = format!("{seen}; no heartbeat within {} s", PAUSE.as_secs());
        return Ok(Finding::wrong(Status::Failed, MEMBER, seen, wanted, LOOK_AT_UNIT));
    }
    if known.state == NodeState::Up {
        return Ok(Finding::ok(MEMBER, seen));
    }
    let remedy = "a node that joins or drains takes minutes; the log group nodes says what it does";
    Ok(Finding::wrong(Status::Warning, MEMBER, seen, wanted, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> SocketAddr {
        "127.0.0.1:9600".parse().unwrap()
    }

    #[test]
    fn the_daemon_is_the_process_that_serves_these_metrics() {
        let command = |words: &[&str]| words.join("\0") + "\0";
        let daemon = ["/opt/tidegraph/bin/tidegraph-node", "serve", "--metrics-listen", "127.0.0.1:9600"];
        assert!(is_daemon(&command(&daemon), address()));
        let [program, _, flag, _] = daemon;
        assert!(!is_daemon(&command(&[program, "serve", flag, "127.0.0.1:9601"]), address()));
        assert!(!is_daemon(&command(&[program, "doctor", flag, "127.0.0.1:9600"]), address()));
        assert!(!is_daemon("", address()));
    }

    #[test]
    fn the_limit_of_files_is_judged() {
        let limits = |soft: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max processes             unlimited            unlimited            processes \n\
                 Max open files            {soft:<20} 1048576              files     \n"
            )
        };
        let status = |soft, open| judge_files("7", &limits(soft), open).status;
        assert_eq!(status("1048576", Some(100)), Status::Ok);
        assert_eq!(status("unlimited", Some(100)), Status::Ok);
        assert_eq!(status("1024", None), Status::Warning);
        assert_eq!(status("1024", Some(1000)), Status::Failed);
        assert_eq!(judge_files("7", "", None).status, Status::Unknown);
        assert_eq!(
            judge_files("7", &limits("65536"), Some(9)).seen,
            "process 7 may open 65536 files, 9 are open"
        );
    }

    #[test]
    fn the_time_that_is_left_of_a_certificate_is_judged() {
        let status = |seconds: f64| {
            judge_certificate(&format!("tidegraph_certificate_left_seconds {seconds}\n")).status
        };
        assert_eq!(status(4.0 * 86_400.0), Status::Ok);
        assert_eq!(status(2.0 * 86_400.0), Status::Warning);
        assert_eq!(status(86_000.0), Status::Failed);
        assert_eq!(status(-1.0), Status::Failed);
        assert_eq!(judge_certificate("tidegraph_version 1\n").status, Status::Absent);
        let text = "tidegraph_certificate_left_seconds 400000\ntidegraph_certificates_unusable_total 3\n";
        assert!(judge_certificate(text).seen.contains("111 h left, 3 reads"));
    }

    #[test]
    fn metrics_of_others_are_told() {
        let ours = "# TYPE tidegraph_version gauge\ntidegraph_version 7\n";
        assert_eq!(judge_metrics(address(), ours).status, Status::Ok);
        for other in ["", "# TYPE tidegraph_version gauge\n", "process_cpu 1\n"] {
            assert_eq!(judge_metrics(address(), other).status, Status::Warning, "{other}");
        }
    }

    #[test]
    fn a_port_where_nobody_listens_is_a_failure() {
        let [answered, certificate, files] = look("127.0.0.1:9".parse().unwrap()).try_into().unwrap();
        assert_eq!((answered.status, files.status), (Status::Failed, Status::Unknown), "{answered}");
        assert_eq!(certificate.status, Status::Unknown);
    }
}
