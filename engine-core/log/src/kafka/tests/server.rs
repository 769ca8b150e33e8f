//! A real broker for one test. It stops when the test ends.

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tidegraph_platform::{Clock, RealClock, free_port, process};

const CLASSPATH: &str = "TIDEGRAPH_KAFKA_CLASSPATH";
const CLUSTER: &str = "MkU3OEVBNTcwNTJENDM2Qg";
/// Time limit for the start: generous, for a busy machine.
const START: Duration = Duration::from_secs(120);

/// Variable that names a broker for all tests of a run, as `host:port`. Without it each test starts its own.
const SHARED: &str = "TIDEGRAPH_TEST_KAFKA";

/// A broker on this machine.
pub enum Server {
    /// Started by the test, and stopped with it.
    Own(Own),
    /// Address of the broker that tests share.
    Shared(String),
}

/// A broker on free ports that belongs to one test.
pub struct Own {
    dir: tempfile::TempDir,
    port: u16,
    child: Option<Child>,
}

impl Server {
    /// Returns the shared broker, or starts one. The test uses topics that no other test uses.
    pub fn start() -> Self {
        std::env::var(SHARED).map_or_else(|_| Self::Own(Own::start()), Self::Shared)
    }
}

/// The address that clients connect to.
pub trait Brokers {
    /// Returns the address as `host:port`.
    fn brokers(&self) -> String;
}

impl Brokers for Server {
    fn brokers(&self) -> String {
        match self {
            Self::Own(own) => own.brokers(),
            Self::Shared(brokers) => brokers.clone(),
        }
    }
}

impl Brokers for Own {
    fn brokers(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

fn java(main: &str) -> Command {
    let classpath = std::env::var(CLASSPATH)
        .unwrap_or_else(|_| panic!("{CLASSPATH} names Kafka's jars; `npm test -- --rust` installs them"));
    let mut command = Command::new("java");
    command.args(["-Xmx384m", "-Xms256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", &classpath]);
    command.arg(main);
    command
}

impl Own {
    pub fn start() -> Self {
        Self::start_with(&[], "")
    }

    /// Starts a broker with further listeners, as `NAME://host:port` and protocol, and with settings for them.
    pub fn start_with(listeners: &[(String, &str)], settings: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let (port, controller) = (free_port(), free_port());
        let data = dir.path().join("data");
        let more: String = listeners.iter().map(|(listener, _)| format!(",{listener}")).collect();
        let protocols: String = listeners
            .iter()
            .filter_map(|(listener, protocol)| Some(format!(",{}:{protocol}", listener.split_once(':')?.0)))
            .collect();
        let properties = format!(
            "process.roles=broker,controller\nnode.id=1\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{more}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{port}{more}\n\
             controller.listener.names=CONTROLLER\ninter.broker.listener.name=PLAINTEXT\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT{protocols}\n\
             log.dirs={}\nauto.create.topics.enable=false\ngroup.initial.rebalance.delay.ms=0\n\
             offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\nmin.insync.replicas=1\n{settings}\n",
            data.display()
        );
        std::fs::write(Self::properties(dir.path()), properties).expect("the settings are written");
        let mut format = java("kafka.tools.StorageTool");
        format.args(["format", "-t", CLUSTER, "-c"]).arg(Self::properties(dir.path()));
        let output = format.output().expect("java runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut server = Self { dir, port, child: None };
        server.run();
        server
    }

    fn properties(dir: &Path) -> std::path::PathBuf {
        dir.join("server.properties")
    }

    fn output(&self) -> std::path::PathBuf {
        self.dir.path().join("output.txt")
    }

    fn run(&mut self) {
        let file = File::create(self.output()).expect("a file");
        let error = file.try_clone().expect("a file");
        let mut command = java("kafka.Kafka");
        command.arg(Self::properties(self.dir.path())).stdin(Stdio::null()).stdout(file).stderr(error);
        self.child = Some(command.spawn().expect("java runs"));
        let clock = RealClock::new();
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", self.brokers())
            .set("log_level", "0")
            .create()
            .expect("a client");
        while consumer.fetch_metadata(None, Duration::from_millis(500)).is_err() {
            let output = self.output();
            let said = || std::fs::read_to_string(&output).unwrap_or_default();
            let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            assert!(ended.is_none(), "Kafka ended: {}", said());
            assert!(clock.now() < START, "Kafka does not answer: {}", said());
        }
    }

    /// Kills the broker as a power failure would, and restarts it on its disk.
    pub fn crash_and_restart(&mut self) {
        self.end();
        self.run();
    }

    /// Freezes the broker, or lets it continue.
    pub fn pause(&self, pause: bool) {
        let id = self.child.as_ref().expect("it runs").id();
        if pause { process::pause(id) } else { process::resume(id) }
    }

    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.end();
    }
}
