//! Certificates in files that are replaced, by whole ones and by broken ones.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

use super::*;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;
use tidegraph_platform::{ManualClock, RealClock};

/// An authority for tests.
struct Authority {
    pem: String,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: rcgen::Issuer::new(params, key) }
    }

    /// Returns a certificate that is valid until the beginning of a year, and its key.
    fn sign(&self, until_year: i32) -> (String, String) {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["node.fleet".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(until_year, 1, 1);
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// A folder with the files of a process.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    }

    fn put_all(&self, authorities: &str, (certificate, key): &(String, String)) {
        self.put("authorities.pem", authorities);
        self.put("certificate.pem", certificate);
        self.put("key.pem", key);
    }

    fn source(&self) -> Arc<TlsFiles> {
        let path = |name| self.0.path().join(name);
        Arc::new(TlsFiles {
            authorities: path("authorities.pem"),
            certificate: path("certificate.pem"),
            key: path("key.pem"),
            ..TlsFiles::default()
        })
    }
}

/// Returns a clock whose time of day is that of the beginning of 2030.
fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new("2030-01-01T00:00:00Z".parse().unwrap()))
}

/// The problem that the last read had.
fn problem(certificates: &Certificates) -> String {
    certificates.followed.as_ref().unwrap().state.lock().problem.clone()
}

#[test]
fn files_are_read_again_and_broken_ones_change_nothing() {
    let (fleet, other, files, clock) =
        (Authority::new("fleet"), Authority::new("other"), Files::new(), clock());
    let (first, second) = (fleet.sign(2031), fleet.sign(2032));
    files.put_all(&fleet.pem, &first);
    let certificates = Certificates::follow(files.source(), clock.clone(), false).unwrap();
    let used =
        |certificate: &(String, String)| certificates.current().texts.certificate.text == certificate.0;
    let expired = fleet.sign(2029);
    let strange = other.sign(2032);
    let half = |text: &str| text[..text.len() / 2].to_owned();
    // What is wrong, and the file that the error names.
    let broken: [(&str, &dyn Fn(), &str); 9] = [
        ("half a certificate", &|| files.put("certificate.pem", &half(&second.0)), "certificate.pem"),
        ("half a key", &|| files.put("key.pem", &half(&second.1)), "key.pem"),
        ("no authority", &|| files.put("authorities.pem", ""), "authorities.pem"),
        ("a certificate with the key before", &|| files.put("certificate.pem", &second.0), "key.pem"),
        ("text in place of a certificate", &|| files.put("certificate.pem", "soon"), "certificate.pem"),
        ("a certificate of another authority", &|| files.put_all(&fleet.pem, &strange), "certificate.pem"),
        ("only another authority", &|| files.put("authorities.pem", &other.pem), "authorities.pem"),
        ("an expired certificate", &|| files.put_all(&fleet.pem, &expired), "certificate.pem"),
        ("no key", &|| std::fs::remove_file(files.0.path().join("key.pem")).unwrap(), "key.pem"),
    ];
    for (what, break_them, file) in broken {
        break_them();
        clock.advance(READ_FILES_EVERY);
        assert!(used(&first), "{what}");
        let problem = problem(&certificates);
        assert!(problem.contains(file) && !problem.contains("PRIVATE"), "{what}: {problem}");
        files.put_all(&fleet.pem, &first);
    }
    // Every user of the machine can read the key.
    let key = files.0.path().join("key.pem");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    clock.advance(READ_FILES_EVERY);
    assert!(used(&first) && problem(&certificates).contains("0644"));
    // Whole files are used, but not before it is time.
    files.put_all(&fleet.pem, &second);
    assert!(used(&first));
    clock.advance(READ_FILES_EVERY);
    assert!(used(&second) && problem(&certificates).is_empty());
    let end = ManualClock::new("2032-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(certificates.current().expires, end.wall().as_second());
}

#[test]
fn a_process_does_not_start_with_certificates_that_peers_refuse() {
    let (fleet, other, files) = (Authority::new("fleet"), Authority::new("other"), Files::new());
    for (certificate, reason) in [(fleet.sign(2029), "expired"), (other.sign(2031), "UnknownIssuer")] {
        files.put_all(&fleet.pem, &certificate);
        let refused = Certificates::follow(files.source(), clock(), false).err().unwrap().to_string();
        assert!(refused.contains(reason) && refused.contains("certificate.pem"), "{refused}");
    }
}

#[test]
fn connections_without_tls_need_a_secret() {
    let (fleet, files) = (Authority::new("fleet"), Files::new());
    files.put_all(&fleet.pem, &fleet.sign(2031));
    for mode in [TlsMode::Accept, TlsMode::Prefer] {
        let source = TlsFiles { mode, ..(*files.source()).clone() };
        let refused = Certificates::fixed(&source, false).err().unwrap().to_string();
        assert!(refused.contains("secret") && refused.contains("certificate.pem"), "{refused}");
        assert!(Certificates::fixed(&source, true).is_ok());
    }
}

#[test]
fn the_thread_reads_what_nobody_asks_for() {
    let (fleet, files) = (Authority::new("fleet"), Files::new());
    let (first, second) = (fleet.sign(2080), fleet.sign(2081));
    files.put_all(&fleet.pem, &first);
    let certificates =
        Arc::new(Certificates::follow(files.source(), Arc::new(RealClock::new()), false).unwrap());
    certificates.watch().unwrap();
    files.put_all(&fleet.pem, &second);
    let clock = RealClock::new();
    // Looks without the method that reads.
    while certificates.current.load().texts.certificate.text != second.0 {
        assert!(clock.now() < Duration::from_secs(120), "the files were never read again");
        std::thread::yield_now();
    }
    let watched = Arc::downgrade(&certificates);
    drop(certificates);
    while watched.strong_count() > 0 {
        assert!(clock.now() < Duration::from_secs(240), "the thread keeps the certificates");
        std::thread::yield_now();
    }
}
