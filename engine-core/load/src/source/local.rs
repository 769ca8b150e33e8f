//! Lists the files of local folders, without following links.

use super::{File, MOST_ENTRIES, is_mark, refuse, too_many};
use crate::error::Error;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use tidegraph_platform::folder::{Entry, EntryKind, Folder};

/// Most folders within one another.
const DEEPEST: usize = 32;

/// Checks that a path names a file or folder, or the beginning of a name.
pub(super) fn check(uri: &str, path: &Path, real: &Path, cancelled: &dyn Fn() -> bool) -> Result<(), Error> {
    Listing::new(uri, path, cancelled).root(real).map(drop)
}

/// Lists a file, the files below a folder, or those whose names begin as the path ends. `path` is the path as it was
/// given, by which files are named, and `real` the same one without links.
pub(super) fn list(
    uri: &str,
    path: &Path,
    real: &Path,
    cancelled: &dyn Fn() -> bool,
) -> Result<Vec<File>, Error> {
    let mut listing = Listing::new(uri, path, cancelled);
    match listing.root(real)? {
        Root::File(entry) => listing.add(path, real, entry)?,
        Root::Folder(folder) => listing.walk(&folder, path, 1)?,
        Root::Start { parent, names } => {
            let above = path.parent().unwrap_or(path);
            names.iter().try_for_each(|name| listing.visit(&parent, above, name, 1))?;
        }
    }
    Ok(listing.files)
}

/// Returns the one file that a path names, as [`list`] describes it.
pub(super) fn file(uri: &str, path: &Path, real: &Path) -> Result<File, Error> {
    let mut listing = Listing::new(uri, path, &|| false);
    let is_folder = || refuse(uri, format!("{} is a folder, not a file", path.display()));
    let (Some(above), Some(name)) = (real.parent(), real.file_name()) else { return Err(is_folder()) };
    let entry = Folder::open(above).and_then(|folder| folder.entry(name));
    let entry = entry.map_err(|error| listing.failed(path, error))?;
    match entry.kind {
        EntryKind::File => listing.add(path, real, entry)?,
        EntryKind::Folder => return Err(is_folder()),
        kind => return Err(listing.no_file(path, kind)),
    }
    listing.files.pop().ok_or(Error::Internal("a file was not listed"))
}

/// What a path leads to.
enum Root {
    File(Entry),
    Folder(Folder),
    /// The names in a folder that begin as the path ends.
    Start {
        parent: Folder,
        names: Vec<OsString>,
    },
}

struct Listing<'a> {
    uri: &'a str,
    path: &'a Path,
    cancelled: &'a dyn Fn() -> bool,
    /// Number of names that were looked at.
    seen: usize,
    files: Vec<File>,
}

impl<'a> Listing<'a> {
    fn new(uri: &'a str, path: &'a Path, cancelled: &'a dyn Fn() -> bool) -> Self {
        Self { uri, path, cancelled, seen: 0, files: Vec::new() }
    }

    /// Returns the error of an operation on a path.
    fn failed(&self, path: &Path, error: io::Error) -> Error {
        match error.kind() {
            // The message names the path and what is wrong with it.
            io::ErrorKind::InvalidInput => refuse(self.uri, error.to_string()),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                refuse(self.uri, format!("there is no file or folder {}", path.display()))
            }
            _ => {
                let path = path.display().to_string();
                Error::List { source_uri: self.uri.to_owned(), path, source: error }
            }
        }
    }

    fn root(&mut self, real: &Path) -> Result<Root, Error> {
        let (Some(above), Some(name)) = (real.parent(), real.file_name()) else {
            return Folder::open(real).map(Root::Folder).map_err(|error| self.failed(real, error));
        };
        let parent = Folder::open(above).map_err(|error| self.failed(self.path, error))?;
        let error = match parent.entry(name) {
            Ok(entry) if entry.kind == EntryKind::File => return Ok(Root::File(entry)),
            Ok(entry) if entry.kind == EntryKind::Folder => {
                let folder = parent.folder(name).map_err(|error| self.failed(self.path, error))?;
                return Ok(Root::Folder(folder));
            }
            Ok(entry) => return Err(self.no_file(self.path, entry.kind)),
            Err(error) => error,
        };
        // A slash at the end says that the path is a folder.
        if error.kind() == io::ErrorKind::NotFound && !self.uri.ends_with('/') {
            let names = self.names(&parent, name)?;
            if !names.is_empty() {
                return Ok(Root::Start { parent, names });
            }
        }
        Err(self.failed(self.path, error))
    }

    /// Returns the names in a folder that begin with `start` and are no marks.
    fn names(&mut self, folder: &Folder, start: &OsStr) -> Result<Vec<OsString>, Error> {
        let mut found = Vec::new();
        for name in folder.names().map_err(|error| self.failed(folder.path(), error))? {
            let name = name.map_err(|error| self.failed(folder.path(), error))?;
            self.seen += 1;
            if self.seen > MOST_ENTRIES {
                return Err(too_many(self.uri));
            }
            if (self.cancelled)() {
                return Err(Error::Cancelled);
            }
            let bytes = name.as_encoded_bytes();
            if bytes.starts_with(start.as_encoded_bytes()) && !is_mark(&name.to_string_lossy()) {
                found.push(name);
            }
        }
        Ok(found)
    }

    fn walk(&mut self, folder: &Folder, shown: &Path, depth: usize) -> Result<(), Error> {
        if depth > DEEPEST {
            let reason = format!("{} is below more than {DEEPEST} folders, the limit", shown.display());
            return Err(refuse(self.uri, reason));
        }
        let names = self.names(folder, OsStr::new(""))?;
        names.iter().try_for_each(|name| self.visit(folder, shown, name, depth))
    }

    fn visit(&mut self, folder: &Folder, shown: &Path, name: &OsStr, depth: usize) -> Result<(), Error> {
        if (self.cancelled)() {
            return Err(Error::Cancelled);
        }
        let shown = shown.join(name);
        let entry = match folder.entry(name) {
            Ok(entry) => entry,
            // It was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(self.failed(&shown, error)),
        };
        match entry.kind {
            EntryKind::File => self.add(&shown, &folder.path().join(name), entry),
            EntryKind::Folder => {
                let below = folder.folder(name).map_err(|error| self.failed(&shown, error))?;
                self.walk(&below, &shown, depth + 1)
            }
            // Files of data are left out by nobody's wish: a link is told.
            EntryKind::Link => Err(self.no_file(&shown, entry.kind)),
            // A device, a pipe or a socket has no rows.
            EntryKind::Other => Ok(()),
        }
    }

    fn no_file(&self, path: &Path, kind: EntryKind) -> Error {
        let what = match kind {
            EntryKind::Link => "is a link, and links are not followed: name the file or folder itself",
            _ => "is neither a file nor a folder",
        };
        refuse(self.uri, format!("{} {what}", path.display()))
    }

    fn add(&mut self, shown: &Path, real: &Path, entry: Entry) -> Result<(), Error> {
        let Some(path) = real.to_str() else {
            return Err(refuse(self.uri, format!("the name {} is not UTF-8", real.display())));
        };
        self.files.push(File {
            name: format!("file://{}", shown.display()).into(),
            path: path.to_owned(),
            bytes: entry.bytes,
            modified_ms: entry.modified_ms,
            etag: None,
        });
        Ok(())
    }
}
