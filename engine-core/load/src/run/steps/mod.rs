//! A load in steps, each of which another process may do.
//!
//! Rows go from hand to hand in *runs* ([`runs`]): objects with the rows of each *group* of partitions behind each other. The
//! stages, each some *tasks* that run beside each other:
//!
//! 1. *parse*: a part of a file → its rows, by the group of the vertex, or of the edge's source.
//! 2. *vertices*: the vertex rows of a group → segments, and which ids it has. Ids that collide are in one partition, so
//!    groups have nothing to do with each other; with unique keys they have, and one task does all of them.
//! 3. *sources*: the edge rows of a group whose source has to be there → the same, by the group of the target.
//! 4. *targets*: the same for the target. Edges without ids are made here; the others go on by the group of their id.
//! 5. *edges*: edges with ids → segments.
//!
//! The rules are those of a load in one process ([`super::vertices`], [`super::edges`]), by the same code.
//!
//! What a task did it writes at its end, and the first who writes it is the one who did it: a task may run twice, also at the
//! same time, and its objects have names that no other attempt uses. [`Steps::next`] gathers what the tasks of a stage did, and says
//! what comes next. Nothing of it is visible before the segments are committed.
//!
//! Must never: take two attempts for one task's work together, or go on without what a task did.

mod elements;
mod parse;
mod plan;
mod report;
mod runs;

pub use plan::{Plan, Request, Round};
pub use report::{Done, Gathered};

use super::{Load, Names, Parts, Stop};
use crate::error::Error;
use crate::segments::SegmentWriter;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tidegraph_platform::Objects;
use tidegraph_types::{ErrorCode, PartitionCount};

use super::target::LoadTarget;

/// Where a load keeps what its steps hand to each other.
pub const FOLDER: &str = "ingest";

/// A stage of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Files to rows.
    Parse,
    /// Rows to vertices.
    Vertices,
    /// Edges whose source is there.
    Sources,
    /// Edges whose target is there.
    Targets,
    /// Edges with ids.
    Edges,
}

impl Stage {
    /// Its name in events and objects.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Vertices => "vertices",
            Self::Sources => "sources",
            Self::Targets => "targets",
            Self::Edges => "edges",
        }
    }

    fn after(self) -> Option<Self> {
        match self {
            Self::Parse => Some(Self::Vertices),
            Self::Vertices => Some(Self::Sources),
            Self::Sources => Some(Self::Targets),
            Self::Targets => Some(Self::Edges),
            Self::Edges => None,
        }
    }

    /// The stage whose runs this one reads.
    fn reads(self) -> Option<Self> {
        match self {
            Self::Parse => None,
            Self::Vertices | Self::Sources => Some(Self::Parse),
            Self::Targets => Some(Self::Sources),
            Self::Edges => Some(Self::Targets),
        }
    }
}

/// What comes next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// These tasks of a stage.
    Work(Stage, Vec<u32>),
    /// All segments are there.
    Commit,
    /// A row was refused, and one is enough.
    Failed,
}

/// The steps of one load.
pub struct Steps<'a> {
    plan: Plan,
    target: &'a dyn LoadTarget,
    objects: &'a Objects,
}

impl<'a> Steps<'a> {
    /// Plans a load: lists and divides its files. What stands there already of the same load is gone on with.
    pub fn begin(
        load_id: &str,
        request: &Request,
        target: &'a dyn LoadTarget,
        objects: &'a Objects,
    ) -> Result<Self, Error> {
        let plan = match read(objects, &Plan::object(load_id)) {
            Ok(plan) => plan,
            Err(error) if error.code() == ErrorCode::NotFound => {
                let plan = Plan::make(load_id, request, target.partitions())?;
                if put_new(objects, &Plan::object(load_id), &plan)? {
                    plan
                } else {
                    read(objects, &Plan::object(load_id))?
                }
            }
            Err(error) => return Err(error),
        };
        Ok(Self { plan, target, objects })
    }

    /// Goes on with a load that was planned.
    pub fn open(load_id: &str, target: &'a dyn LoadTarget, objects: &'a Objects) -> Result<Self, Error> {
        let plan = read(objects, &Plan::object(load_id))?;
        Ok(Self { plan, target, objects })
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Notes at which version a round begins, and what is unique then; what was noted before stays.
    pub fn begin_round(&self, round: u32, new: &Round) -> Result<Round, Error> {
        let object = self.object(round, "round.json");
        if put_new(self.objects, &object, new)? { Ok(new.clone()) } else { read(self.objects, &object) }
    }

    /// What was noted.
    pub fn round(&self, round: u32) -> Result<Round, Error> {
        read(self.objects, &self.object(round, "round.json"))
    }

    /// The newest round that began.
    pub fn last_round(&self) -> Result<u32, Error> {
        let mut last = 0;
        loop {
            match self.round(last + 1) {
                Ok(_) => last += 1,
                Err(error) if error.code() == ErrorCode::NotFound => return Ok(last),
                Err(error) => return Err(error),
            }
        }
    }

    /// The tasks that read files.
    #[must_use]
    pub fn first(&self) -> Next {
        match u32::try_from(self.plan.chunks.len()).unwrap_or(u32::MAX) {
            0 => Next::Commit,
            tasks => Next::Work(Stage::Parse, (0..tasks).collect()),
        }
    }

    /// Does a task, unless that was done before. `attempt`: a name that nobody else uses.
    pub fn work(&self, stage: Stage, round: u32, task: u32, attempt: &str) -> Result<Done, Error> {
        let object = self.done(stage, round, task);
        match read(self.objects, &object) {
            Err(error) if error.code() == ErrorCode::NotFound => {}
            other => return other,
        }
        let round = if stage == Stage::Parse { 0 } else { round };
        let work = Work {
            steps: self,
            stage,
            round,
            task,
            writer: format!("{}{round}-{task:05}-{attempt}", stage.name()),
        };
        let done = match stage {
            Stage::Parse => work.parse()?,
            Stage::Vertices => work.vertices()?,
            Stage::Sources | Stage::Targets => work.ends()?,
            Stage::Edges => work.edges()?,
        };
        if put_new(self.objects, &object, &done)? { Ok(done) } else { read(self.objects, &object) }
    }

    /// Gathers what the tasks of a stage did; what comes next.
    pub fn next(&self, stage: Stage, round: u32) -> Result<Next, Error> {
        let gathered = self.gather(stage, round)?;
        if self.plan.request.fail_on_error && gathered.rejected > 0 {
            return Ok(Next::Failed);
        }
        let mut stage = stage;
        while let Some(after) = stage.after() {
            let tasks = self.tasks(after, round)?;
            if !tasks.is_empty() {
                return Ok(Next::Work(after, tasks));
            }
            stage = after;
        }
        Ok(Next::Commit)
    }

    /// The first stage that comes again in another round.
    pub fn again(&self, round: u32) -> Result<Next, Error> {
        for stage in [Stage::Vertices, Stage::Sources] {
            let tasks = self.tasks(stage, round)?;
            if !tasks.is_empty() {
                return Ok(Next::Work(stage, tasks));
            }
        }
        Ok(Next::Commit)
    }

    /// Removes what the steps handed to each other.
    pub fn clear(&self) -> Result<(), Error> {
        for object in self.objects.list(&format!("{FOLDER}/{}/", self.plan.load_id))? {
            // The report stays for who asks for it.
            if !object.path.ends_with("/report.json") {
                self.objects.delete(&object.path)?;
            }
        }
        Ok(())
    }

    /// The tasks of a stage: its groups that have rows.
    fn tasks(&self, stage: Stage, round: u32) -> Result<Vec<u32>, Error> {
        let Some(reads) = stage.reads() else {
            return Ok((0..self.plan.chunks.len() as u32).collect());
        };
        // A stage without tasks gathered nothing.
        let runs = match self.gathered(reads, round) {
            Ok(gathered) => gathered.runs,
            Err(error) if error.code() == ErrorCode::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let kind = runs::kind_of(stage);
        let mut groups: Vec<u32> = runs
            .iter()
            .flat_map(|run| &run.parts)
            .filter(|p| p.kind == kind)
            .map(|p| u32::from(p.group))
            .collect();
        groups.sort_unstable();
        groups.dedup();
        if stage == Stage::Vertices && !groups.is_empty() && !self.round(round)?.unique.is_empty() {
            groups = vec![0];
        }
        Ok(groups)
    }

    fn gather(&self, stage: Stage, round: u32) -> Result<Gathered, Error> {
        match self.gathered(stage, round) {
            Err(error) if error.code() == ErrorCode::NotFound => {}
            other => return other,
        }
        let mut gathered = Gathered::default();
        for task in self.tasks(stage, round)? {
            gathered.add(read(self.objects, &self.done(stage, round, task))?);
        }
        gathered.settle();
        // Whoever else gathers finds the same.
        let bytes = bytes_of(&gathered)?;
        self.objects.put(&self.gathered_object(stage, round), bytes)?;
        Ok(gathered)
    }

    fn gathered(&self, stage: Stage, round: u32) -> Result<Gathered, Error> {
        read(self.objects, &self.gathered_object(stage, round))
    }

    fn gathered_object(&self, stage: Stage, round: u32) -> String {
        let round = if stage == Stage::Parse { 0 } else { round };
        self.object(round, &format!("{}.json", stage.name()))
    }

    fn done(&self, stage: Stage, round: u32, task: u32) -> String {
        let round = if stage == Stage::Parse { 0 } else { round };
        self.object(round, &format!("{}/{task:05}.json", stage.name()))
    }

    fn object(&self, round: u32, name: &str) -> String {
        format!("{FOLDER}/{}/r{round}/{name}", self.plan.load_id)
    }
}

/// One attempt at a task.
struct Work<'s> {
    steps: &'s Steps<'s>,
    stage: Stage,
    round: u32,
    task: u32,
    /// Stands in the names of the objects of this attempt.
    writer: String,
}

impl<'s> Work<'s> {
    fn plan(&self) -> &'s Plan {
        &self.steps.plan
    }

    fn groups(&self) -> Result<PartitionCount, Error> {
        self.plan().groups()
    }

    /// A load of what this task is about.
    fn load(&self, config: &'s super::Config) -> Result<Load<'s>, Error> {
        let Steps { plan, target, objects } = self.steps;
        let writer = SegmentWriter::new(
            (*objects).clone(),
            target.graph(),
            &plan.load_id,
            target.partitions(),
            target.hasher(),
            config.buffer_bytes,
        );
        let parts = Parts { target: *target, objects, control: &() };
        let mut load = Load::new(config, plan.reports(), Names::Tokens, writer.named(&self.writer), parts)?;
        load.columns = plan.columns();
        let parsed = self.steps.gathered(Stage::Parse, self.round)?;
        load.interned.extend(parsed.names);
        Ok(load)
    }
}

/// Whether it ended at a refused row, which is no failure of the task.
fn to_the_end(result: Result<(), Stop>) -> Result<(), Error> {
    match result {
        Ok(()) | Err(Stop::AtRejected) => Ok(()),
        Err(Stop::Error(error)) => Err(error),
    }
}

fn read<T: DeserializeOwned>(objects: &Objects, object: &str) -> Result<T, Error> {
    let bytes = objects.get(object)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Error::target(ErrorCode::Corrupt, format!("{}/{object} is damaged: {error}", objects.name()))
    })
}

fn bytes_of(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|error| Error::target(ErrorCode::Internal, error.to_string()))
}

fn put_new(objects: &Objects, object: &str, value: &impl Serialize) -> Result<bool, Error> {
    Ok(objects.put_new(object, bytes_of(value)?)?)
}
