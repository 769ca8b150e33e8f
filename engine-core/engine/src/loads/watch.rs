//! The drop folder: each folder in it is one load, which begins when the folder contains `_SUCCESS`.
//!
//! The report on the load is written into the folder and then named `_REPORT.json`. A folder with a report or a job is
//! not loaded again.
//!
//! Must never: follow a link in the drop folder, or write a report anywhere but into a new file of the dropped folder.

use super::job::Job;
use super::{Allowed, LoadSpec, Mode, Shared};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_platform::folder::{EntryKind, Folder};

const COMPLETE: &str = "_SUCCESS";
const REPORT: &str = "_REPORT.json";
/// Name of the report while it is written: nobody takes a part of it for the report, also after the process was killed.
const UNFINISHED_REPORT: &str = "_REPORT.json.part";
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Polls the drop folder until the database closes. Its loads may read what is allowed.
pub(super) fn watch(shared: &Shared, drop_folder: &Path, allowed: &Allowed) {
    while !shared.stopping.load(Ordering::Relaxed) {
        if let Err(error) = look(shared, drop_folder, allowed) {
            tracing::error!(folder = %drop_folder.display(), %error, "the drop folder cannot be read");
        }
        shared.clock.sleep(POLL_INTERVAL);
    }
}

#[expect(clippy::disallowed_methods, reason = "the drop folder is that of users")]
fn look(shared: &Shared, drop_folder: &Path, allowed: &Allowed) -> io::Result<()> {
    let dropped = Folder::open(&std::fs::canonicalize(drop_folder)?)?;
    let mut names = dropped.names()?.collect::<io::Result<Vec<_>>>()?;
    names.sort();
    for name in names {
        let path = std::path::absolute(drop_folder.join(&name))?.display().to_string();
        if let Err(error) = look_at(shared, &dropped, &name, &path, allowed) {
            tracing::debug!(folder = %path, %error, "a dropped folder waits");
        }
    }
    Ok(())
}

/// Loads a dropped folder if it is complete, or writes the report of its load.
fn look_at(
    shared: &Shared,
    dropped: &Folder,
    name: &OsStr,
    path: &str,
    allowed: &Allowed,
) -> Result<(), crate::Error> {
    let failed = |error: io::Error| crate::Error::caused_by(tidegraph_types::ErrorCode::Unavailable, error);
    if dropped.entry(name).map_err(failed)?.kind != EntryKind::Folder {
        return Ok(());
    }
    let folder = dropped.folder(name).map_err(failed)?;
    if !has(&folder, COMPLETE).map_err(failed)? || has(&folder, REPORT).map_err(failed)? {
        return Ok(());
    }
    let job = shared.state.lock().jobs.iter().rev().find(|job| job.drop_folder() == Some(path)).cloned();
    match job {
        Some(job) if job.state().is_final() => write_report(&folder, &report(shared, &job)).map_err(failed),
        Some(_) => Ok(()),
        None => {
            let mut spec = LoadSpec::new(vec![format!("file://{path}")], None);
            spec.mode = Mode::New;
            shared.submit(spec, Some(path.to_owned()), allowed).map(drop)
        }
    }
}

/// Whether a folder has a name, be it that of a link which leads nowhere.
fn has(folder: &Folder, name: &str) -> io::Result<bool> {
    match folder.entry(OsStr::new(name)) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn report(shared: &Shared, job: &Job) -> String {
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
    format!("{report:#}\n")
}

/// Writes the report and then gives it its name. A link under the name of the unfinished one is removed, not followed.
fn write_report(folder: &Folder, text: &str) -> io::Result<()> {
    let unfinished = OsStr::new(UNFINISHED_REPORT);
    if has(folder, UNFINISHED_REPORT)? {
        folder.remove(unfinished)?;
    }
    folder.create_new(unfinished)?.write_all(text.as_bytes())?;
    folder.rename(unfinished, OsStr::new(REPORT))
}
