//! Tests of users and passwords.

use super::*;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tidegraph_engine::Role;
use tidegraph_platform::ManualClock;

const PASSWORD: &str = "correct horse";

/// A cheap hash, so that tests take no time.
fn cheap(password: &str) -> String {
    let argon2 = Argon2::from(Params::new(8, 1, 1, None).unwrap());
    let hash: PasswordHash = argon2.hash_password_with_salt(password.as_bytes(), b"salt of a test").unwrap();
    hash.to_string()
}

fn text(users: &[(&str, &str, &[&str])]) -> String {
    let users = users.iter().map(|(name, password, roles)| Entry {
        name: (*name).to_owned(),
        password: cheap(password),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
    });
    serde_json::to_string(&UsersFile { users: users.collect() }).unwrap()
}

struct Fixture {
    _home: tempfile::TempDir,
    file: std::path::PathBuf,
    clock: Arc<ManualClock>,
    users: Arc<Users>,
}

#[expect(clippy::disallowed_methods, reason = "a test writes its file")]
fn write(file: &Path, text: &str, mode: u32) {
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
}

impl Fixture {
    fn new(users: &[(&str, &str, &[&str])]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("users.json");
        write(&file, &text(users), 0o600);
        let clock = Arc::new(ManualClock::default());
        let users = Users::read(&file, clock.clone()).unwrap();
        Self { _home: home, file, clock, users }
    }

    async fn verify(&self, name: &str, password: &str) -> Result<Principal, ErrorCode> {
        let from = Some("10.0.0.1".parse().unwrap());
        self.users.verify(name, password, from).await.map_err(|refusal| refusal.code())
    }
}

#[tokio::test]
async fn only_the_right_password_of_a_user_passes() {
    let fixture = Fixture::new(&[("ada", PASSWORD, &["write"]), ("bob", "other", &[])]);
    let ada = Principal::User("ada".into(), [Role::Write].into_iter().collect());
    assert_eq!(fixture.verify("ada", PASSWORD).await, Ok(ada));
    let long = "x".repeat(LONGEST_PASSWORD + 1);
    for (name, password) in
        [("ada", "correct hors"), ("ada", ""), ("bob", PASSWORD), ("eve", PASSWORD), ("ada", &long)]
    {
        assert_eq!(fixture.verify(name, password).await, Err(ErrorCode::Unauthorized), "{name} {password:?}");
    }
    let bob = fixture.verify("bob", "other").await.unwrap();
    assert!(!bob.may(Role::Read));
    let empty = Fixture::new(&[]);
    assert_eq!(empty.verify("ada", PASSWORD).await, Err(ErrorCode::Unauthorized));
}

#[tokio::test]
async fn right_passwords_are_remembered_for_a_while() {
    let fixture = Fixture::new(&[("ada", PASSWORD, &["read"])]);
    let ada = fixture.verify("ada", PASSWORD).await.unwrap();
    // Without a slot no password can be looked at.
    fixture.users.slow.close();
    assert_eq!(fixture.verify("ada", PASSWORD).await, Ok(ada));
    assert_eq!(fixture.verify("ada", "another").await, Err(ErrorCode::TooManyRequests));
    fixture.clock.advance(REMEMBERED);
    assert_eq!(fixture.verify("ada", PASSWORD).await, Err(ErrorCode::TooManyRequests));
}

#[tokio::test]
async fn wrong_passwords_are_limited_and_right_ones_are_not() {
    let fixture = Fixture::new(&[("ada", PASSWORD, &["read"])]);
    fixture.verify("ada", PASSWORD).await.unwrap();
    let mut refused = 0;
    while fixture.verify("ada", "guess").await == Err(ErrorCode::Unauthorized) {
        refused += 1;
        assert!(refused < 1_000);
    }
    // One that was right of late is let in all the same.
    fixture.verify("ada", PASSWORD).await.unwrap();
    // Another address has its own limit, but the user's holds for it, too.
    let elsewhere = Some("10.0.0.2".parse().unwrap());
    let limited = fixture.users.verify("ada", "guess", elsewhere).await.unwrap_err();
    assert_eq!(limited.code(), ErrorCode::TooManyRequests);
    assert!(limited.to_string().contains("try again in"), "{limited}");
    fixture.clock.advance(Duration::from_secs(3_600));
    fixture.verify("ada", PASSWORD).await.unwrap();
    for _ in 0..100 {
        fixture.clock.advance(REMEMBERED);
        fixture.verify("ada", PASSWORD).await.unwrap();
    }
}

#[tokio::test]
async fn roles_in_one_graph_hold_only_there() {
    let fixture = Fixture::new(&[("ada", PASSWORD, &["orders:write", "people:read"])]);
    let ada = fixture.verify("ada", PASSWORD).await.unwrap();
    assert!(Role::ALL.iter().all(|role| !ada.may(*role)), "what is proven alone is no role in a graph");
    let authentication = super::super::Authentication::Users(fixture.users.clone());
    let may = |graph: &str| {
        let known = authentication.still_known(&ada, graph).unwrap();
        [Role::Read, Role::Write].map(|role| known.may(role))
    };
    assert_eq!(may("orders"), [true, true]);
    assert_eq!(may("people"), [true, false]);
    assert_eq!(may("default"), [false, false]);
    // From one graph to the other, and back.
    let of_people = authentication.still_known(&ada, "people").unwrap();
    assert!(authentication.still_known(&of_people, "orders").unwrap().may(Role::Write));
}

#[tokio::test]
async fn the_file_is_read_again_and_holds_for_open_sessions() {
    let fixture = Fixture::new(&[("ada", PASSWORD, &["write"])]);
    let ada = fixture.verify("ada", PASSWORD).await.unwrap();
    let authentication = super::super::Authentication::Users(fixture.users.clone());
    assert_eq!(authentication.still_known(&ada, "default"), Ok(ada.clone()));
    write(&fixture.file, &text(&[("ada", "new password", &["read"])]), 0o600);
    fixture.users.look().unwrap();
    // The password that was remembered is not the user's any more.
    assert_eq!(fixture.verify("ada", PASSWORD).await, Err(ErrorCode::Unauthorized));
    assert!(!authentication.still_known(&ada, "default").unwrap().may(Role::Write));
    write(&fixture.file, &text(&[]), 0o600);
    fixture.users.look().unwrap();
    assert_eq!(authentication.still_known(&ada, "default").unwrap_err().code(), ErrorCode::AccessDenied);
    // A file that cannot be used changes nothing.
    write(&fixture.file, &text(&[("ada", PASSWORD, &["read"])]), 0o644);
    assert!(fixture.users.look().unwrap_err().to_string().contains("mode 0644"));
    write(&fixture.file, "{", 0o600);
    fixture.users.look().unwrap_err();
    assert_eq!(fixture.verify("ada", PASSWORD).await, Err(ErrorCode::Unauthorized));
}

#[test]
fn a_file_says_what_is_wrong_with_it() {
    let hash = cheap(PASSWORD);
    let of = |user: &str| parse(&format!("{{\"users\": [{user}]}}")).unwrap_err();
    let user = |name: &str, hash: &str, roles: &str| {
        format!("{{\"name\": {name:?}, \"password\": {hash:?}, \"roles\": [{roles}]}}")
    };
    let says = |error: String, part: &str| assert!(error.contains(part), "{error}");
    says(of(&user("a:b", &hash, "")), "a:b");
    says(of(&user("", &hash, "")), "colon");
    says(of(&user("ada", "secret", "")), "tidegraph user hash");
    says(of(&user("ada", "$2b$12$abcdefghijklmnopqrstuv", "")), "tidegraph user hash");
    says(of(&user("ada", &hash.replace("m=8", "m=99999999"), "")), "at most");
    says(of(&user("ada", &hash, "\"reader\"")), "\"reader\"");
    let twice = user("ada", &hash, "\"read\"");
    says(of(&format!("{twice}, {twice}")), "two users");
    says(of("{\"name\": \"ada\"}"), "password");
    says(parse("{\"user\": []}").unwrap_err(), "user");
    assert!(!of(&user("ada", "a secret", "")).contains("a secret"));
}

#[test]
fn a_hash_is_of_its_password_alone() {
    let hashed = hash(PASSWORD).unwrap();
    check_hash(&hashed).unwrap();
    assert!(is_right(&hashed, PASSWORD) && !is_right(&hashed, "correct horsf"));
    assert_ne!(hash(PASSWORD).unwrap(), hashed);
    assert!(hash("").is_err() && hash(&"x".repeat(LONGEST_PASSWORD + 1)).is_err());
    assert!(!is_right("", PASSWORD) && !is_right("$argon2id$", PASSWORD));
}
