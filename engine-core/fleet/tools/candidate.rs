//! A candidate for the sequencer as a process of its own: `candidate DYNAMODB_ENDPOINT KAFKA_BROKERS TOPIC GRAPH NAME`.
//!
//! Says on standard output what happens (`leads EPOCH`, `waits`), and obeys standard input, a line at a time: `commit ID KEY` →
//! `committed ID VERSION` or `refused ID REASON`; `outcome ID` → `outcome ID VERSION|none` or `refused …`; `sids COUNT` →
//! `sids FIRST LAST`; `newest` → `newest VERSION`; `quit`. For tests of take-overs, and to try them by hand.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::Claim;
use tidegraph_cluster::dynamodb::{DynamoMap, DynamoOptions};
use tidegraph_fleet::sequencing::{Base, Candidate, CandidateConfig, Leading, Takeover, Unsure};
use tidegraph_log::LogStore;
use tidegraph_log::kafka::{KafkaOptions, open_log};
use tidegraph_platform::{Clock, RealClock, RealRandom};
use tidegraph_types::{CommitRequest, Epoch, Gui, Key, Mutation, RequestId, Sharding, Version};

/// A graph without checkpoints, its log in Kafka.
#[derive(Debug)]
struct Kafka(KafkaOptions);

impl Takeover for Kafka {
    fn base(&self) -> Result<Base, String> {
        Ok(Base::default())
    }

    fn open_log(&self, epoch: Epoch) -> Result<Box<dyn LogStore>, tidegraph_log::Error> {
        open_log(&self.0, Sharding::ONE, epoch)
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever listens may be gone; then there is nobody to tell.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [endpoint, brokers, topic, graph, name] = arguments.as_slice() else {
        return Err("candidate DYNAMODB_ENDPOINT KAFKA_BROKERS TOPIC GRAPH NAME".into());
    };
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let options = DynamoOptions { attempt_ms: 2000, ..DynamoOptions::local(endpoint) };
    let map = DynamoMap::open(&options, clock.clone(), Arc::new(RealRandom))?;
    let holder = format!("{name}/{}", std::process::id());
    let claim = Claim { holder, endpoint: format!("{name}:0"), ttl: Duration::ZERO, above: Epoch(0) };
    let kafka = Arc::new(Kafka(KafkaOptions::new(brokers.as_str(), topic.as_str())));
    let config = CandidateConfig { unsure: Unsure::GoOn, ..CandidateConfig::default() };
    let candidate = Arc::new(Candidate::start(Arc::new(map), clock.clone(), graph, claim, kafka, config)?);
    let watched = Arc::downgrade(&candidate);
    std::thread::spawn(move || {
        let mut said = None;
        while let Some(candidate) = watched.upgrade() {
            let epoch = candidate.leading().map(|leading| leading.epoch());
            if said != Some(epoch) {
                say(&epoch.map_or_else(|| "waits".into(), |epoch| format!("leads {epoch}")));
                said = Some(epoch);
            }
            drop(candidate);
            clock.sleep(Duration::from_millis(5));
        }
    });
    // What was the sequencer when the command came; it may be deposed before it is carried out.
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        if words == ["quit"] {
            break;
        }
        let id = words.get(1).copied().unwrap_or_default();
        let answer = match candidate.leading() {
            Some(leading) => obey(&leading, &words),
            None => Err("it is not the sequencer".into()),
        };
        say(&answer.unwrap_or_else(|reason| format!("refused {id} {reason}")));
    }
    candidate.close();
    Ok(())
}

fn obey(leading: &Leading, words: &[&str]) -> Result<String, String> {
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
