//! A local folder as a store of objects that can be lost.

use crate::{Disk, ObjectError, Objects, RealDisk};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Objects {
    /// Opens a folder for objects that can be read again from elsewhere; makes it if it does not exist. Objects are not
    /// synced: after the machine lost power they may have other bytes. What interrupted writes left behind is removed,
    /// so nobody else may write there.
    ///
    /// # Errors
    ///
    /// [`ObjectError::Open`] if the folder cannot be made, opened or cleaned.
    pub fn cache(folder: &Path) -> Result<Self, ObjectError> {
        let name = format!("file://{}", folder.display());
        let open = |source| ObjectError::Open { store: name.clone(), source };
        RealDisk.create_dir_all(folder).map_err(|e| open(e.source.into()))?;
        let store =
            object_store::local::LocalFileSystem::new_with_prefix(folder).map_err(|e| open(e.into()))?;
        let objects = Self::new(Arc::new(store), &name)?;
        let whole: BTreeSet<PathBuf> =
            objects.list("")?.into_iter().map(|object| folder.join(object.path)).collect();
        remove_others(folder, &whole).map_err(|e| open(e.into()))?;
        Ok(objects)
    }
}

/// Removes the files below a folder that are not among those, and folders without files. Follows no links.
#[expect(clippy::disallowed_methods, reason = "this crate is the access to the disk")]
fn remove_others(folder: &Path, whole: &BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            remove_others(&path, whole)?;
            // It stays if it has a file.
            let _ = std::fs::remove_dir(&path);
        } else if !whole.contains(&path) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_interrupted_writes_left_behind_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("copies");
        let objects = Objects::cache(&folder).unwrap();
        objects.put("a/b/whole", "bytes").unwrap();
        objects.put("c/gone", "bytes").unwrap();
        objects.delete("c/gone").unwrap();
        let mut writer = objects.writer("a/half").unwrap();
        writer.write_all(&vec![7; 9 << 20]).unwrap();
        // A process that is killed runs no destructor.
        std::mem::forget(writer);
        drop(objects);
        let names = |folder: &Path| {
            let mut names: Vec<_> =
                std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        // The task of the upload writes its first part.
        while names(&folder.join("a")).len() < 2 {
            std::thread::yield_now();
        }
        let objects = Objects::cache(&folder).unwrap();
        assert_eq!((names(&folder), names(&folder.join("a"))), (vec!["a".into()], vec!["b".into()]));
        assert_eq!(objects.get("a/b/whole").unwrap(), "bytes");
        assert_eq!(objects.list("").unwrap().len(), 1);
    }
}
