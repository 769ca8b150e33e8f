//! The drop folder: each folder in it is one load, which begins when the folder contains `_SUCCESS`.
//!
//! The report on the load is written into the folder as `_REPORT.json`. A folder with a report or a job is not loaded
//! again.

use super::{LoadSpec, Mode, Shared};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

const COMPLETE: &str = "_SUCCESS";
const REPORT: &str = "_REPORT.json";
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Polls the drop folder until the database closes.
pub(super) fn watch(shared: &Shared, drop_folder: &Path) {
    while !shared.stopping.load(Ordering::Relaxed) {
        if let Err(error) = look(shared, drop_folder) {
            tracing::error!(folder = %drop_folder.display(), %error, "the drop folder cannot be read");
        }
        shared.clock.sleep(POLL_INTERVAL);
    }
}

#[expect(clippy::disallowed_methods, reason = "the drop folder is that of users")]
fn look(shared: &Shared, drop_folder: &Path) -> std::io::Result<()> {
    let mut folders: Vec<_> = std::fs::read_dir(drop_folder)?
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.is_dir())
        .collect();
    folders.sort();
    for folder in folders {
        if !folder.join(COMPLETE).exists() || folder.join(REPORT).exists() {
            continue;
        }
        let name = std::path::absolute(&folder)?.display().to_string();
        let job = shared.state.lock().jobs.iter().rev().find(|job| job.drop_folder() == Some(&name)).cloned();
        match job {
            Some(job) if job.state().is_final() => {
                let status = job.status(shared.clock.wall());
                let (overall, counts) = (&status.overall, &status.overall.counts);
                let report = serde_json::json!({
                    "loadId": job.id(),
                    "status": overall.state.as_str(),
                    "version": status.version,
                    "totalRecords": counts.total_records,
                    "totalDuplicates": counts.total_duplicates,
                    "parsingErrors": counts.parsing_errors,
                    "datatypeMismatchErrors": counts.datatype_mismatch_errors,
                    "insertErrors": counts.insert_errors,
                    "message": overall.message,
                    "errorLogs": status.errors,
                });
                if let Err(error) = std::fs::write(folder.join(REPORT), format!("{report:#}\n")) {
                    tracing::debug!(folder = %name, %error, "cannot write the report into a dropped folder");
                }
            }
            Some(_) => {}
            None => {
                let mut spec = LoadSpec::new(vec![format!("file://{name}")], None);
                spec.mode = Mode::New;
                if let Err(error) = shared.submit(spec, Some(name)) {
                    tracing::debug!(%error, "a dropped folder waits");
                }
            }
        }
    }
    Ok(())
}
