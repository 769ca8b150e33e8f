//! Sources: lists the files of `file://` directories and `s3://` prefixes.
//!
//! A source is a prefix, as the loader API defines it: `s3://bucket/a` names `a/b.csv` and `ab.csv`. For `file://` a
//! directory means the files under it. Files whose names begin with `.` or `_`, such as `_SUCCESS`, are skipped. Files
//! are sorted by name, so that every load of a source reads them in the same order.
//!
//! Roles: [`Allowed`] says what may be read; [`Access`] is one caller's. `local` lists folders, without following
//! links.
//!
//! Must never: read what is not allowed, follow a link below a folder, or list without end.

mod allowed;
mod local;

pub use allowed::Allowed;

use crate::error::{Error, ReadError};
use serde::{Deserialize, Serialize};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegraph_platform::{Objects, check_bucket, check_region, folder};

/// Most files of a source, and most names that are looked at in its folders.
const MOST_ENTRIES: usize = 100_000;

/// One file of a source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct File {
    /// URI; errors and reports name the file by it.
    pub name: Arc<str>,
    /// Path; for `s3://` within the bucket.
    pub path: String,
    /// Size of the file as stored, compressed or not.
    pub bytes: u64,
    /// Time of its last change, in milliseconds since 1970; 0 if unknown.
    pub modified_ms: i64,
    /// ETag, which changes with every write, if the store has one.
    pub etag: Option<String>,
}

/// What changes when a file is written again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stamp {
    /// Size in bytes.
    pub bytes: u64,
    /// Time of its last change, in milliseconds since 1970; 0 if unknown.
    pub modified_ms: i64,
    /// ETag, if the store has one.
    pub etag: Option<String>,
}

impl Stamp {
    /// Whether a file with this stamp and one with the other have the same content. Where both have an ETag, it tells;
    /// otherwise the time does.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let same = match (&self.etag, &other.etag) {
            (Some(one), Some(other)) => one == other,
            _ => self.modified_ms == other.modified_ms,
        };
        same && self.bytes == other.bytes
    }
}

impl File {
    /// Returns what changes when the file is written again.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        Stamp { bytes: self.bytes, modified_ms: self.modified_ms, etag: self.etag.clone() }
    }
}

/// With which rights, and for how long, a source is opened.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    /// What may be read.
    pub allowed: &'a Allowed,
    /// Region of the bucket.
    pub region: Option<&'a str>,
    /// Whether to give up.
    pub cancelled: &'a dyn Fn() -> bool,
}

impl<'a> Access<'a> {
    /// Returns access to what is allowed, in the region of the environment, until the source is open.
    #[must_use]
    pub fn to(allowed: &'a Allowed) -> Self {
        Self { allowed, region: None, cancelled: &|| false }
    }
}

impl std::fmt::Debug for Access<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { allowed, region, .. } = self;
        f.debug_struct("Access").field("allowed", allowed).field("region", region).finish_non_exhaustive()
    }
}

/// The files that one load reads.
#[derive(Debug)]
pub struct Source {
    uri: String,
    objects: Option<Objects>,
    files: Vec<File>,
}

/// Where a URI leads.
enum Location {
    Local { path: PathBuf },
    Bucket { bucket: String, prefix: String },
}

impl Location {
    fn of(uri: &str) -> Result<Self, Error> {
        if let Some((bucket, prefix)) = s3_parts(uri) {
            return Ok(Self::Bucket { bucket, prefix });
        }
        let path = match uri.strip_prefix("file://") {
            Some(path) => {
                let path = path.strip_prefix("localhost").unwrap_or(path);
                if !path.starts_with('/') {
                    return Err(refuse(uri, "file:// takes an absolute path: file:///FOLDER"));
                }
                path
            }
            None if uri.contains("://") => {
                return Err(refuse(uri, "only file:// and s3:// sources are read"));
            }
            None => uri,
        };
        if path.contains('\0') {
            return Err(refuse(uri, "a path has no zero byte"));
        }
        let path = std::path::absolute(path).map_err(|error| refuse(uri, error.to_string()))?;
        Ok(Self::Local { path })
    }
}

impl Source {
    /// Lists the files of a URI: `file:///dir`, a path, `s3://bucket/prefix`, or S3's `https://` forms.
    ///
    /// # Errors
    ///
    /// * [`Error::NotAllowed`] if the URI is outside of what is allowed.
    /// * [`Error::Source`] if the scheme is not supported, there are no files or too many, or one is a link.
    /// * [`Error::List`] if the local disk fails, [`Error::Objects`] if the object store fails.
    /// * [`Error::Denied`] if the store refuses the credentials.
    /// * [`Error::Cancelled`] if the access was cancelled.
    pub fn open(uri: &str, access: &Access<'_>) -> Result<Self, Error> {
        match Location::of(uri)? {
            Location::Local { path } => {
                let real = access.allowed.local(uri, &path)?;
                let files = local::list(uri, &path, &real, access.cancelled)?;
                Self::new(uri.to_owned(), None, files)
            }
            Location::Bucket { bucket, prefix } => {
                access.allowed.bucket(uri, &bucket, &prefix)?;
                let objects = s3(uri, &bucket, access.region)?;
                Self::objects(objects, &format!("s3://{bucket}"), &prefix, access.cancelled)
            }
        }
    }

    /// Checks a URI without listing its files: whether it may be read, whether its names follow their grammar, and
    /// whether a local file or folder exists. A store is not asked.
    ///
    /// # Errors
    ///
    /// As [`Source::open`], and [`Error::Objects`] for a wrong name of a bucket or region.
    pub fn check(uri: &str, access: &Access<'_>) -> Result<(), Error> {
        access.region.map_or(Ok(()), check_region)?;
        match Location::of(uri)? {
            Location::Local { path } => {
                let real = access.allowed.local(uri, &path)?;
                local::check(uri, &path, &real, access.cancelled)
            }
            Location::Bucket { bucket, prefix } => {
                access.allowed.bucket(uri, &bucket, &prefix)?;
                Ok(check_bucket(&bucket)?)
            }
        }
    }

    /// Finds the one file that a URI names, neither a folder nor the beginning of a name.
    ///
    /// # Errors
    ///
    /// As [`Source::open`].
    pub fn open_file(uri: &str, access: &Access<'_>) -> Result<Self, Error> {
        match Location::of(uri)? {
            Location::Local { path } => {
                let real = access.allowed.local(uri, &path)?;
                Self::new(uri.to_owned(), None, vec![local::file(uri, &path, &real)?])
            }
            Location::Bucket { bucket, prefix } => {
                access.allowed.bucket(uri, &bucket, &prefix)?;
                check_bucket(&bucket)?;
                let objects = s3(uri, &bucket, access.region)?;
                let file = object(uri, &objects, format!("s3://{bucket}/{prefix}"), prefix)?;
                Self::new(uri.to_owned(), Some(objects), vec![file])
            }
        }
    }

    /// Makes a source of files that an earlier [`Source::open`] of the same URI listed.
    ///
    /// # Errors
    ///
    /// [`Error::Source`] if `files` is empty; [`Error::Objects`] if the object store cannot be set up.
    pub fn known(uri: &str, region: Option<&str>, files: Vec<File>) -> Result<Self, Error> {
        let objects = match s3_parts(uri) {
            Some((bucket, _)) => Some(s3(uri, &bucket, region)?),
            None => None,
        };
        Self::new(uri.to_owned(), objects, files)
    }

    /// Lists several URIs as one source. All must be in one bucket or all on the local disk.
    ///
    /// # Errors
    ///
    /// As [`Source::open`], and [`Error::Source`] if the URIs are in different stores.
    pub fn open_all(uris: &[String], access: &Access<'_>) -> Result<Self, Error> {
        let Some((first, others)) = uris.split_first() else { return Err(refuse("", "no source is named")) };
        let mut all = Self::open(first, access)?;
        for uri in others {
            let more = Self::open(uri, access)?;
            if more.objects.as_ref().map(Objects::name) != all.objects.as_ref().map(Objects::name) {
                return Err(refuse(uri, format!("it is not in the same store as {first}")));
            }
            all.files.extend(more.files);
            if all.files.len() > MOST_ENTRIES {
                return Err(too_many(uri));
            }
        }
        all.files.sort_by(|a, b| a.name.cmp(&b.name));
        all.files.dedup_by(|a, b| a.name == b.name);
        all.uri = uris.join(",");
        Ok(all)
    }

    /// Detects the dialect of the first file from its header.
    ///
    /// # Errors
    ///
    /// The same as [`crate::open`].
    pub fn detect(&self, options: &crate::Options) -> Result<crate::Dialect, Error> {
        let file = self.files.first().ok_or_else(|| refuse(&self.uri, "there are no files"))?;
        let reader = self.reader(file)?;
        Ok(crate::rows::open(reader, &file.name, None, options)?.header().dialect)
    }

    /// Lists the objects under a prefix of an open store; `base` is the URI of the store.
    ///
    /// # Errors
    ///
    /// [`Error::Denied`] if the store refuses the credentials, [`Error::Objects`] if it fails, [`Error::Source`] if
    /// there are no files or too many, and [`Error::Cancelled`].
    pub fn objects(
        objects: Objects,
        base: &str,
        prefix: &str,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        use tidegraph_platform::ObjectError;
        let base = base.trim_end_matches('/');
        let found = match objects.list_at_most(prefix, MOST_ENTRIES, cancelled) {
            Ok(found) => found.into_iter(),
            Err(ObjectError::TooMany { .. }) => return Err(too_many(&format!("{base}/{prefix}"))),
            Err(ObjectError::Cancelled { .. }) => return Err(Error::Cancelled),
            Err(source @ ObjectError::Denied { .. }) => {
                let (source_uri, source) = (format!("{base}/{prefix}"), Box::new(source));
                return Err(Error::Denied { source_uri, source });
            }
            Err(e) => return Err(e.into()),
        };
        // Consoles of object stores create empty objects as folders.
        let is_data = |path: &str| !path.ends_with('/') && !path.rsplit('/').next().is_some_and(is_mark);
        let files = found.filter(|o| is_data(&o.path) && o.bytes > 0).map(|object| File {
            name: format!("{base}/{}", object.path).into(),
            bytes: object.bytes,
            modified_ms: object.modified_ms,
            etag: object.etag,
            path: object.path,
        });
        Self::new(format!("{base}/{prefix}"), Some(objects), files.collect())
    }

    fn new(uri: String, objects: Option<Objects>, mut files: Vec<File>) -> Result<Self, Error> {
        if files.is_empty() {
            return Err(refuse(&uri, "there are no files"));
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { uri, objects, files })
    }

    /// Returns the URI as given.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the files, sorted by name.
    #[must_use]
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Opens one of the files.
    ///
    /// # Errors
    ///
    /// The same as [`Source::reader_of`].
    pub fn reader(&self, file: &File) -> Result<Box<dyn Read + Send>, Error> {
        self.reader_of(file, None)
    }

    /// Opens one of the files, or some bytes of it.
    ///
    /// # Errors
    ///
    /// [`Error::File`], with [`Cause::Changed`](crate::Cause::Changed) if the object was written since it was listed. A
    /// local file that became a link is not read.
    pub fn reader_of(&self, file: &File, range: Option<Range<u64>>) -> Result<Box<dyn Read + Send>, Error> {
        let failed = |source: ReadError| {
            let (file, cause) = (file.name.clone(), source.cause());
            Error::File { file, rows: 0, cause, source }
        };
        let Some(objects) = &self.objects else {
            let open = || -> std::io::Result<Box<dyn Read + Send>> {
                let mut reader = folder::open_file(Path::new(&file.path))?;
                let Some(range) = range else { return Ok(Box::new(reader)) };
                reader.seek(SeekFrom::Start(range.start))?;
                Ok(Box::new(reader.take(range.end - range.start)))
            };
            return open().map_err(|error| failed(ReadError::Io(error)));
        };
        match objects.reader_of(&file.path, range, file.etag.as_deref()) {
            Ok(reader) => Ok(Box::new(reader)),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Keeps only the files in `wanted`: paths below the source, each with the ETag that the file must have.
    ///
    /// # Errors
    ///
    /// [`Error::Source`] if a file is missing or has another ETag.
    pub fn only(self, wanted: &[(String, Option<String>)]) -> Result<Self, Error> {
        let base = self.uri.clone();
        let mut files = Vec::with_capacity(wanted.len());
        for (name, etag) in wanted {
            let uri = format!("{base}{name}");
            let Some(file) = self.files.iter().find(|file| *file.name == *uri) else {
                return Err(refuse(&uri, "the manifest names it, and it is not there"));
            };
            if let (Some(wanted), Some(found)) = (etag, &file.etag)
                && wanted.trim_matches('"') != found.trim_matches('"')
            {
                return Err(refuse(&uri, format!("its ETag is {found}, and the manifest says {wanted}")));
            }
            files.push(file.clone());
        }
        Self::new(base, self.objects, files)
    }
}

fn refuse(uri: &str, reason: impl Into<String>) -> Error {
    Error::Source { source_uri: uri.to_owned(), reason: reason.into() }
}

/// Looks up the object that a URI names.
fn object(uri: &str, objects: &Objects, name: String, path: String) -> Result<File, Error> {
    use tidegraph_platform::ObjectError;
    if path.is_empty() || path.ends_with('/') {
        return Err(refuse(uri, "it names no object"));
    }
    match objects.head(&path) {
        Ok(info) => Ok(File {
            name: name.into(),
            path,
            bytes: info.bytes,
            modified_ms: info.modified_ms,
            etag: info.etag,
        }),
        Err(ObjectError::NotFound { .. }) => Err(refuse(uri, "there is no such object")),
        Err(source @ ObjectError::Denied { .. }) => {
            Err(Error::Denied { source_uri: uri.to_owned(), source: Box::new(source) })
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a file is hidden, or a mark such as `_SUCCESS` that tools leave beside data.
fn is_mark(name: &str) -> bool {
    name.starts_with(['.', '_'])
}

fn too_many(uri: &str) -> Error {
    refuse(uri, format!("it has more than {MOST_ENTRIES} names, the limit: load a part of it at a time"))
}

/// Returns bucket and prefix of a URI in one of S3's forms.
fn s3_parts(uri: &str) -> Option<(String, String)> {
    let rest = match uri.strip_prefix("s3://") {
        Some(rest) => rest,
        None => {
            let (host, rest) = uri.strip_prefix("https://")?.split_once('/')?;
            let region = host.strip_prefix("s3.").and_then(|rest| rest.strip_suffix(".amazonaws.com"));
            let is_s3 = host == "s3.amazonaws.com" || region.is_some_and(|name| check_region(name).is_ok());
            is_s3.then_some(rest)?
        }
    };
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    Some((bucket.to_owned(), prefix.to_owned()))
}

#[cfg(feature = "aws")]
fn s3(_: &str, bucket: &str, region: Option<&str>) -> Result<Objects, Error> {
    Ok(Objects::s3(bucket, region, [])?)
}

#[cfg(not(feature = "aws"))]
fn s3(uri: &str, _: &str, _: Option<&str>) -> Result<Objects, Error> {
    Err(refuse(uri, "this build cannot read from S3; it was made without the feature aws"))
}

#[cfg(test)]
mod tests;
