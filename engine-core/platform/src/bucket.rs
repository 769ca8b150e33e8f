//! The grammar of bucket names and regions of Amazon S3.
//!
//! Both become parts of the address that requests, and credentials with them, are sent to. So neither may have a
//! character that begins another part of an address.

use crate::objects::Error;
use std::net::Ipv4Addr;

/// Checks that a text is the name of a bucket.
///
/// # Errors
///
/// [`Error::InvalidName`] with the reason.
pub fn check_bucket(name: &str) -> Result<(), Error> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [name.bytes().next(), name.bytes().last()];
    let reason = if !(3..=63).contains(&name.len()) {
        "it must have 3 to 63 characters"
    } else if !name.bytes().all(|byte| is_plain(byte) || matches!(byte, b'-' | b'.')) {
        "it may have lower-case letters, digits, dots and hyphens"
    } else if !ends.into_iter().flatten().all(is_plain) || name.contains("..") {
        "it must begin and end with a letter or digit, and have no two dots in a row"
    } else if name.parse::<Ipv4Addr>().is_ok() {
        "it must not be an IP address"
    } else {
        return Ok(());
    };
    Err(Error::InvalidName { what: "bucket", name: name.to_owned(), reason })
}

/// Checks that a text is the name of a region, such as `eu-central-1`.
///
/// # Errors
///
/// [`Error::InvalidName`] with the reason.
pub fn check_region(name: &str) -> Result<(), Error> {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let reason = if name.len() > 32 {
        "it must have at most 32 characters"
    } else if !name.split('-').all(is_part) {
        "it must be lower-case letters and digits, with single hyphens between"
    } else {
        return Ok(());
    };
    Err(Error::InvalidName { what: "region", name: name.to_owned(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_and_buckets_cannot_change_the_address() {
        for region in ["eu-central-1", "us-gov-west-1", "auto", "local"] {
            check_region(region).unwrap();
        }
        for region in [
            "@127.0.0.1:8390/",
            "127.0.0.1:8390/?",
            "",
            "eu_1",
            "eu--1",
            "-eu",
            "eu-",
            "EU-1",
            "a.b",
            "a/b",
            "a#b",
            "a:1",
            "a b",
            "é",
        ] {
            let error = check_region(region).unwrap_err().to_string();
            assert!(error.starts_with(&format!("region {region:?}: ")), "{error}");
        }
        for bucket in ["tidegraph-sources", "a.b.c", "123", "name--usw2-az1--x-s3"] {
            check_bucket(bucket).unwrap();
        }
        for bucket in ["", "ab", "A-bucket", "-ab", "ab-", "a..b", "192.168.0.1", "a@b", "a/b", "a?b", "a_b"]
        {
            let error = check_bucket(bucket).unwrap_err().to_string();
            assert!(error.starts_with(&format!("bucket {bucket:?}: ")), "{error}");
        }
        assert!(check_bucket(&"a".repeat(64)).is_err() && check_region(&"a".repeat(33)).is_err());
    }
}
