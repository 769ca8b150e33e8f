//! The places that loads may read: folders, and buckets or prefixes in S3.

use super::{Location, refuse};
use crate::error::Error;
use std::io;
use std::path::{Component, Path, PathBuf};
use tidegraph_platform::check_bucket;

/// The folders, buckets and prefixes that loads may read. The default is none.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Allowed {
    everything: bool,
    places: Vec<Place>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    /// A folder, under the name it was given and under the name without links.
    Folder { named: PathBuf, real: PathBuf },
    /// The objects of a bucket below a prefix, which is empty or ends with `/`.
    Bucket { bucket: String, prefix: String },
}

impl Allowed {
    /// Allows whatever the process can read: for a caller that acts for the user of the process.
    #[must_use]
    pub fn everything() -> Self {
        Self { everything: true, places: Vec::new() }
    }

    /// Allows nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Reads the values of a flag: `s3://bucket`, `s3://bucket/prefix`, and folders that exist.
    ///
    /// # Errors
    ///
    /// [`Error::Source`] for another scheme or a path that is no folder, [`Error::Objects`] for a wrong bucket.
    pub fn parse<S: AsRef<str>>(places: impl IntoIterator<Item = S>) -> Result<Self, Error> {
        let mut allowed = Self::nothing();
        for text in places {
            let text = text.as_ref();
            match Location::of(text)? {
                Location::Local { path } => allowed.add_folder(&path)?,
                Location::Bucket { bucket, mut prefix } => {
                    check_bucket(&bucket)?;
                    if !prefix.is_empty() && !prefix.ends_with('/') {
                        prefix.push('/');
                    }
                    allowed.places.push(Place::Bucket { bucket, prefix });
                }
            }
        }
        Ok(allowed)
    }

    /// Allows a folder with all below it.
    ///
    /// # Errors
    ///
    /// [`Error::Source`] if there is no such folder.
    #[expect(clippy::disallowed_methods, reason = "the folder is one of the operator")]
    pub fn add_folder(&mut self, path: &Path) -> Result<(), Error> {
        let shown = path.display().to_string();
        let named = std::path::absolute(path).map_err(|error| refuse(&shown, error.to_string()))?;
        let real = std::fs::canonicalize(&named).map_err(|error| refuse(&shown, error.to_string()))?;
        if !real.is_dir() {
            return Err(refuse(&shown, "it is no folder, and loads are allowed from folders"));
        }
        self.places.push(Place::Folder { named, real });
        Ok(())
    }

    /// Returns a local path without links above the allowed folder, to be followed without links below it.
    #[expect(clippy::disallowed_methods, reason = "the files of a source are those of users")]
    pub(super) fn local(&self, uri: &str, path: &Path) -> Result<PathBuf, Error> {
        if self.everything {
            // The user of the process has named the path, so its links are followed; those below it are not.
            let found = std::fs::canonicalize(path).or_else(|error| {
                let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(error) };
                Ok(std::fs::canonicalize(parent)?.join(name))
            });
            return found.map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => {
                    refuse(uri, format!("there is no file or folder {}", path.display()))
                }
                _ => refuse(uri, error.to_string()),
            });
        }
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(refuse(uri, "the path has `..`, which is not followed"));
        }
        let below = self.places.iter().find_map(|place| match place {
            Place::Folder { named, real } => {
                let rest = path.strip_prefix(named).or_else(|_| path.strip_prefix(real)).ok()?;
                Some(real.components().chain(rest.components()).collect())
            }
            Place::Bucket { .. } => None,
        });
        below.ok_or_else(|| Error::NotAllowed { source_uri: uri.to_owned() })
    }

    /// Checks that objects may be read whose keys begin with a prefix.
    pub(super) fn bucket(&self, uri: &str, bucket: &str, prefix: &str) -> Result<(), Error> {
        let covers = |place: &Place| match place {
            Place::Bucket { bucket: allowed, prefix: above } => {
                allowed == bucket && prefix.starts_with(above.as_str())
            }
            Place::Folder { .. } => false,
        };
        if self.everything || self.places.iter().any(covers) {
            return Ok(());
        }
        Err(Error::NotAllowed { source_uri: uri.to_owned() })
    }
}
