//! The limits of the machine at the time of the run, which figures are compared with.

use serde::Serialize;
use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

/// Limits that are measured at the start of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Machine {
    /// Model name of the processor.
    pub cpu: String,
    /// Number of threads that can run at the same time.
    pub cores: usize,
    /// Memory in GiB.
    pub memory: u64,
    /// Millions of independent random 8-byte reads per second, on one thread.
    pub gather_mops: f64,
    /// Gigabytes copied per second, on one thread.
    pub copy_gbps: f64,
    /// Median time of appending 200 bytes with fdatasync, in microseconds.
    pub fdatasync_us: f64,
}

impl Machine {
    /// Measures the machine. It takes about two seconds.
    pub fn measure(quick: bool) -> Self {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|l| l.starts_with(name));
            line.and_then(|l| l.split(':').nth(1)).map(|v| v.trim().to_owned()).unwrap_or_default()
        };
        let memory_kib = field(&text("/proc/meminfo"), "MemTotal");
        let memory_kib = memory_kib.split(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        Self {
            cpu: field(&text("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: memory_kib >> 20,
            gather_mops: gather(if quick { 1 << 24 } else { 1 << 27 }),
            copy_gbps: copy(if quick { 64 << 20 } else { 512 << 20 }),
            fdatasync_us: fdatasync().unwrap_or(f64::NAN),
        }
    }
}

/// Returns the processor time that a process has used in user and kernel mode, in seconds. `None` where there is no
/// `/proc`.
pub fn cpu_seconds(process: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may contain spaces; the fields after it do not. A tick is a hundredth of a second on
    // Linux.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(ticks as f64 / 100.0)
}

/// Measures random reads that do not depend on each other.
#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn gather(words: usize) -> f64 {
    let table: Vec<u64> = (0..words as u64).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut sum = 0_u64;
    let reads = 4_000_000;
    let start = Instant::now();
    for _ in 0..reads {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        sum = sum.wrapping_add(table[state as usize & (words - 1)]);
    }
    black_box(sum);
    f64::from(reads) / start.elapsed().as_secs_f64() / 1e6
}

#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn copy(bytes: usize) -> f64 {
    let from = vec![1_u8; bytes];
    let mut to = vec![0_u8; bytes];
    let mut best = 0.0_f64;
    for _ in 0..4 {
        let start = Instant::now();
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
        best = best.max(bytes as f64 / start.elapsed().as_secs_f64() / 1e9);
    }
    best
}

#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn fdatasync() -> std::io::Result<f64> {
    let dir = std::env::temp_dir().join(format!("tidegraph-sync-{}", std::process::id()));
    let mut file = File::create(&dir)?;
    let mut times = vec![];
    for _ in 0..200 {
        let start = Instant::now();
        file.write_all(&[7; 200])?;
        file.sync_data()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    std::fs::remove_file(&dir)?;
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
