//! The recover workload: writes a checkpoint, starts from it, and starts from a log without a checkpoint.

use super::report::{Figure, Report};
use super::{Flags, load::load_embedded};
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use tidegraph_engine::{Database, Options};
use tidegraph_types::{CommitRequest, Mutation, Str};

/// Runs the workload.
#[allow(clippy::disallowed_methods, reason = "this measures the world")]
pub fn run(flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
    let scale = flags.scale(26_000, 500);
    report.parameter("scale", scale);
    report.parameter("seed", flags.seed);
    let files = tempfile::tempdir()?;
    crate::generated::identity(scale, flags.seed, files.path())?;
    let disk = disk_rate(flags)?;
    report.parameter("disk_write_mbps", disk);
    let (mut written, mut restored, mut replayed) = (vec![], vec![], vec![]);
    for _ in 0..flags.rounds() {
        let directory = tempfile::tempdir()?;
        let data = directory.path().join("data");
        // Only the requested checkpoint is written.
        let options =
            Options { data_dir: Some(data.clone()), checkpoint_log_bytes: u64::MAX, ..Options::default() };
        let database = Database::open(options.clone())?;
        load_embedded(&database, files.path())?;
        let before = database.status();
        let start = Instant::now();
        database.checkpoint()?;
        let seconds = start.elapsed().as_secs_f64();
        let bytes = size_of(&data.join("checkpoints"))?;
        written.push(bytes as f64 / seconds / 1e6);
        report.parameter("checkpoint_bytes", bytes);
        report.parameter("vertices", before.vertices);
        report.parameter("edges", before.edges);
        database.close();
        drop(database);
        let start = Instant::now();
        let database = Database::open(options.clone())?;
        restored.push(bytes as f64 / start.elapsed().as_secs_f64() / 1e6);
        let after = database.status();
        anyhow::ensure!(
            (after.vertices, after.edges) == (before.vertices, before.edges),
            "restored {after:?}, was {before:?}"
        );
        replayed.push(replay(flags, directory.path())?);
    }
    let middle = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let target = disk.min(500.0);
    report.add(
        Figure::rate("checkpoint", "MB/s", middle(written))
            .beside("disk, written and synced", disk)
            .target(target),
    );
    report.add(Figure::rate("restore from a checkpoint", "MB/s", middle(restored)).target(500.0));
    report.add(Figure::rate("log applied at start", "tx/s", middle(replayed)));
    Ok(())
}

/// Returns the transactions per second that a start applies from the log.
#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn replay(flags: &Flags, directory: &Path) -> anyhow::Result<f64> {
    let count = if flags.quick { 2_000 } else { 100_000_u64 };
    let options = Options {
        data_dir: Some(directory.join("replay")),
        checkpoint_log_bytes: u64::MAX,
        ..Options::default()
    };
    let database = Database::open(options.clone())?;
    std::thread::scope(|scope| {
        let write = |client: u64| {
            let database = &database;
            scope.spawn(move || -> anyhow::Result<()> {
                for n in 0..count / 32 {
                    let id: Str = format!("v-{client}-{n}").into();
                    let gui = database.plain_gui(&id);
                    let vertex = Mutation::CreateVertex { gui, id, labels: vec![], properties: vec![] };
                    database.commit(CommitRequest { mutations: vec![vertex], ..CommitRequest::default() })?;
                }
                Ok(())
            })
        };
        let handles: Vec<_> = (0..32).map(write).collect();
        for handle in handles {
            handle.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
        }
        anyhow::Ok(())
    })?;
    let vertices = database.status().vertices;
    // The state after a crash: without the checkpoint that closing may write.
    let copy = directory.join("crashed");
    copy_dir(&directory.join("replay"), &copy)?;
    database.close();
    let start = Instant::now();
    let database = Database::open(Options { data_dir: Some(copy), ..options })?;
    let seconds = start.elapsed().as_secs_f64();
    anyhow::ensure!(database.status().vertices == vertices, "the log lost vertices: {:?}", database.status());
    Ok(vertices as f64 / seconds)
}

fn copy_dir(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_dir(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn size_of(directory: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { size_of(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}

/// Returns the MB/s of writing to the disk with a sync at the end.
#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn disk_rate(flags: &Flags) -> anyhow::Result<f64> {
    let mut file = tempfile::tempfile()?;
    let (piece, pieces) = (vec![0x5a_u8; 1 << 20], if flags.quick { 32 } else { 512 });
    let start = Instant::now();
    for _ in 0..pieces {
        file.write_all(&piece)?;
    }
    file.sync_data()?;
    Ok(f64::from(pieces) * (1 << 20) as f64 / start.elapsed().as_secs_f64() / 1e6)
}
