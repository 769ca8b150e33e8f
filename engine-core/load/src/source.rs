//! Sources: lists the files of `file://` directories and `s3://` prefixes.
//!
//! A source is a prefix, as the loader API defines it: `s3://bucket/a` names `a/b.csv` and `ab.csv`. For `file://` a
//! directory means the files under it. Files whose names begin with `.` or `_`, such as `_SUCCESS`, are skipped. Files
//! are sorted by name, so that every load of a source reads them in the same order.

use crate::error::{Error, ReadError};
use serde::{Deserialize, Serialize};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegraph_platform::Objects;

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

/// The files that one load reads.
#[derive(Debug)]
pub struct Source {
    uri: String,
    objects: Option<Objects>,
    files: Vec<File>,
}

impl Source {
    /// Lists the files of a URI: `file:///dir`, a path, `s3://bucket/prefix`, or S3's `https://` forms.
    ///
    /// `options` are settings of the object store, such as its endpoint; `region` is the bucket's.
    ///
    /// # Errors
    ///
    /// * [`Error::Source`] if the scheme is not supported or there are no files.
    /// * [`Error::List`] if the local disk fails, [`Error::Objects`] if the object store fails.
    /// * [`Error::Denied`] if the store refuses the credentials.
    pub fn open(uri: &str, region: Option<&str>, options: &[(String, String)]) -> Result<Self, Error> {
        if let Some((bucket, prefix)) = s3_parts(uri) {
            let objects = s3(uri, &bucket, region, options)?;
            return Self::objects(objects, &format!("s3://{bucket}"), &prefix);
        }
        let path = match uri.strip_prefix("file://") {
            Some(path) => path.strip_prefix("localhost").unwrap_or(path),
            None if uri.contains("://") => {
                return Err(refuse(uri, "only file:// and s3:// sources are read"));
            }
            None => uri,
        };
        Self::local(uri, Path::new(path))
    }

    /// Makes a source of files that an earlier [`Source::open`] of the same URI listed.
    ///
    /// # Errors
    ///
    /// [`Error::Source`] if `files` is empty; [`Error::Objects`] if the object store cannot be set up.
    pub fn known(uri: &str, region: Option<&str>, files: Vec<File>) -> Result<Self, Error> {
        let objects = match s3_parts(uri) {
            Some((bucket, _)) => Some(s3(uri, &bucket, region, &[])?),
            None => None,
        };
        Self::new(uri.to_owned(), objects, files)
    }

    /// Lists several URIs as one source. All must be in one bucket or all on the local disk.
    ///
    /// # Errors
    ///
    /// The same as [`Source::open`], and [`Error::Source`] if the URIs are in different stores.
    pub fn open_all(
        uris: &[String],
        region: Option<&str>,
        options: &[(String, String)],
    ) -> Result<Self, Error> {
        let Some((first, others)) = uris.split_first() else { return Err(refuse("", "no source is named")) };
        let mut all = Self::open(first, region, options)?;
        for uri in others {
            let more = Self::open(uri, region, options)?;
            if more.objects.as_ref().map(Objects::name) != all.objects.as_ref().map(Objects::name) {
                return Err(refuse(uri, format!("it is not in the same store as {first}")));
            }
            all.files.extend(more.files);
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
    /// [`Error::Denied`] if the store refuses the credentials, [`Error::Objects`] if it fails, and [`Error::Source`] if
    /// there are no files.
    pub fn objects(objects: Objects, base: &str, prefix: &str) -> Result<Self, Error> {
        let base = base.trim_end_matches('/');
        let found = match objects.list(prefix) {
            Ok(found) => found.into_iter(),
            Err(source @ tidegraph_platform::ObjectError::Denied { .. }) => {
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

    #[expect(clippy::disallowed_methods, reason = "the files of a source are those of users")]
    fn local(uri: &str, path: &Path) -> Result<Self, Error> {
        let failed = |path: &Path, source: std::io::Error| Error::List {
            source_uri: uri.to_owned(),
            path: path.display().to_string(),
            source,
        };
        let mut paths = Vec::new();
        if path.is_dir() {
            walk(path, &mut paths).map_err(|(path, e)| failed(&path, e))?;
        } else if path.is_file() {
            paths.push(path.to_owned());
        } else if let (Some(dir), Some(start)) = (path.parent().filter(|d| d.is_dir()), path.file_name()) {
            let start = start.to_string_lossy();
            walk(dir, &mut paths).map_err(|(path, e)| failed(&path, e))?;
            paths.retain(|p| {
                let rest = p.strip_prefix(dir).unwrap_or(p);
                rest.to_string_lossy().starts_with(start.as_ref())
            });
        }
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            let meta = std::fs::metadata(&path).map_err(|e| failed(&path, e))?;
            let absolute = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
            let modified = meta.modified().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
            files.push(File {
                name: format!("file://{}", absolute.display()).into(),
                path: path.to_string_lossy().into_owned(),
                bytes: meta.len(),
                modified_ms: modified.and_then(|d| i64::try_from(d.as_millis()).ok()).unwrap_or_default(),
                etag: None,
            });
        }
        Self::new(uri.to_owned(), None, files)
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
    /// [`Error::File`], with [`Cause::Changed`](crate::Cause::Changed) if the object was written since it was listed.
    #[expect(clippy::disallowed_methods, reason = "the files of a source are those of users")]
    pub fn reader_of(&self, file: &File, range: Option<Range<u64>>) -> Result<Box<dyn Read + Send>, Error> {
        let failed = |source: ReadError| {
            let (file, cause) = (file.name.clone(), source.cause());
            Error::File { file, rows: 0, cause, source }
        };
        let Some(objects) = &self.objects else {
            let open = || -> std::io::Result<Box<dyn Read + Send>> {
                let mut reader = std::fs::File::open(&file.path)?;
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

/// Whether a file is hidden, or a mark such as `_SUCCESS` that tools leave beside data.
fn is_mark(name: &str) -> bool {
    name.starts_with(['.', '_'])
}

#[expect(clippy::disallowed_methods, reason = "the files of a source are those of users")]
fn walk(dir: &Path, found: &mut Vec<PathBuf>) -> Result<(), (PathBuf, std::io::Error)> {
    let fail = |e| (dir.to_owned(), e);
    for entry in std::fs::read_dir(dir).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.file_name().is_some_and(|n| is_mark(&n.to_string_lossy())) {
            continue;
        }
        if path.is_dir() {
            walk(&path, found)?;
        } else if path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns bucket and prefix of a URI in one of S3's forms.
fn s3_parts(uri: &str) -> Option<(String, String)> {
    let rest = match uri.strip_prefix("s3://") {
        Some(rest) => rest,
        None => {
            let (host, rest) = uri.strip_prefix("https://")?.split_once('/')?;
            let s3 =
                host == "s3.amazonaws.com" || (host.starts_with("s3.") && host.ends_with(".amazonaws.com"));
            s3.then_some(rest)?
        }
    };
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    Some((bucket.to_owned(), prefix.to_owned()))
}

#[cfg(feature = "aws")]
fn s3(_: &str, bucket: &str, region: Option<&str>, options: &[(String, String)]) -> Result<Objects, Error> {
    Ok(Objects::s3(bucket, region, options.iter().map(|(k, v)| (k.as_str(), v.as_str())))?)
}

#[cfg(not(feature = "aws"))]
fn s3(uri: &str, _: &str, _: Option<&str>, _: &[(String, String)]) -> Result<Objects, Error> {
    Err(refuse(uri, "this build cannot read from S3; it was made without the feature aws"))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
mod tests {
    use super::*;

    fn names(source: &Source) -> Vec<String> {
        source.files().iter().map(|f| f.path.rsplit('/').next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn local_directories_files_and_prefixes() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.csv", "a/x.csv", ".hidden", "ab.csv"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "~id\n").unwrap();
        }
        let open = |rest: &str| Source::open(&format!("file://{}{rest}", dir.path().display()), None, &[]);
        assert_eq!(names(&open("").unwrap()), ["x.csv", "ab.csv", "b.csv"]);
        assert_eq!(names(&open("/b.csv").unwrap()), ["b.csv"]);
        assert_eq!(names(&open("/ab").unwrap()), ["ab.csv"]);
        let plain = Source::open(&dir.path().display().to_string(), None, &[]).unwrap();
        assert_eq!(plain.files().len(), 3);
        let mut text = String::new();
        plain.reader(&plain.files()[0]).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "~id\n");
        assert!(open("/none").unwrap_err().to_string().ends_with("there are no files"));
        assert!(Source::open("ftp://x", None, &[]).is_err());
    }

    #[test]
    fn objects_by_prefix() {
        let objects = Objects::memory().unwrap();
        for name in ["a/bc.csv", "ab/c.csv", "ade.csv", "bcd.csv"] {
            objects.put(name, b"~id\n".to_vec()).unwrap();
        }
        let source = Source::objects(objects, "s3://bucket", "a").unwrap();
        let names: Vec<_> = source.files().iter().map(|f| &*f.name).collect();
        assert_eq!(names, ["s3://bucket/a/bc.csv", "s3://bucket/ab/c.csv", "s3://bucket/ade.csv"]);
    }

    #[test]
    fn forms_of_s3() {
        let parts = |uri| s3_parts(uri).map(|(b, p)| format!("{b} {p}"));
        assert_eq!(parts("s3://b/k/x").as_deref(), Some("b k/x"));
        assert_eq!(parts("https://s3.amazonaws.com/b/k").as_deref(), Some("b k"));
        assert_eq!(parts("https://s3.us-east-1.amazonaws.com/b/k").as_deref(), Some("b k"));
        assert_eq!(parts("https://example.com/b/k"), None);
    }
}
