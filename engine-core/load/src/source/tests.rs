//! Tests of sources: what they name, what they may not name, and how they end.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

use super::*;
use std::os::unix::fs::symlink;
use tidegraph_types::ErrorCode;

fn names(source: &Source) -> Vec<String> {
    source.files().iter().map(|f| f.path.rsplit('/').next().unwrap_or_default().to_owned()).collect()
}

fn open(uri: &str, allowed: &Allowed) -> Result<Source, Error> {
    let access = Access::to(allowed);
    let checked = Source::check(uri, &access);
    let opened = Source::open(uri, &access);
    assert!(checked.is_ok() || opened.is_err(), "{uri}: a check refuses what can be opened: {checked:?}");
    opened
}

fn write(dir: &Path, names: &[&str]) {
    for name in names {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "~id\n").unwrap();
    }
}

#[test]
fn local_directories_files_and_prefixes() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &["b.csv", "a/x.csv", ".hidden", "_SUCCESS", "ab.csv"]);
    let everything = Allowed::everything();
    let open = |rest: &str| open(&format!("file://{}{rest}", dir.path().display()), &everything);
    assert_eq!(names(&open("").unwrap()), ["x.csv", "ab.csv", "b.csv"]);
    assert_eq!(names(&open("/b.csv").unwrap()), ["b.csv"]);
    assert_eq!(names(&open("/ab").unwrap()), ["ab.csv"]);
    assert_eq!(names(&open("/a").unwrap()), ["x.csv"]);
    let plain = Source::open(&dir.path().display().to_string(), &Access::to(&everything)).unwrap();
    assert_eq!(plain.files().len(), 3);
    let mut text = String::new();
    plain.reader(&plain.files()[0]).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "~id\n");
    for wrong in ["/none", "/ab/", "/none/x.csv", "/b.csv/x"] {
        let error = open(wrong).unwrap_err();
        assert_eq!(error.code(), ErrorCode::BadRequest, "{error}");
        assert!(error.to_string().contains("there is no file or folder"), "{error}");
    }
    for wrong in ["ftp://x", "file://host/x", "file:///a\0b"] {
        assert!(Source::open(wrong, &Access::to(&everything)).is_err(), "{wrong}");
    }
}

#[test]
fn nothing_is_read_outside_of_what_is_allowed() {
    let home = tempfile::tempdir().unwrap();
    let home = std::fs::canonicalize(home.path()).unwrap();
    write(&home, &["in/a.csv", "in/deep/b.csv", "inside.csv", "secret.csv", "links/ok.csv"]);
    symlink(home.join("secret.csv"), home.join("links/file.csv")).unwrap();
    symlink("..", home.join("links/up")).unwrap();
    symlink(home.join("in"), home.join("named")).unwrap();
    let uri = |path: &str| format!("file://{}/{path}", home.display());
    let allowed = Allowed::parse([uri("named"), uri("links")]).unwrap();
    for (path, count) in [("named", 2), ("named/a.csv", 1), ("in", 2), ("in/deep/", 1), ("links/ok.csv", 1)] {
        assert_eq!(open(&uri(path), &allowed).unwrap().files().len(), count, "{path}");
    }
    let denied = |uri: &str, allowed: &Allowed| {
        let error = open(uri, allowed).expect_err(uri);
        assert_eq!(error.code(), ErrorCode::AccessDenied, "{uri}: {error}");
        assert!(error.to_string().contains(uri) && error.to_string().contains("--load-from"), "{error}");
    };
    let elsewhere = ["file:///etc/passwd", "file:///proc/self/environ", "/etc/passwd", "s3://any-bucket/x"];
    elsewhere.iter().for_each(|uri| denied(uri, &allowed));
    for path in ["secret.csv", "inside.csv", "", "no-such-file"] {
        denied(&uri(path), &allowed);
    }
    denied(&uri("in/a.csv"), &Allowed::nothing());
    for path in ["in/../secret.csv", "links/file.csv", "links/up/secret.csv", "links/up/", "links"] {
        let error = open(&uri(path), &allowed).expect_err(path);
        assert_eq!(error.code(), ErrorCode::BadRequest, "{path}: {error}");
        assert!(!error.to_string().contains("~id"), "{error}");
    }
}

#[test]
fn a_file_that_became_a_link_is_not_read() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &["in/a.csv", "in/deep/b.csv", "secret/b.csv"]);
    let allowed = Allowed::parse([home.path().join("in").display().to_string()]).unwrap();
    let source = open(&format!("file://{}/in/", home.path().display()), &allowed).unwrap();
    std::fs::remove_file(home.path().join("in/a.csv")).unwrap();
    symlink("../secret/b.csv", home.path().join("in/a.csv")).unwrap();
    std::fs::remove_dir_all(home.path().join("in/deep")).unwrap();
    symlink("../secret", home.path().join("in/deep")).unwrap();
    for file in source.files() {
        let error = source.reader(file).err().expect("a link");
        assert!(error.to_string().contains("is a link"), "{error}");
    }
}

#[test]
fn only_buckets_and_prefixes_that_are_allowed_are_asked() {
    let allowed = Allowed::parse(["s3://whole-bucket", "s3://some-bucket/exports"]).unwrap();
    let check = |uri: &str, region: Option<&str>| {
        let access = Access { region, ..Access::to(&allowed) };
        Source::check(uri, &access).map_err(|error| error.code())
    };
    for uri in [
        "s3://whole-bucket",
        "s3://whole-bucket/a/b",
        "s3://some-bucket/exports/2026/",
        "https://s3.eu-west-1.amazonaws.com/whole-bucket/a",
    ] {
        assert_eq!(check(uri, Some("eu-central-1")), Ok(()), "{uri}");
    }
    for uri in
        ["s3://some-bucket/", "s3://some-bucket/exports-of-others/", "s3://other-bucket/", "/etc/passwd"]
    {
        assert_eq!(check(uri, None), Err(ErrorCode::AccessDenied), "{uri}");
    }
    for region in ["@127.0.0.1:8390/", "127.0.0.1:8390/?"] {
        assert_eq!(check("s3://whole-bucket/a", Some(region)), Err(ErrorCode::InvalidParameter), "{region}");
        let everything = Allowed::everything();
        let access = Access { region: Some(region), ..Access::to(&everything) };
        let error = Source::open("s3://whole-bucket/a", &access).unwrap_err();
        assert!(error.to_string().contains(&format!("region {region:?}")), "{error}");
    }
    for place in ["s3://Bucket", "s3://", "ftp://x", "/no/such/folder", "/etc/passwd"] {
        assert!(Allowed::parse([place]).is_err(), "{place}");
    }
}

#[test]
fn a_listing_has_an_end() {
    let home = tempfile::tempdir().unwrap();
    let everything = Allowed::everything();
    let deep = vec!["d"; 40].join("/");
    write(home.path(), &["deep/a.csv"]);
    std::fs::create_dir_all(home.path().join("deep").join(&deep)).unwrap();
    let uri = |path: &str| format!("file://{}/{path}", home.path().display());
    let error = open(&uri("deep"), &everything).unwrap_err().to_string();
    assert!(error.contains("more than 32 folders"), "{error}");

    std::fs::create_dir(home.path().join("self")).unwrap();
    symlink(".", home.path().join("self/again")).unwrap();
    let error = open(&uri("self"), &everything).unwrap_err().to_string();
    assert!(error.contains("self/again is a link"), "{error}");

    write(home.path(), &["many/a.csv", "many/b.csv", "many/c.csv"]);
    let asked = std::cell::Cell::new(0);
    let cancelled = || asked.replace(asked.get() + 1) >= 2;
    let access = Access { cancelled: &cancelled, ..Access::to(&everything) };
    assert_eq!(Source::open(&uri("many"), &access).unwrap_err().code(), ErrorCode::Cancelled);
    assert_eq!(asked.get(), 3);
}

#[test]
fn a_pipe_is_no_file_of_a_source() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &["in/a.csv"]);
    let pipe = home.path().join("in/pipe.csv");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let everything = Allowed::everything();
    let found = open(&format!("file://{}/in", home.path().display()), &everything).unwrap();
    assert_eq!(names(&found), ["a.csv"]);
    assert!(open(&pipe.display().to_string(), &everything).is_err());
}

#[test]
fn objects_by_prefix() {
    let objects = Objects::memory().unwrap();
    for name in ["a/bc.csv", "ab/c.csv", "ade.csv", "bcd.csv"] {
        objects.put(name, b"~id\n".to_vec()).unwrap();
    }
    let source = Source::objects(objects, "s3://bucket", "a", &|| false).unwrap();
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
    assert_eq!(parts("https://s3.@127.0.0.1:8390?.amazonaws.com/b/k"), None);
}

#[test]
fn a_stamp_changes_with_the_content() {
    let stamp =
        |bytes, modified_ms, etag: Option<&str>| Stamp { bytes, modified_ms, etag: etag.map(Into::into) };
    assert!(stamp(1, 2, None).is_same(&stamp(1, 2, None)));
    assert!(!stamp(1, 2, None).is_same(&stamp(2, 2, None)));
    assert!(!stamp(1, 2, None).is_same(&stamp(1, 3, None)));
    assert!(!stamp(1, 2, Some("a")).is_same(&stamp(1, 2, Some("b"))));
    // The same content was uploaded again.
    assert!(stamp(1, 2, Some("a")).is_same(&stamp(1, 3, Some("a"))));
}

#[test]
fn one_file_is_found_where_it_may_be_read() {
    let home = tempfile::tempdir().unwrap();
    let home = std::fs::canonicalize(home.path()).unwrap();
    write(&home, &["in/a.csv", "in/deep/b.csv", "secret.csv"]);
    symlink(home.join("secret.csv"), home.join("in/link.csv")).unwrap();
    symlink("..", home.join("in/up")).unwrap();
    let mut allowed = Allowed::nothing();
    allowed.add_folder(&home.join("in")).unwrap();
    let find = |rest: &str| {
        let uri = format!("file://{}/{rest}", home.display());
        Source::open_file(&uri, &Access::to(&allowed)).map_err(|error| (error.code(), error.to_string()))
    };
    for name in ["in/a.csv", "in/deep/b.csv"] {
        let source = find(name).unwrap();
        assert_eq!(names(&source), [name.rsplit('/').next().unwrap()]);
        assert!(source.reader(&source.files()[0]).is_ok());
    }
    for (name, code, reason) in [
        ("in", ErrorCode::BadRequest, "is a folder, not a file"),
        ("in/deep", ErrorCode::BadRequest, "is a folder, not a file"),
        // Not the files whose names begin so.
        ("in/a", ErrorCode::BadRequest, "there is no file or folder"),
        ("in/link.csv", ErrorCode::BadRequest, "is a link, and links are not followed"),
        ("in/up/secret.csv", ErrorCode::BadRequest, "is a link, and links are not followed"),
        ("in/../secret.csv", ErrorCode::BadRequest, "`..`"),
        ("secret.csv", ErrorCode::AccessDenied, "--load-from"),
        ("in2/a.csv", ErrorCode::AccessDenied, "--load-from"),
    ] {
        let (found, message) = find(name).unwrap_err();
        assert!(found == code && message.contains(reason) && message.contains(name), "{name}: {message}");
    }
    let denied = Source::open_file("s3://bucket/a.csv", &Access::to(&allowed)).unwrap_err();
    assert_eq!(denied.code(), ErrorCode::AccessDenied);
}

#[test]
fn one_object_is_looked_up_by_its_whole_name() {
    let objects = Objects::memory().unwrap();
    objects.put("a/b.csv", b"x".to_vec()).unwrap();
    let find = |path: &str| object("s3://bucket", &objects, format!("s3://bucket/{path}"), path.to_owned());
    let file = find("a/b.csv").unwrap();
    assert_eq!((&*file.name, file.bytes), ("s3://bucket/a/b.csv", 1));
    for (path, reason) in [("", "no object"), ("a/", "no object"), ("a/b", "no such object")] {
        let error = find(path).unwrap_err();
        assert_eq!(error.code(), ErrorCode::BadRequest);
        assert!(error.to_string().contains(reason), "{error}");
    }
}
