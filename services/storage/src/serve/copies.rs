//! The folder with local copies of checkpoints.

use anyhow::Context;
use clap::Args;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegraph_fleet::LocalCopies;
use tidegraph_platform::{Disk, DiskLock, Objects, RealDisk};

/// Name of the folder of all graphs, below the one that was given. Everything else there stays as it is.
const FOLDER: &str = "checkpoint-copies";

/// Name of the lock beside it. Inside, each name may be that of a graph.
const LOCK: &str = "checkpoint-copies.lock";

/// The copies leave this many times `--least-free-bytes` free, so that they make room before the node takes its disk for
/// full.
const LEAST_FREE_TIMES: u64 = 2;

/// Flags of copies.
#[derive(Args, Debug)]
pub struct CopyArgs {
    /// Local folder for copies of the newest checkpoints of the node's replicas, best on NVMe. A node that starts again
    /// restores from them what they have. They take at most half of what is free without them, and leave twice
    /// --least-free-bytes.
    #[arg(long, env = "TIDEGRAPH_CHECKPOINT_COPIES", value_name = "FOLDER")]
    checkpoint_copies: Option<PathBuf>,
}

/// The copies of all graphs of a daemon.
pub struct CopyFolder {
    folder: PathBuf,
    _lock: DiskLock,
}

impl CopyArgs {
    /// Opens the folder. Copies of other graphs than those in `graphs` are removed.
    pub fn open(&self, graphs: &[String]) -> anyhow::Result<Option<CopyFolder>> {
        let Some(given) = &self.checkpoint_copies else { return Ok(None) };
        let folder = given.join(FOLDER);
        let opened = lock(given, &folder)
            .with_context(|| format!("--checkpoint-copies {}: the folder cannot be used", given.display()))?;
        if let Err(error) = remove_others(&folder, graphs) {
            tracing::warn!(%error, folder = %folder.display(), "cannot remove the copies of other graphs");
        }
        Ok(Some(CopyFolder { folder, _lock: opened }))
    }
}

/// Two processes would remove each other's copies.
fn lock(given: &Path, folder: &Path) -> anyhow::Result<DiskLock> {
    RealDisk.create_dir_all(folder)?;
    let locked = RealDisk.lock(&given.join(LOCK));
    locked.map_err(|error| match error.source.kind() {
        io::ErrorKind::WouldBlock => anyhow::anyhow!("another process has {}", folder.display()),
        _ => error.into(),
    })
}

#[expect(clippy::disallowed_methods, reason = "the edge to the disk")]
fn remove_others(folder: &Path, graphs: &[String]) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let is_known = graphs.iter().any(|graph| entry.file_name() == graph.as_str());
        if entry.file_type()?.is_dir() && !is_known {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

impl CopyFolder {
    /// Opens the copies of a graph on a node that takes its disk for full below `least_free_bytes`. A folder that cannot be
    /// read costs time at the next restore and nothing else.
    pub fn of(&self, graph: &str, least_free_bytes: u64) -> Option<Arc<LocalCopies>> {
        let folder = self.folder.join(graph);
        let opened = Objects::cache(&folder)
            .map_err(anyhow::Error::new)
            .and_then(|objects| LocalCopies::open(objects).map_err(anyhow::Error::new));
        match opened {
            Ok(copies) => {
                let left_free = least_free_bytes.saturating_mul(LEAST_FREE_TIMES);
                Some(Arc::new(copies.on_disk(Arc::new(RealDisk), folder, left_free)))
            }
            Err(error) => {
                let error = tidegraph_platform::chain(error.as_ref());
                tracing::warn!(%error, graph, "no copies of checkpoints are kept");
                None
            }
        }
    }

    /// Removes the copies of a graph that was dropped.
    #[expect(clippy::disallowed_methods, reason = "the edge to the disk")]
    pub fn remove(&self, graph: &str) {
        let folder = self.folder.join(graph);
        if let Err(error) = std::fs::remove_dir_all(&folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, folder = %folder.display(), "cannot remove the copies of a dropped graph");
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
mod tests {
    use super::*;

    fn args(folder: &Path) -> CopyArgs {
        CopyArgs { checkpoint_copies: Some(folder.to_owned()) }
    }

    #[test]
    fn each_graph_has_its_copies_and_those_of_others_are_removed() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("mine"), "of somebody else").unwrap();
        let graphs = ["orders".to_owned(), "lock".to_owned()];
        let opened = args(home.path()).open(&graphs).unwrap().unwrap();
        for graph in &graphs {
            assert_eq!(opened.of(graph, 0).unwrap().bytes(), 0);
            std::fs::write(home.path().join(FOLDER).join(graph).join("copy"), "four").unwrap();
            assert_eq!(opened.of(graph, 0).unwrap().bytes(), 4);
        }
        let error = args(home.path()).open(&graphs).err().unwrap();
        assert!(format!("{error:#}").contains("another process has"), "{error:#}");
        drop(opened);
        let opened = args(home.path()).open(&graphs[1..]).unwrap().unwrap();
        assert_eq!(["orders", "lock"].map(|graph| opened.of(graph, 0).unwrap().bytes()), [0, 4]);
        opened.remove("lock");
        opened.remove("lock");
        assert_eq!(opened.of("lock", 0).unwrap().bytes(), 0);
        assert!(home.path().join("mine").exists());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = format!("{:#}", args(&file).open(&[]).err().unwrap());
        assert!(error.contains("--checkpoint-copies") && error.contains("file"), "{error}");
        assert!(CopyArgs { checkpoint_copies: None }.open(&[]).unwrap().is_none());
    }
}
