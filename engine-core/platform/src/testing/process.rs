//! Processes that a test stops for a while.

use crate::{Clock, RealClock};
use std::fs;
use std::process::Command;
use std::time::Duration;

/// Longest wait until all threads of a process stand still.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Stops a process until [`resume`], and waits until all its threads stand still. On a busy machine some of them go on
/// for a while after the signal.
///
/// # Panics
///
/// If the process cannot be stopped.
pub fn pause(id: u32) {
    signal(id, "-STOP");
    let clock = RealClock::new();
    let end = clock.now() + LONGEST_WAIT;
    while !stands_still(id) {
        assert!(clock.now() < end, "process {id} does not stop");
        clock.sleep(Duration::from_millis(1));
    }
}

/// Lets a process go on.
///
/// # Panics
///
/// If the process cannot be reached.
pub fn resume(id: u32) {
    signal(id, "-CONT");
}

fn signal(id: u32, name: &str) {
    let status = Command::new("kill").args([name, &id.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill {name} {id}");
}

#[expect(clippy::disallowed_methods, reason = "the state of processes is in files")]
fn stands_still(id: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{id}/task")) else { return true };
    threads.flatten().all(|thread| {
        let Ok(stat) = fs::read_to_string(thread.path().join("stat")) else { return true };
        // The state follows the name, which is in brackets and may contain some.
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        state.is_none_or(|state| matches!(state, 'T' | 't' | 'Z' | 'X'))
    })
}
