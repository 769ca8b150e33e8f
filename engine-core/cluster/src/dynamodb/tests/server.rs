//! DynamoDB Local for one test. It stops when the test ends.

use std::fs::File;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tidegraph_platform::{Clock, RealClock, free_port, process};

const CLASSPATH: &str = "TIDEGRAPH_DYNAMODB_CLASSPATH";
/// Time limit for the start: generous, for a busy machine.
const START: Duration = Duration::from_secs(120);

/// A server on a free port of this machine, with its data in memory.
pub struct Server {
    dir: tempfile::TempDir,
    port: u16,
    child: Child,
}

impl Server {
    pub fn start() -> Self {
        let classpath = std::env::var(CLASSPATH).unwrap_or_else(|_| {
            panic!("{CLASSPATH} names DynamoDB Local's jars; `npm test -- --rust` installs them")
        });
        let libraries = classpath.trim_end_matches('*').trim_end_matches('/').to_owned();
        let dir = tempfile::tempdir().expect("a folder");
        let port = free_port();
        let file = File::create(dir.path().join("output.txt")).expect("a file");
        let error = file.try_clone().expect("a file");
        let child = Command::new("java")
            .args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .arg(format!("-Djava.library.path={libraries}"))
            .args(["-cp", &classpath, "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"])
            .args(["-inMemory", "-disableTelemetry", "-port", &port.to_string()])
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(error)
            .spawn()
            .expect("java runs");
        let mut server = Self { dir, port, child };
        let clock = RealClock::new();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let said = std::fs::read_to_string(server.dir.path().join("output.txt")).unwrap_or_default();
            let ended = server.child.try_wait().ok().flatten();
            assert!(ended.is_none(), "DynamoDB Local ended: {said}");
            assert!(clock.now() < START, "DynamoDB Local does not answer: {said}");
            clock.sleep(Duration::from_millis(50));
        }
        server
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Freezes the server, or lets it continue.
    pub fn pause(&self, pause: bool) {
        let id = self.child.id();
        if pause { process::pause(id) } else { process::resume(id) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
