//! Files with secrets.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Most bytes of a file with one secret.
const LONGEST: u64 = 64 << 10;

/// Reads the first line of a file with a secret, without the space around it.
///
/// # Errors
///
/// Those of [`read_secret_file`].
pub fn read_secret(path: &Path) -> io::Result<String> {
    let text = read_secret_file(path)?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Reads a file with a secret, such as a private key.
///
/// # Errors
///
/// Kind `PermissionDenied` if other users than its owner and its group can read or write the file, `InvalidData` if it
/// is too large or not text, and the errors of the system. No error contains the secret.
pub fn read_secret_file(path: &Path) -> io::Result<String> {
    read_secret_file_up_to(path, LONGEST)
}

/// Reads a file with secrets that has at most `longest` bytes.
///
/// # Errors
///
/// Those of [`read_secret_file`].
#[expect(clippy::disallowed_methods, reason = "the file is one of the user")]
pub fn read_secret_file_up_to(path: &Path, longest: u64) -> io::Result<String> {
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o7777;
    if mode & 0o006 != 0 {
        let message = format!(
            "every user of the machine can read or write the file (mode {mode:04o}): take that away, as by `chmod 600`"
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    let mut text = String::new();
    if file.take(longest + 1).read_to_string(&mut text)? as u64 > longest {
        let message = format!("the file has more than {longest} bytes, the limit");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(text)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
mod tests {
    use super::*;
    use std::fs::Permissions;

    #[test]
    fn a_file_that_everybody_can_read_or_write_is_refused_by_its_mode() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("token");
        std::fs::write(&path, " a-token-for-the-tests \nmore\n").unwrap();
        for mode in [0o644, 0o604, 0o602, 0o777] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = read_secret(&path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            assert!(error.to_string().contains(&format!("(mode {mode:04o})")), "{error}");
        }
        for mode in [0o600, 0o400, 0o640] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_secret(&path).unwrap(), "a-token-for-the-tests");
        }
        std::fs::write(&path, "x".repeat(100_000)).unwrap();
        assert_eq!(read_secret(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
