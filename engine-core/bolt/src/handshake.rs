//! The handshake: which version of Bolt a connection speaks.
//!
//! A client sends [`MAGIC`] and four proposals of four bytes. The server answers with one version; or, if a proposal asks
//! for a *manifest*, with all its versions, of which the client then chooses one.

/// The first bytes of every connection.
pub const MAGIC: [u8; 4] = [0x60, 0x60, 0xB0, 0x17];

/// Length of what a client sends first: [`MAGIC`] and four proposals.
pub const GREETING_BYTES: usize = 20;

/// The proposal, and the answer to it, that announces a manifest.
const MANIFEST: [u8; 4] = [0, 0, 1, 0xFF];

/// The answer if there is no common version.
const NO_VERSION: [u8; 4] = [0; 4];

/// The ranges of versions that are supported, newest first: major, newest minor, oldest minor.
const SUPPORTED: [(u8, u8, u8); 2] = [(5, 8, 0), (4, 4, 4)];

/// A version of Bolt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version {
    /// Changes with the meaning of messages.
    pub major: u8,
    /// Changes with additions.
    pub minor: u8,
}

impl Version {
    /// Makes a version.
    #[must_use]
    pub const fn new(major: u8, minor: u8) -> Self {
        Self { major, minor }
    }

    fn is_supported(self) -> bool {
        SUPPORTED
            .iter()
            .any(|&(major, newest, oldest)| self.major == major && (oldest..=newest).contains(&self.minor))
    }

    fn bytes(self) -> [u8; 4] {
        [0, 0, self.minor, self.major]
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What the server does after a greeting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It sends the bytes and speaks the version.
    Chosen(Version, [u8; 4]),
    /// It sends the bytes and reads the client's choice: see [`Choice`].
    Manifest(Vec<u8>),
    /// It sends the bytes and closes the connection.
    NoVersion([u8; 4]),
    /// The bytes are not a greeting of Bolt.
    NotBolt,
}

/// Answers a greeting: the first proposal that is supported counts.
#[must_use]
pub fn answer(greeting: [u8; GREETING_BYTES]) -> Answer {
    let (words, _) = greeting.as_chunks::<4>();
    if words[0] != MAGIC {
        return Answer::NotBolt;
    }
    for &proposal in &words[1..] {
        if proposal == MANIFEST {
            return Answer::Manifest(manifest());
        }
        let [_, range, newest, major] = proposal;
        let mut minors = (newest.saturating_sub(range)..=newest).rev().map(|minor| Version { major, minor });
        if let Some(version) = minors.find(|version| version.is_supported()) {
            return Answer::Chosen(version, version.bytes());
        }
    }
    Answer::NoVersion(NO_VERSION)
}

/// All versions, and no optional capabilities.
fn manifest() -> Vec<u8> {
    let mut bytes = MANIFEST.to_vec();
    bytes.push(SUPPORTED.len() as u8);
    for (major, newest, oldest) in SUPPORTED {
        bytes.extend([0, newest - oldest, newest, major]);
    }
    bytes.push(0);
    bytes
}

/// A client's choice from a manifest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// The version, and how many bytes the choice takes.
    Chosen(Version, usize),
    /// More bytes must arrive.
    Incomplete,
    /// The client chose something that was not offered.
    Wrong,
}

/// Longest variable-length integer: 64 bits in groups of 7.
const VARINT_BYTES: usize = 10;

/// Reads a client's choice: a version and the capabilities that it uses.
#[must_use]
pub fn choice(bytes: &[u8]) -> Choice {
    let Some((chosen, capabilities)) = bytes.split_first_chunk::<4>() else { return Choice::Incomplete };
    let [0, 0, minor, major] = *chosen else { return Choice::Wrong };
    let version = Version { major, minor };
    if !version.is_supported() {
        return Choice::Wrong;
    }
    match capabilities.iter().take(VARINT_BYTES).position(|byte| byte & 0x80 == 0) {
        // No capability is offered, so the client can use none.
        Some(last) if capabilities[..=last].iter().all(|byte| byte & 0x7F == 0) => {
            Choice::Chosen(version, chosen.len() + last + 1)
        }
        None if capabilities.len() < VARINT_BYTES => Choice::Incomplete,
        _ => Choice::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(proposals: [[u8; 4]; 4]) -> [u8; GREETING_BYTES] {
        let mut bytes = [0; GREETING_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..].copy_from_slice(proposals.as_flattened());
        bytes
    }

    fn chosen(proposals: [[u8; 4]; 4]) -> Option<Version> {
        match answer(greeting(proposals)) {
            Answer::Chosen(version, bytes) => {
                assert_eq!(bytes, [0, 0, version.minor, version.major]);
                Some(version)
            }
            other => {
                assert_eq!(other, Answer::NoVersion([0; 4]));
                None
            }
        }
    }

    #[test]
    fn the_newest_supported_version_of_the_first_range_that_has_one_is_chosen() {
        let none = [0; 4];
        assert_eq!(chosen([[0, 8, 8, 5], [0, 2, 4, 4], none, none]), Some(Version::new(5, 8)));
        assert_eq!(chosen([[0, 0, 4, 5], none, none, none]), Some(Version::new(5, 4)));
        // A newer client: 5.8 is within its range.
        assert_eq!(chosen([[0, 20, 20, 5], none, none, none]), Some(Version::new(5, 8)));
        assert_eq!(chosen([[0, 1, 1, 6], [0, 2, 4, 4], none, none]), Some(Version::new(4, 4)));
        assert_eq!(chosen([[0, 0, 3, 4], [0, 0, 0, 3], none, none]), None);
        assert_eq!(chosen([[0, 255, 255, 9], none, none, none]), None);
    }

    #[test]
    fn other_bytes_are_not_bolt() {
        let mut bytes = greeting([[0, 8, 8, 5]; 4]);
        bytes[3] = 0x18;
        assert_eq!(answer(bytes), Answer::NotBolt);
    }

    #[test]
    fn a_manifest_lists_all_versions_and_the_client_chooses() {
        let asked = greeting([[0, 0, 1, 0xFF], [0, 8, 8, 5], [0, 2, 4, 4], [0; 4]]);
        let Answer::Manifest(bytes) = answer(asked) else { panic!("a manifest was asked for") };
        assert_eq!(bytes, [0, 0, 1, 0xFF, 2, 0, 8, 8, 5, 0, 0, 4, 4, 0]);
        assert_eq!(choice(&[0, 0, 8, 5, 0, 9]), Choice::Chosen(Version::new(5, 8), 5));
        assert_eq!(choice(&[0, 0, 4, 4, 0x80, 0]), Choice::Chosen(Version::new(4, 4), 6));
        for incomplete in [&[][..], &[0, 0, 8], &[0, 0, 8, 5], &[0, 0, 8, 5, 0x80]] {
            assert_eq!(choice(incomplete), Choice::Incomplete, "{incomplete:?}");
        }
        for wrong in [&[0, 0, 9, 5, 0][..], &[0, 1, 8, 5, 0], &[0, 0, 8, 5, 1], &[1, 0, 8, 5, 0]] {
            assert_eq!(choice(wrong), Choice::Wrong, "{wrong:?}");
        }
        let endless = [&[0, 0, 8, 5][..], &[0x80; 20]].concat();
        assert_eq!(choice(&endless), Choice::Wrong);
    }
}
