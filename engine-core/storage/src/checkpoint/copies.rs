//! Copies of checkpoints' objects on the local disk, so that a process that starts again reads less from the object
//! store.
//!
//! Roles: [`LocalCopies`] knows which objects have a copy, and copies and removes them. `Sources` is where a restore
//! reads: the copy of an object, if there is one, and else the object.
//!
//! Flow: a process copies the objects of the newest manifest of each of its replicas, one part after the other
//! ([`LocalCopies::keep`]), and removes the others ([`LocalCopies::retain`]). It removes needed ones too while the disk
//! runs full ([`LocalCopies::make_room`]). After its next start a restore reads the manifest from the object store, and
//! what it names from the copies.
//!
//! A copy is not trusted. It is not synced, and it may be of an object that another graph had under the same name. The
//! manifest has the checksum of the directory, and the directory that of each chunk. A restore that finds a copy
//! damaged forgets it and begins again.
//!
//! What must never happen: a checkpoint is refused because of a copy; copies take the room that property pages need.

use super::manifest::{damaged, object_error};
use super::reads::READ_BYTES;
use super::{Manifest, ManifestObject, RestoreReads};
use crate::Error;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use tidegraph_platform::{Disk, Objects, chain, metric};

/// Copies of objects of one graph.
pub struct LocalCopies {
    objects: Objects,
    disk: Option<SharedDisk>,
    /// Sizes of the copies by the paths of their objects.
    known: Mutex<FxHashMap<String, u64>>,
}

/// The disk that the copies share with property pages.
struct SharedDisk {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Bytes that the copies leave free.
    left_free: u64,
}

impl std::fmt::Debug for LocalCopies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalCopies").field("objects", &self.objects).finish_non_exhaustive()
    }
}

/// What became of the copies of a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// Each object has a copy.
    All,
    /// The disk has no room for more.
    NoRoom,
    /// The caller stopped it.
    Stopped,
}

impl LocalCopies {
    /// Opens the copies in a store, whose paths are those of the objects. Nothing else may be in it.
    ///
    /// # Errors
    ///
    /// [`Error::Object`] if the copies cannot be listed.
    pub fn open(objects: Objects) -> Result<Self, Error> {
        let listed = objects.list("").map_err(object_error(objects.name()))?;
        let known = listed.into_iter().map(|object| (object.path, object.bytes)).collect();
        Ok(Self { objects, disk: None, known: Mutex::new(known) })
    }

    /// Keeps the copies below half of what the disk of a directory has free without them, and leaves `left_free` bytes
    /// of it free.
    #[must_use]
    pub fn on_disk(self, disk: Arc<dyn Disk>, dir: PathBuf, left_free: u64) -> Self {
        Self { disk: Some(SharedDisk { disk, dir, left_free }), ..self }
    }

    /// Returns the size of all copies in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.known.lock().values().sum()
    }

    /// Whether each of these objects has a copy.
    pub fn has_all<'p>(&self, objects: impl IntoIterator<Item = &'p String>) -> bool {
        let known = self.known.lock();
        objects.into_iter().all(|object| known.contains_key(object))
    }

    /// Whether an object has a copy of the right size.
    fn is_kept(&self, object: &ManifestObject) -> bool {
        self.known.lock().get(&object.path) == Some(&object.bytes)
    }

    /// Removes the copy of an object; returns whether there was one. Nobody reads it from then on, even if its file
    /// cannot be removed.
    fn forget(&self, object: &str) -> bool {
        if self.known.lock().remove(object).is_none() {
            return false;
        }
        if let Err(error) = self.objects.delete(object) {
            tracing::warn!(error = %chain(&error), "cannot remove the copy of an object");
        }
        true
    }

    /// Whether any object of a manifest has a copy.
    pub(super) fn has_any(&self, manifest: &Manifest) -> bool {
        let known = self.known.lock();
        manifest.objects().any(|object| known.contains_key(&object.path))
    }

    /// Forgets the copy of the object in which a restore found an error; returns whether there was one.
    pub(super) fn forget_cause(&self, object: &str, error: &Error) -> bool {
        let is_cause = self.forget(object);
        if is_cause {
            tracing::warn!(error = %chain(error), "the copy of an object is damaged; the object is read again");
            metric::refused(metric::Refused::Copy);
        }
        is_cause
    }

    /// Returns how many bytes more the copies may take; negative if they take too many.
    fn room(&self) -> i64 {
        let Some(SharedDisk { disk, dir, left_free }) = &self.disk else { return i64::MAX };
        match disk.free_bytes(dir) {
            Ok(free) => {
                let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
                let (free, used) = (signed(free), signed(self.bytes()));
                let of_half = free.saturating_add(used) / 2 - used;
                of_half.min(free.saturating_sub(signed(*left_free)))
            }
            Err(error) => {
                tracing::warn!(error = %chain(&error), "no more objects are copied");
                0
            }
        }
    }

    /// Copies the objects of a manifest that have no copy, one part of 8 MiB after the other, within the bandwidth of
    /// `reads`. Before each part, `stop` may end it; the copies that are complete stay.
    ///
    /// # Errors
    ///
    /// [`Error::Object`] and [`Error::Damaged`] if an object cannot be read, is missing or is short;
    /// [`Error::Upload`] and [`Error::Object`] if the copy cannot be written.
    pub fn keep(
        &self,
        manifest: &Manifest,
        from: &Objects,
        reads: &RestoreReads,
        stop: &dyn Fn() -> bool,
    ) -> Result<Kept, Error> {
        for object in manifest.objects() {
            if self.is_kept(object) {
                continue;
            }
            self.forget(&object.path);
            if self.room() < i64::try_from(object.bytes).unwrap_or(i64::MAX) {
                return Ok(Kept::NoRoom);
            }
            if !self.copy(object, from, reads, stop)? {
                return Ok(Kept::Stopped);
            }
        }
        Ok(Kept::All)
    }

    fn copy(
        &self,
        object: &ManifestObject,
        from: &Objects,
        reads: &RestoreReads,
        stop: &dyn Fn() -> bool,
    ) -> Result<bool, Error> {
        let ManifestObject { path, bytes } = object;
        let mut writer = self.objects.writer(path).map_err(object_error(path))?;
        let mut at = 0;
        while at < *bytes {
            let end = (at + READ_BYTES).min(*bytes);
            reads.allow(end - at, true);
            if stop() {
                return Ok(false);
            }
            let part = from.get_range(path, at..end).map_err(object_error(path))?;
            if part.len() as u64 != end - at {
                return Err(damaged(path, at + part.len() as u64, "the object ends here"));
            }
            writer.write_all(&part).map_err(|source| Error::Upload { object: path.clone(), source })?;
            at = end;
        }
        writer.finish().map_err(object_error(path))?;
        self.known.lock().insert(path.clone(), *bytes);
        Ok(true)
    }

    /// Removes the copies of all objects that are not needed, and more of them if they take too much of the disk.
    pub fn retain(&self, is_needed: impl Fn(&str) -> bool) {
        let unneeded: Vec<String> =
            self.known.lock().keys().filter(|object| !is_needed(object)).cloned().collect();
        for object in unneeded {
            self.forget(&object);
        }
        self.make_room();
    }

    /// Removes the largest copies while the copies take too much of the disk. A restore that reads one of them begins
    /// again with the object. Returns whether any was removed.
    pub fn make_room(&self) -> bool {
        let (mut excess, mut removed) = (self.room().saturating_neg(), 0_u64);
        while excess > 0 {
            let Some((object, bytes)) = self.largest() else { break };
            self.forget(&object);
            removed += bytes;
            // Each byte that is removed becomes free.
            excess = excess.saturating_sub_unsigned(bytes);
        }
        if removed > 0 {
            tracing::info!(removed, "copies of checkpoints make room on the disk");
        }
        removed > 0
    }

    fn largest(&self) -> Option<(String, u64)> {
        let known = self.known.lock();
        known
            .iter()
            .max_by_key(|(object, bytes)| (**bytes, *object))
            .map(|(object, bytes)| (object.clone(), *bytes))
    }
}

/// Where a restore reads.
#[derive(Clone, Copy)]
pub(super) struct Sources<'r> {
    pub objects: &'r Objects,
    pub copies: Option<&'r LocalCopies>,
}

impl<'r> Sources<'r> {
    /// Returns the copies if they have one of an object.
    pub fn copies_with(self, object: &str) -> Option<&'r Objects> {
        self.copies.filter(|copies| copies.known.lock().contains_key(object)).map(|copies| &copies.objects)
    }

    /// Whether an object has a copy of the right size.
    pub fn is_kept(self, object: &ManifestObject) -> bool {
        self.copies.is_some_and(|copies| copies.is_kept(object))
    }
}
