//! Files of users below a folder, reached without following a link.
//!
//! A path is opened part by part, each from the folder before it. So nobody who may write below the folder can lead a
//! reader or a writer out of it, not even by replacing a part between two calls.
//!
//! Must never: follow a link, open anything but a folder or a regular file, or wait for a pipe.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Flags of everything that is opened.
const ALWAYS: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
/// Flags of a folder whose names are read or made.
const FOLDER: OFlags = ALWAYS.union(OFlags::DIRECTORY);
/// Flags of a folder that a path leads through: on Linux it need not be readable.
#[cfg(target_os = "linux")]
const THROUGH: OFlags = FOLDER.union(OFlags::PATH);
#[cfg(not(target_os = "linux"))]
const THROUGH: OFlags = FOLDER;

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
}

/// What is under a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, a pipe or a socket.
    Other,
}

/// What is under a name of a folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its kind.
    pub kind: EntryKind,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of its last change, in milliseconds since 1970.
    pub modified_ms: i64,
}

impl Folder {
    /// Opens a folder by its absolute path, of which no part may be a link.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` if a part of the path is a link or `..`, and the errors of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        match parent(path)? {
            Some((parent, name)) => parent.folder(name),
            None => Ok(Self { descriptor: rustix::fs::open("/", FOLDER, Mode::empty())?, path: "/".into() }),
        }
    }

    /// Opens a folder in this one.
    ///
    /// # Errors
    ///
    /// As [`Folder::open`].
    pub fn folder(&self, name: &OsStr) -> io::Result<Self> {
        self.below(name, FOLDER)
    }

    fn below(&self, name: &OsStr, flags: OFlags) -> io::Result<Self> {
        let descriptor = self.opened(name, flags, Mode::empty())?;
        Ok(Self { descriptor, path: self.path.join(name) })
    }

    fn opened(&self, name: &OsStr, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        rustix::fs::openat(&self.descriptor, name, flags, mode).map_err(|error| match self.entry(name) {
            // The system has several errors for a link that is not followed.
            Ok(Entry { kind: EntryKind::Link, .. }) if error != Errno::EXIST => {
                invalid(&self.path.join(name), "is a link, and links are not followed")
            }
            _ => error.into(),
        })
    }

    /// Returns the path under which the folder was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file in this folder for reading.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` if it is a link or no regular file, and the errors of the system.
    pub fn file(&self, name: &OsStr) -> io::Result<File> {
        // Without `NONBLOCK` the open call waits for the writer of a pipe.
        let descriptor = self.opened(name, ALWAYS | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty())?;
        match kind(rustix::fs::fstat(&descriptor)?.st_mode) {
            EntryKind::File => Ok(descriptor.into()),
            _ => Err(invalid(&self.path.join(name), "is no regular file")),
        }
    }

    /// Makes a file in this folder, for writing.
    ///
    /// # Errors
    ///
    /// Kind `AlreadyExists` if there is anything under the name, also a link that leads nowhere.
    pub fn create_new(&self, name: &OsStr) -> io::Result<File> {
        let flags = ALWAYS | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        Ok(self.opened(name, flags, Mode::from_raw_mode(0o644))?.into())
    }

    /// Gives a file, or a link, of this folder another name in it, in one step. What was under that name is gone: of a
    /// link the link, not what it led to.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn rename(&self, name: &OsStr, new_name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.descriptor, name, &self.descriptor, new_name)?)
    }

    /// Removes a file, or a link, from this folder.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty())?)
    }

    /// Returns what is under a name: of a link the link, not what it leads to.
    ///
    /// # Errors
    ///
    /// Kind `NotFound` if there is nothing, and the errors of the system.
    pub fn entry(&self, name: &OsStr) -> io::Result<Entry> {
        let stat = rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let millis = i64::try_from(stat.st_mtime_nsec / 1_000_000).unwrap_or_default();
        Ok(Entry {
            kind: kind(stat.st_mode),
            bytes: u64::try_from(stat.st_size).unwrap_or_default(),
            modified_ms: stat.st_mtime.saturating_mul(1_000).saturating_add(millis),
        })
    }

    /// Returns the names in the folder, in no order, without `.` and `..`.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn names(&self) -> io::Result<impl Iterator<Item = io::Result<OsString>> + use<>> {
        let mut names = Dir::read_from(&self.descriptor)?;
        Ok(std::iter::from_fn(move || names.read()).filter_map(|entry| match entry {
            Ok(entry) => {
                let name = entry.file_name().to_bytes();
                (name != b"." && name != b"..").then(|| Ok(OsStr::from_bytes(name).to_owned()))
            }
            Err(error) => Some(Err(error.into())),
        }))
    }
}

/// Opens a regular file by its absolute path, of which no part may be a link.
///
/// # Errors
///
/// As [`Folder::open`] and [`Folder::file`].
pub fn open_file(path: &Path) -> io::Result<File> {
    match parent(path)? {
        Some((parent, name)) => parent.file(name),
        None => Err(invalid(path, "is no regular file")),
    }
}

/// Opens the folder that a path leads through last, and returns it with the last name; `None` for the root.
fn parent(path: &Path) -> io::Result<Option<(Folder, &OsStr)>> {
    let mut parts = path.components();
    if parts.next() != Some(Component::RootDir) {
        return Err(invalid(path, "is no absolute path"));
    }
    let mut names = Vec::new();
    for part in parts {
        match part {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            _ => return Err(invalid(path, "has the part `..`, which is not followed")),
        }
    }
    let Some((last, through)) = names.split_last() else { return Ok(None) };
    let mut folder = Folder { descriptor: rustix::fs::open("/", THROUGH, Mode::empty())?, path: "/".into() };
    for name in through {
        folder = folder.below(name, THROUGH)?;
    }
    Ok(Some((folder, last)))
}

fn kind(mode: rustix::fs::RawMode) -> EntryKind {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Folder,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

fn invalid(path: &Path, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{} {what}", path.display()))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::fs::symlink;

    /// A folder, below it `in/a` and links, and beside it a secret.
    fn home() -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(home.path()).unwrap();
        std::fs::create_dir_all(root.join("in/deep")).unwrap();
        std::fs::write(root.join("in/a"), "rows").unwrap();
        std::fs::write(root.join("secret"), "secret").unwrap();
        symlink("../secret", root.join("in/link")).unwrap();
        symlink("..", root.join("in/up")).unwrap();
        symlink("../nothing", root.join("in/dangling")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("in/pipe"), Mode::from_raw_mode(0o600)).unwrap();
        (home, root)
    }

    #[test]
    fn only_regular_files_are_opened_and_no_link_is_followed() {
        let (_home, root) = home();
        let mut text = String::new();
        open_file(&root.join("in/a")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "rows");
        for path in ["in/link", "in/up/secret", "in/deep/../a", "in/pipe", "in/dangling", "in"] {
            let error = open_file(&root.join(path)).expect_err(path);
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}: {error}");
        }
        assert!(Folder::open(&root.join("in/up")).unwrap_err().to_string().contains("in/up is a link"));
        assert_eq!(open_file(&root.join("in/none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(open_file(Path::new("a")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_new_file_is_never_made_through_a_link() {
        let (_home, root) = home();
        let folder = Folder::open(&root.join("in")).unwrap();
        for taken in ["dangling", "link", "a", "deep"] {
            let error = folder.create_new(OsStr::new(taken)).expect_err(taken);
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{taken}: {error}");
        }
        assert!(!root.join("nothing").exists());
        folder.create_new(OsStr::new("new")).unwrap().write_all(b"x").unwrap();
        folder.rename(OsStr::new("new"), OsStr::new("link")).unwrap();
        assert_eq!(folder.entry(OsStr::new("new")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(std::fs::read_to_string(root.join("in/link")).unwrap(), "x");
        assert_eq!(
            std::fs::read_to_string(root.join("secret")).unwrap(),
            "secret",
            "what the link led to is left"
        );
        folder.remove(OsStr::new("link")).unwrap();
        assert_eq!(folder.entry(OsStr::new("link")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn entries_are_told_by_kind() {
        let (_home, root) = home();
        let folder = Folder::open(&root.join("in")).unwrap();
        let mut names: Vec<_> = folder.names().unwrap().map(Result::unwrap).collect();
        names.sort();
        let kinds: Vec<_> = names.iter().map(|name| folder.entry(name).unwrap().kind).collect();
        assert_eq!(names, ["a", "dangling", "deep", "link", "pipe", "up"]);
        use EntryKind::{File, Folder as Dir, Link, Other};
        assert_eq!(kinds, [File, Link, Dir, Link, Other, Link]);
        let meta = std::fs::metadata(root.join("in/a")).unwrap();
        let modified = meta.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        let entry = folder.entry(OsStr::new("a")).unwrap();
        assert_eq!((entry.bytes, u128::try_from(entry.modified_ms).unwrap()), (4, modified.as_millis()));
    }
}
