//! A candidate for the sequencer as a process: `candidate DYNAMODB_ENDPOINT KAFKA_BROKERS TOPIC GRAPH NAME LEASE_MS`.
//!
//! Prints changes of its role (`leads EPOCH`, `waits`) to standard output, and executes commands from standard input,
//! one a line: `commit ID KEY` → `committed ID VERSION` or `refused ID REASON`; `outcome ID` → `outcome ID
//! VERSION|none` or `refused …`; `sids COUNT` → `sids FIRST LAST`; `newest` → `newest VERSION`; `quit`. For tests
//! of take-overs, and for trials by hand.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::dynamodb::{DynamoMap, DynamoOptions};
use tidegraph_cluster::{Claim, ElectionConfig};
use tidegraph_fleet::sequencing::{
    Candidate, CandidateConfig, Leadership, RecoveryBase, RecoverySource, Unsure,
};
use tidegraph_log::{KafkaOptions, LogLocation, LogStore};
use tidegraph_platform::{Clock, RealClock, RealRandom};
use tidegraph_types::{CommitRequest, Epoch, Gui, Key, Mutation, RequestId, Sharding, Version};

/// A graph without checkpoints, its log in Kafka.
#[derive(Debug)]
struct Kafka(LogLocation);

impl RecoverySource for Kafka {
    fn base(&self) -> Result<RecoveryBase, tidegraph_fleet::Error> {
        Ok(RecoveryBase::default())
    }

    fn open_log(&self, epoch: Epoch) -> Result<Box<dyn LogStore>, tidegraph_log::Error> {
        self.0.open(Sharding::ONE, epoch)
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The reader of the output may be gone.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [endpoint, brokers, topic, graph, name, lease_ms] = arguments.as_slice() else {
        return Err("candidate DYNAMODB_ENDPOINT KAFKA_BROKERS TOPIC GRAPH NAME LEASE_MS".into());
    };
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let options = DynamoOptions { attempt_timeout: Duration::from_secs(2), ..DynamoOptions::local(endpoint) };
    let map = DynamoMap::open(&options, clock.clone(), Arc::new(RealRandom))?;
    let holder = format!("{name}/{}", std::process::id());
    let claim = Claim { holder, endpoint: format!("{name}:0"), ttl: Duration::ZERO, above: Epoch(0) };
    let kafka = KafkaOptions::new(brokers.as_str(), topic.as_str());
    let kafka = Arc::new(Kafka(LogLocation::Kafka(kafka)));
    let election =
        ElectionConfig { ttl: Duration::from_millis(lease_ms.parse()?), ..ElectionConfig::default() };
    let config = CandidateConfig { election, unsure: Unsure::GoOn, ..CandidateConfig::default() };
    let candidate = Arc::new(Candidate::start(Arc::new(map), clock.clone(), graph, claim, kafka, config)?);
    let watched = Arc::downgrade(&candidate);
    tidegraph_platform::spawn("watch", move || {
        let mut said = None;
        while let Some(candidate) = watched.upgrade() {
            let epoch = candidate.leadership().map(|leading| leading.epoch());
            if said != Some(epoch) {
                say(&epoch.map_or_else(|| "waits".into(), |epoch| format!("leads {epoch}")));
                said = Some(epoch);
            }
            drop(candidate);
            clock.sleep(Duration::from_millis(5));
        }
    })?;
    // The sequencer at the time of the command; it may be deposed before the command is executed.
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        if words == ["quit"] {
            break;
        }
        let id = words.get(1).copied().unwrap_or_default();
        let answer = match candidate.leadership() {
            Some(leading) => obey(&leading, &words),
            None => Err("it is not the sequencer".into()),
        };
        say(&answer.unwrap_or_else(|reason| format!("refused {id} {reason}")));
    }
    candidate.close();
    Ok(())
}

fn obey(leading: &Leadership, words: &[&str]) -> Result<String, String> {
    let sequencer = leading.sequencer();
    let number = |at: usize| -> Result<u64, String> {
        words.get(at).and_then(|word| word.parse().ok()).ok_or_else(|| "a number is missing".into())
    };
    let failed = |error: tidegraph_txn::Error| error.to_string();
    match words.first().copied() {
        Some("commit") => {
            let (id, key) = (number(1)?, number(2)?);
            let request = CommitRequest {
                read_version: Version(0),
                read_keys: vec![],
                write_keys: vec![Key(key)],
                mutations: vec![Mutation::AddException { id: id.to_string().into(), gui: Gui(key) }],
                request: Some(RequestId(u128::from(id))),
                first_asked: None,
                by_key: false,
                changes: None,
            };
            Ok(format!("committed {id} {}", sequencer.commit(request).map_err(failed)?))
        }
        Some("outcome") => {
            let id = number(1)?;
            let found = sequencer.outcome(RequestId(u128::from(id)), Version(0)).map_err(failed)?;
            Ok(format!("outcome {id} {}", found.map_or_else(|| "none".into(), |version| version.to_string())))
        }
        Some("sids") => {
            let range = sequencer.hand_out_sids(number(1)?).map_err(failed)?;
            Ok(format!("sids {} {}", range.start, range.end))
        }
        Some("newest") => Ok(format!("newest {}", leading.newest().map_err(failed)?)),
        _ => Err("no such command".into()),
    }
}
