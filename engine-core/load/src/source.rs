//! Sources: `file://` directories and `s3://` prefixes → the files in them.
//!
//! A source is a prefix, as the loader API defines it: `s3://bucket/a` names `a/b.csv` and `ab.csv`. For `file://` a
//! directory means the files under it. Names that begin with `.` or `_` are no data (`_SUCCESS`). Files are sorted by name, so that a load of the same
//! source takes the same order everywhere.

use crate::error::{Cause, Error};
use serde::{Deserialize, Serialize};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegraph_platform::Objects;

/// One file of a source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct File {
    /// Its URI; errors and reports name it.
    pub name: Arc<str>,
    /// Its path, within the bucket for `s3://`.
    pub path: String,
    /// Its size, compressed as it is.
    pub bytes: u64,
    /// When it was written, milliseconds since 1970; 0 where unknown.
    pub modified_ms: i64,
    /// Changes when it is written anew, if its store says so.
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
    /// Lists what a URI names: `file:///dir`, a plain path, `s3://bucket/prefix`, or S3's `https://` forms.
    /// `options` are settings of the object store, such as its endpoint; `region` is the bucket's.
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

    /// Files that were listed before, by whoever opened the same URI.
    pub fn known(uri: &str, region: Option<&str>, files: Vec<File>) -> Result<Self, Error> {
        let objects = match s3_parts(uri) {
            Some((bucket, _)) => Some(s3(uri, &bucket, region, &[])?),
            None => None,
        };
        Self::new(uri.to_owned(), objects, files)
    }

    /// Lists several URIs as one source. Those of one bucket go together, and those of the local disk.
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

    /// The dialect of the first file, by its header.
    pub fn detect(&self, options: &crate::Options) -> Result<crate::Dialect, Error> {
        let file = self.files.first().ok_or_else(|| refuse(&self.uri, "there are no files"))?;
        let reader = self.reader(file)?;
        Ok(crate::rows::open(reader, &file.name, None, options)?.header().dialect)
    }

    /// The objects under a prefix of a store that is open already; `base` is the URI of the store.
    pub fn objects(objects: Objects, base: &str, prefix: &str) -> Result<Self, Error> {
        let base = base.trim_end_matches('/');
        let found = match objects.list(prefix) {
            Ok(found) => found.into_iter(),
            Err(e) if is_denied(&e) => {
                return Err(Error::Denied { source_uri: format!("{base}/{prefix}"), reason: e.to_string() });
            }
            Err(e) => return Err(e.into()),
        };
        // Consoles make empty objects as folders.
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

    fn local(uri: &str, path: &Path) -> Result<Self, Error> {
        let failed =
            |path: &Path, e: std::io::Error| refuse(uri, format!("reading {} failed: {e}", path.display()));
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

    /// The source as it was given.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The files, sorted by name.
    #[must_use]
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Opens one of the files.
    pub fn reader(&self, file: &File) -> Result<Box<dyn Read + Send>, Error> {
        self.reader_of(file, None)
    }

    /// Opens one of the files, or some bytes of it; refuses one that was written anew since it was listed.
    pub fn reader_of(&self, file: &File, range: Option<Range<u64>>) -> Result<Box<dyn Read + Send>, Error> {
        let failed = |reason: String, denied, cause| Error::File {
            file: file.name.clone(),
            rows: 0,
            reason,
            denied,
            cause,
        };
        let Some(objects) = &self.objects else {
            let open = || -> std::io::Result<Box<dyn Read + Send>> {
                let mut reader = std::fs::File::open(&file.path)?;
                let Some(range) = range else { return Ok(Box::new(reader)) };
                reader.seek(SeekFrom::Start(range.start))?;
                Ok(Box::new(reader.take(range.end - range.start)))
            };
            return open().map_err(|e| {
                let is_gone = e.kind() == std::io::ErrorKind::NotFound;
                let cause = if is_gone { Cause::Changed } else { Cause::File };
                failed(e.to_string(), e.kind() == std::io::ErrorKind::PermissionDenied, cause)
            });
        };
        match objects.reader_of(&file.path, range, file.etag.as_deref()) {
            Ok(reader) => Ok(Box::new(reader)),
            Err(e) => {
                let denied = is_denied(&e);
                Err(failed(e.to_string(), denied, if denied { Cause::File } else { Cause::of(&e) }))
            }
        }
    }

    /// The same source with these of its files only, by their paths below the source, and with the tags that they should have.
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

/// Whether a store refused who asks. A listing tells it in its text only: `object_store` gives the refusal of a listing
/// no kind of its own.
fn is_denied(error: &tidegraph_platform::objects::Error) -> bool {
    let text = error.to_string();
    ["403 Forbidden", "401 Unauthorized", "AccessDenied"].iter().any(|word| text.contains(word))
}

/// Hidden files, and marks such as `_SUCCESS` that tools leave beside data.
fn is_mark(name: &str) -> bool {
    name.starts_with(['.', '_'])
}

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

/// Bucket and prefix of the forms in which S3 is named.
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
