//! The manifest of an archive: a piece of the log behind a backup. It is JSON, like that of a backup.

use super::manifest::{FOLDERS, check_format};
use super::{CopiedObject, Error, FORMATS, LogObject};
use serde::{Deserialize, Serialize};
use tidegraph_log::archive::Entry;

/// Largest manifest that is read, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// A record of a log, by what tells it apart from records of the same version in other logs of the graph: a restored log,
/// or one that was begun again, has other epochs and other times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mark {
    /// Version of the record.
    pub version: u64,
    /// Its epoch.
    pub epoch: u64,
    /// When the log took it, in milliseconds since 1970; `None` if this is not known.
    pub written_ms: Option<i64>,
}

impl Mark {
    /// Returns the mark of a record.
    #[must_use]
    pub fn of(entry: &Entry) -> Self {
        let (version, epoch) = (entry.record.version.0, entry.record.epoch.0);
        Self { version, epoch, written_ms: entry.written_ms.filter(|ms| *ms > 0) }
    }

    /// Whether two marks are those of the same record. Times count if both are known.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        let times = self.written_ms.zip(other.written_ms);
        (self.version, self.epoch) == (other.version, other.epoch) && times.is_none_or(|(a, b)| a == b)
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "version {} of epoch {}", self.version, self.epoch)?;
        self.written_ms.map_or(Ok(()), |ms| write!(f, ", written {}", super::catalog::time(ms)))
    }
}

/// An archive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Archive {
    /// The series, which has the name of the backup that it follows.
    pub series: String,
    /// The release that made it.
    pub release: String,
    /// The record before the first one.
    pub after: Mark,
    /// The last record.
    pub end: Mark,
    /// When the last record was read, or later, in milliseconds since 1970. The archives up to this one have everything that
    /// was acknowledged before.
    pub cut_ms: i64,
    /// The object with the records.
    pub log: LogObject,
    /// Objects of the loads among the records, in order of path.
    pub objects: Vec<CopiedObject>,
}

/// The object of a manifest.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Envelope {
    format: u64,
    /// CRC-32C of the archive as compact JSON.
    crc32c: u32,
    archive: Archive,
}

impl Archive {
    /// Returns the number of bytes of all objects.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.log.bytes + self.objects.iter().map(|object| object.bytes).sum::<u64>()
    }

    /// Returns the paths of all objects below the folder of the series, with their sizes and checksums.
    pub fn stored(&self) -> impl Iterator<Item = CopiedObject> {
        let copied = self
            .objects
            .iter()
            .map(|object| CopiedObject { path: format!("objects/{}", object.path), ..object.clone() });
        let LogObject { path, bytes, crc32c, .. } = self.log.clone();
        copied.chain([CopiedObject { path, bytes, crc32c }])
    }

    /// Encodes the object of the manifest.
    ///
    /// # Errors
    /// None for an archive that was made or decoded.
    pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let crc32c = crc32c::crc32c(&serde_json::to_vec(self)?);
        let format = u64::from(FORMATS.newest);
        serde_json::to_vec_pretty(&Envelope { format, crc32c, archive: self.clone() })
    }

    /// Decodes the object of a manifest, and checks what restoring relies on.
    ///
    /// # Errors
    /// [`Error::UnknownFormat`] if this release does not read the format; [`Error::Unreadable`] if the object is damaged or
    /// contradicts itself.
    pub fn decode(object: &str, bytes: &[u8]) -> Result<Self, Error> {
        let unreadable = |reason: String| Error::Unreadable { object: object.to_owned(), reason };
        check_format(object, bytes, MOST_BYTES)?;
        let envelope: Envelope =
            serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
        let again = serde_json::to_vec(&envelope.archive).map_err(|error| unreadable(error.to_string()))?;
        if crc32c::crc32c(&again) != envelope.crc32c {
            return Err(unreadable("its checksum does not match".into()));
        }
        envelope.archive.check().map_err(unreadable)?;
        Ok(envelope.archive)
    }

    /// Checks what restoring relies on.
    fn check(&self) -> Result<(), String> {
        let (first, last) = (self.log.first, self.log.last);
        if first != self.after.version + 1 || last != self.end.version || first > last {
            let (after, end) = (self.after.version, self.end.version);
            return Err(format!("it has versions {first} to {last}, and lies between {after} and {end}"));
        }
        let is_of_graph = |path: &str| FOLDERS.iter().any(|folder| path.starts_with(folder));
        let paths = self.objects.iter().map(|object| &object.path);
        let foreign = paths.clone().find(|path| !is_of_graph(path));
        if let Some(path) = foreign.or((!self.log.path.starts_with("log/")).then_some(&self.log.path)) {
            return Err(format!("it names the object {path:?}, which is none of a graph"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> Archive {
        let mark = |version, written_ms| Mark { version, epoch: 3, written_ms };
        Archive {
            series: "20261126T050000Z-01234567".into(),
            release: "0.1.0".into(),
            after: mark(9, None),
            end: mark(12, Some(1_764_000_002_000)),
            cut_ms: 1_764_000_003_000,
            log: LogObject {
                path: "log/00000000000000000010-00000000000000000012-0000000a".into(),
                first: 10,
                last: 12,
                first_ms: Some(1_764_000_001_500),
                bytes: 100,
                crc32c: 10,
            },
            objects: vec![CopiedObject { path: "loads/x/v-p00000-000000.seg".into(), bytes: 7, crc32c: 6 }],
        }
    }

    #[test]
    fn a_manifest_comes_back_and_damage_is_refused_by_name() {
        let bytes = archive().encode().unwrap();
        assert_eq!(Archive::decode("m", &bytes).unwrap(), archive());
        assert_eq!(archive().bytes(), 107);
        let text = String::from_utf8(bytes).unwrap();
        for (from, to, reason) in [
            ("\"format\": 1", "\"format\": 2", "m.json has format 2, this release reads 1"),
            ("\"bytes\": 7", "\"bytes\": 8", "m.json of a backup or an archive cannot be read: its checksum"),
            ("\"cutMs\"", "\"cutAtMs\"", "cutAtMs"),
        ] {
            assert!(text.contains(from), "{text}");
            let error = Archive::decode("m.json", text.replacen(from, to, 1).as_bytes()).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn a_manifest_that_contradicts_itself_is_refused() {
        let refused = |change: &dyn Fn(&mut Archive)| {
            let mut changed = archive();
            change(&mut changed);
            Archive::decode("m", &changed.encode().unwrap()).unwrap_err().to_string()
        };
        assert!(refused(&|a| a.after.version = 8).contains("10 to 12"));
        assert!(refused(&|a| a.end.version = 13).contains("between 9 and 13"));
        assert!(refused(&|a| a.objects[0].path = "restore.json".into()).contains("restore.json"));
        assert!(refused(&|a| a.log.path = "loads/x".into()).contains("loads/x"));
    }

    #[test]
    fn marks_differ_by_version_epoch_and_known_times() {
        let mark = |version, epoch, written_ms| Mark { version, epoch, written_ms };
        let one = mark(7, 2, Some(5));
        assert!(one.is(&one) && one.is(&mark(7, 2, None)) && mark(7, 2, None).is(&one));
        for other in [mark(8, 2, Some(5)), mark(7, 3, Some(5)), mark(7, 2, Some(6)), mark(7, 3, None)] {
            assert!(!one.is(&other), "{other}");
        }
        assert_eq!(one.to_string(), "version 7 of epoch 2, written 1970-01-01T00:00:00.005Z");
    }
}
