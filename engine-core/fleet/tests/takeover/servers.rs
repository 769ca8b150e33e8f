//! A real broker and a real table for one test. They stop when the test ends.

use std::fs::File;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tidegraph_platform::{Clock, RealClock, free_port};

const KAFKA: &str = "TIDEGRAPH_KAFKA_CLASSPATH";
const DYNAMODB: &str = "TIDEGRAPH_DYNAMODB_CLASSPATH";
const CLUSTER: &str = "MkU3OEVBNTcwNTJENDM2Qg";
/// Time limit for the start, on a busy machine.
const START: Duration = Duration::from_secs(120);

/// A Java program that listens on a port of this machine.
pub struct Server {
    dir: tempfile::TempDir,
    pub port: u16,
    child: Option<Child>,
}

fn java(variable: &str) -> (Command, String) {
    let classpath = std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} names jars; `npm test -- --rust` installs them"));
    let mut command = Command::new("java");
    command.args(["-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", &classpath]);
    (command, classpath)
}

impl Server {
    pub fn kafka() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let (port, controller) = (free_port(), free_port());
        let properties = dir.path().join("server.properties");
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
             controller.listener.names=CONTROLLER\ninter.broker.listener.name=PLAINTEXT\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             log.dirs={}\nauto.create.topics.enable=false\n\
             offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\nmin.insync.replicas=1\n",
            dir.path().join("data").display()
        );
        std::fs::write(&properties, text).expect("the settings are written");
        let mut format = java(KAFKA).0;
        format.args(["kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c"]).arg(&properties);
        let output = format.output().expect("java runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut command = java(KAFKA).0;
        command.arg("kafka.Kafka").arg(&properties);
        Self::run(command, dir, port)
    }

    pub fn dynamodb() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let port = free_port();
        let (mut command, classpath) = java(DYNAMODB);
        let libraries = classpath.trim_end_matches('*').trim_end_matches('/');
        command
            .arg(format!("-Djava.library.path={libraries}"))
            .arg("com.amazonaws.services.dynamodbv2.local.main.ServerRunner")
            .args(["-inMemory", "-disableTelemetry", "-port", &port.to_string()]);
        Self::run(command, dir, port)
    }

    fn run(mut command: Command, dir: tempfile::TempDir, port: u16) -> Self {
        let path = dir.path().join("output.txt");
        let file = File::create(&path).expect("a file");
        let error = file.try_clone().expect("a file");
        command.current_dir(dir.path()).stdin(Stdio::null()).stdout(file).stderr(error);
        let child = command.spawn().expect("java runs");
        let mut server = Self { dir, port, child: Some(child) };
        let clock = RealClock::new();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            assert!(ended.is_none(), "it ended: {}", said(&path));
            assert!(clock.now() < START, "it does not answer: {}", said(&path));
            clock.sleep(Duration::from_millis(50));
        }
        server
    }

    /// Returns the number of the process.
    pub fn id(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Returns its output, for messages.
    pub fn said(&self) -> String {
        said(&self.dir.path().join("output.txt"))
    }
}

fn said(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sends a signal to a process that a test started.
pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill runs");
    assert!(status.success());
}
