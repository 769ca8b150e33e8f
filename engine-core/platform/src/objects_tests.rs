//! Runs one suite on every backend that needs no service.

use super::*;

fn object_suite(objects: &Objects) {
    assert!(matches!(objects.get("none"), Err(Error::NotFound { .. })));
    assert!(matches!(objects.reader("none"), Err(Error::NotFound { .. })));
    assert!(matches!(objects.put("a/../b", "x"), Err(Error::InvalidPath { .. })));
    objects.put("a/one", "1").unwrap();
    objects.put("a/one", "first").unwrap();
    objects.put("a/two", "second").unwrap();
    objects.put("b", "").unwrap();
    assert_eq!(objects.get("a/one").unwrap(), "first");
    assert_eq!(objects.get_range("a/two", 1..4).unwrap(), "eco");
    assert_eq!(objects.head("a/two").unwrap().bytes, 6);
    let listed = |prefix: &str| -> Vec<(String, u64)> {
        objects.list(prefix).unwrap().into_iter().map(|o| (o.path, o.bytes)).collect()
    };
    assert_eq!(listed("a/o"), [("a/one".into(), 5)]);
    assert_eq!(listed("a/"), [("a/one".into(), 5), ("a/two".into(), 6)]);
    assert_eq!(listed("").len(), 3);
    assert!(listed("zzz").is_empty());
    objects.delete("a/one").unwrap();
    objects.delete("a/one").unwrap();
    assert!(matches!(objects.head("a/one"), Err(Error::NotFound { .. })));

    for bytes in [0, 10, PART_BYTES, 2 * PART_BYTES + 12_345] {
        let expected: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
        let mut writer = objects.writer("big").unwrap();
        for chunk in expected.chunks(1_000_003) {
            writer.write_all(chunk).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), bytes as u64);
        let mut reader = objects.reader("big").unwrap();
        assert_eq!(reader.size_bytes(), bytes as u64);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert!(read == expected, "{bytes}");
    }

    let mut writer = objects.writer("abandoned").unwrap();
    writer.write_all(&vec![1; PART_BYTES + 1]).unwrap();
    drop(writer);
    assert!(matches!(objects.head("abandoned"), Err(Error::NotFound { .. })));
    // A stream may be dropped before its end.
    let mut reader = objects.reader("big").unwrap();
    reader.read_exact(&mut [0; 10]).unwrap();
}

#[test]
fn memory() {
    object_suite(&Objects::memory().unwrap());
}

#[test]
fn a_part_of_a_store_is_a_store_that_sees_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    for whole in [Objects::memory().unwrap(), Objects::local(dir.path()).unwrap()] {
        let (one, two) = (whole.below("graphs/one").unwrap(), whole.below("graphs/two").unwrap());
        object_suite(&one);
        assert!(two.list("").unwrap().is_empty());
        two.put("b", "of two").unwrap();
        assert_eq!((one.get("b").unwrap(), two.get("b").unwrap()), ("".into(), "of two".into()));
        assert_eq!(whole.get("graphs/two/b").unwrap(), "of two");
        two.delete("b").unwrap();
        assert!(!one.list("").unwrap().is_empty() && two.list("").unwrap().is_empty());
        let error = two.get("b").unwrap_err().to_string();
        assert!(error.contains("graphs/two/b"), "{error}");
        assert!(matches!(whole.below("a/../b"), Err(Error::InvalidPath { .. })));
    }
}

#[test]
fn local() {
    let dir = tempfile::tempdir().unwrap();
    object_suite(&Objects::local(&dir.path().join("made")).unwrap());
}

#[test]
fn errors_name_the_object() {
    let error = Objects::memory().unwrap().get("a/b").unwrap_err();
    assert_eq!(error.to_string(), "there is no object memory://a/b");
}

#[test]
fn callable_inside_another_runtime() {
    for runtime in [
        Builder::new_current_thread().build().unwrap(),
        Builder::new_multi_thread().worker_threads(1).build().unwrap(),
    ] {
        runtime.block_on(async {
            object_suite(&Objects::memory().unwrap());
        });
    }
}
