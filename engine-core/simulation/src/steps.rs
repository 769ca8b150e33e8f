//! Loads in steps: a state machine that is part of the world, and workers that do its steps.
//!
//! Any worker does the next step of any load, also one that another worker does right now or has died in: a state machine
//! repeats a step whose answer it did not get. What it hears first counts. After too many failures it abandons the load.

use crate::load::{LoadEnd, LoadPlan, SubmittedLoad, SubmittedLoads};
use crate::process::Process;
use crate::worker::EndedLoad;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tidegraph_engine::loads::{Ahead, Ingest, LoadSpec, Stage};
use tidegraph_engine::{Database, Error};
use tidegraph_types::{ErrorCode, Version};

/// Maximum number of loads in steps at the same time.
const MOST_OPEN: usize = 2;
/// Number of failures after which a load is abandoned.
const MOST_FAILURES: u32 = 2;
/// Bytes of text that a task reads: few, so that there are several tasks.
pub(crate) const TASK_BYTES: u64 = 64;

/// What the state machine of a load does next.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    Begin,
    Work { stage: Stage, round: u32, tasks: Vec<u32> },
    Next { stage: Stage, round: u32 },
    Commit { round: u32 },
    Abandon,
    Over,
}

/// The state machine of a load.
#[derive(Clone, Debug)]
struct Machine {
    spec: LoadSpec,
    step: Step,
    failures: u32,
}

/// The state machines of all loads in steps, by the ids of the loads. All workers of a world share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SteppedLoads(Arc<Mutex<BTreeMap<String, Machine>>>);

impl Step {
    fn after(ahead: Ahead) -> Self {
        match ahead {
            Ahead::Work { stage, round, tasks } if tasks.is_empty() => Self::Next { stage, round },
            Ahead::Work { stage, round, tasks } => Self::Work { stage, round, tasks },
            Ahead::Commit { round } => Self::Commit { round },
            Ahead::Ended { .. } => Self::Over,
        }
    }

    /// Does the step; returns the one that follows.
    fn run(self, ingest: &Ingest, id: &str, spec: &LoadSpec) -> Result<Self, Error> {
        match self {
            Self::Begin => ingest.begin(id, spec.clone(), None).map(Self::after),
            Self::Work { stage, round, mut tasks } => {
                if let Some(task) = tasks.pop() {
                    ingest.work(id, stage, round, task)?;
                }
                let is_last = tasks.is_empty();
                Ok(if is_last { Self::Next { stage, round } } else { Self::Work { stage, round, tasks } })
            }
            Self::Next { stage, round } => ingest.next(id, stage, round).map(Self::after),
            Self::Commit { round } => ingest.commit(id, round).map(Self::after),
            Self::Abandon => ingest.abandon(id, "TooManyFailures", "the simulation").map(Self::after),
            Self::Over => Ok(Self::Over),
        }
    }
}

impl SteppedLoads {
    /// Returns the loads that have not ended.
    pub fn open(&self) -> Vec<String> {
        let machines = self.0.lock();
        machines.iter().filter(|(_, machine)| machine.step != Step::Over).map(|(id, _)| id.clone()).collect()
    }

    /// Starts a load, if few run.
    pub fn start(
        &self,
        folder: &Path,
        submitted: &SubmittedLoads,
        plan: LoadPlan,
        since: Version,
    ) -> std::io::Result<()> {
        if self.open().len() >= MOST_OPEN {
            return Ok(());
        }
        let (id, spec) = (format!("steps-{}", plan.number), plan.write(folder)?);
        submitted.lock().insert(id.clone(), SubmittedLoad { plan, since, in_steps: true });
        self.0.lock().insert(id, Machine { spec, step: Step::Begin, failures: 0 });
        Ok(())
    }

    /// Does the next step of a load. Returns what its job says, if that was the last one.
    pub fn step(
        &self,
        ingest: &Ingest,
        database: &Database,
        process: &Process,
        id: &str,
    ) -> Result<Option<EndedLoad>, Error> {
        let Some(Machine { spec, step, .. }) = self.0.lock().get(id).cloned() else { return Ok(None) };
        let done = step.clone().run(ingest, id, &spec);
        process.note(format_args!("load {id}: {step:?} ends with {done:?}"));
        {
            let mut machines = self.0.lock();
            // Nobody hears what a killed process has done, and an answer to an earlier step counts no more.
            let machine = machines.get_mut(id).filter(|machine| process.is_alive() && machine.step == step);
            let Some(machine) = machine else { return Ok(None) };
            match done {
                Ok(next) => machine.step = next,
                // The load never began, so there is no job. The report of the drop tells the first error.
                Err(error)
                    if machine.step == Step::Abandon && error.code() == ErrorCode::BulkLoadIdNotFound =>
                {
                    machine.step = Step::Over;
                    return Ok(None);
                }
                Err(error) => {
                    machine.failures += 1;
                    let may_pass = matches!(error.code(), ErrorCode::Unavailable | ErrorCode::Internal);
                    if !may_pass || machine.failures > MOST_FAILURES {
                        machine.step = Step::Abandon;
                    }
                }
            }
            if machine.step != Step::Over {
                return Ok(None);
            }
        }
        let status = database.loads().status(id)?;
        Ok(Some((id.to_owned(), LoadEnd::of(&status))))
    }
}
