//! A load in steps, each of which another process may run.
//!
//! A *group* is a set of partitions. Stages pass rows to each other in *runs* ([`runs`]): objects that hold the rows of
//! one group after those of another. A stage consists of *tasks* that run in parallel:
//!
//! 1. *parse*: reads a part of a file and writes its rows by the group of the vertex, or of the edge's source.
//! 2. *vertices*: turns the vertex rows of a group into segments and writes which ids the group has. Colliding ids are
//!    in one partition, so groups do not depend on each other. With unique keys they do, and one task does all groups.
//! 3. *sources*: checks that the source of each edge row of a group exists and writes the row by the group of the
//!    target.
//! 4. *targets*: does the same for the target. It creates edges without ids and writes the others by the group of their
//!    id.
//! 5. *edges*: turns edges with ids into segments.
//!
//! The code that applies rows is that of a load in one process ([`super::vertices`], [`super::edges`]).
//!
//! A task ends by writing its report, and the first attempt to write it wins. A task may run twice, also at the same
//! time: the names of its objects differ in every attempt. [`Steps::next`] gathers the reports of a stage and says what
//! comes next.
//!
//! LOAD-1: nothing is visible before the segments are committed, the segments of two attempts at one task are never
//! committed together, and no stage begins without all reports of the one before.

mod elements;
mod parse;
mod plan;
mod report;
mod runs;

pub use plan::{Plan, Request, Round};
pub use report::{StageReport, TaskReport};

use super::{Context, FileTable, Load, Names, Stop};
use crate::error::Error;
use crate::segments::SegmentWriter;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tidegraph_platform::Objects;
use tidegraph_types::{ErrorCode, PartitionCount};

use super::target::LoadTarget;

/// Folder of the objects that steps of loads pass to each other.
pub const FOLDER: &str = "ingest";

/// A stage of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Turns files into rows.
    Parse,
    /// Turns rows into vertices.
    Vertices,
    /// Looks up the sources of edges.
    Sources,
    /// Looks up the targets of edges and creates edges without ids.
    Targets,
    /// Creates edges with ids.
    Edges,
}

impl Stage {
    /// Returns its name in events and objects.
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

    /// Returns the stage whose runs this one reads.
    fn reads(self) -> Option<Self> {
        match self {
            Self::Parse => None,
            Self::Vertices | Self::Sources => Some(Self::Parse),
            Self::Targets => Some(Self::Sources),
            Self::Edges => Some(Self::Targets),
        }
    }
}

/// The next step of a load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// Runs these tasks of a stage.
    Work(Stage, Vec<u32>),
    /// Commits: all segments are written.
    Commit,
    /// Ends: a row was refused and `fail_on_error` is on.
    Failed,
}

/// The steps of one load.
pub struct Steps<'a> {
    plan: Plan,
    target: &'a dyn LoadTarget,
    objects: &'a Objects,
}

impl<'a> Steps<'a> {
    /// Plans a load: lists and divides its files. Resumes the load if an earlier attempt left a plan behind.
    ///
    /// # Errors
    ///
    /// * [`Error::Source`], [`Error::Denied`] or [`Error::File`] if the files cannot be listed or read.
    /// * [`Error::Objects`] if the plan cannot be read or written.
    /// * [`Error::Stored`] if the plan that was left behind is damaged.
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

    /// Opens a load that was planned.
    ///
    /// # Errors
    ///
    /// [`Error::Objects`] if there is no plan (`NOT_FOUND`) or it cannot be read; [`Error::Stored`] if it is damaged.
    pub fn open(load_id: &str, target: &'a dyn LoadTarget, objects: &'a Objects) -> Result<Self, Error> {
        let plan = read(objects, &Plan::object(load_id))?;
        Ok(Self { plan, target, objects })
    }

    /// Returns the plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Records at which version a round begins and which keys are unique then. Returns the record of an earlier attempt
    /// if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Objects`] if the store fails; [`Error::Stored`] if the earlier record is damaged.
    pub fn begin_round(&self, round: u32, new: &Round) -> Result<Round, Error> {
        let object = self.object(round, "round.json");
        if put_new(self.objects, &object, new)? { Ok(new.clone()) } else { read(self.objects, &object) }
    }

    /// Returns the record of a round.
    ///
    /// # Errors
    ///
    /// [`Error::Objects`] if the round did not begin (`NOT_FOUND`) or the store fails; [`Error::Stored`] if the record
    /// is damaged.
    pub fn round(&self, round: u32) -> Result<Round, Error> {
        read(self.objects, &self.object(round, "round.json"))
    }

    /// Returns the number of the newest round that began; 0 for none.
    ///
    /// # Errors
    ///
    /// The same as [`Steps::round`], except that a round that did not begin is no error.
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

    /// Returns the tasks that read files.
    #[must_use]
    pub fn first(&self) -> Next {
        match u32::try_from(self.plan.chunks.len()).unwrap_or(u32::MAX) {
            0 => Next::Commit,
            tasks => Next::Work(Stage::Parse, (0..tasks).collect()),
        }
    }

    /// Runs a task and returns its report; returns the report of an earlier attempt if there is one. `attempt` is a
    /// name that no other attempt uses.
    ///
    /// # Errors
    ///
    /// The task may be tried again after every error whose code can be retried: the store, the graph or a
    /// file could not be reached. [`Error::File`] with [`Cause::Changed`](crate::Cause::Changed) means that
    /// a file changed since it was listed; the load has to begin anew. Defects of rows are in the report.
    pub fn work(&self, stage: Stage, round: u32, task: u32, attempt: &str) -> Result<TaskReport, Error> {
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

    /// Gathers the reports of a stage's tasks and returns what comes next.
    ///
    /// # Errors
    ///
    /// [`Error::Objects`] if a report is missing (`NOT_FOUND`) or the store fails; [`Error::Stored`] if one is damaged.
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

    /// Returns the first stage that has to run again in a later round.
    ///
    /// # Errors
    ///
    /// The same as [`Steps::next`].
    pub fn again(&self, round: u32) -> Result<Next, Error> {
        for stage in [Stage::Vertices, Stage::Sources] {
            let tasks = self.tasks(stage, round)?;
            if !tasks.is_empty() {
                return Ok(Next::Work(stage, tasks));
            }
        }
        Ok(Next::Commit)
    }

    /// Removes the objects that the steps passed to each other.
    ///
    /// # Errors
    ///
    /// [`Error::Objects`] if the store fails.
    pub fn clear(&self) -> Result<(), Error> {
        for object in self.objects.list(&format!("{FOLDER}/{}/", self.plan.load_id))? {
            // The report of the load can be asked for later. A process that was paused finds the fate of the segments.
            if !["/report.json", "/asked"].iter().any(|name| object.path.ends_with(name)) {
                self.objects.delete(&object.path)?;
            }
        }
        Ok(())
    }

    /// Returns the tasks of a stage: its groups that have rows.
    fn tasks(&self, stage: Stage, round: u32) -> Result<Vec<u32>, Error> {
        let Some(reads) = stage.reads() else {
            return Ok((0..self.plan.chunks.len() as u32).collect());
        };
        // A stage without tasks has nothing to gather.
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

    fn gather(&self, stage: Stage, round: u32) -> Result<StageReport, Error> {
        match self.gathered(stage, round) {
            Err(error) if error.code() == ErrorCode::NotFound => {}
            other => return other,
        }
        let mut gathered = StageReport::default();
        for task in self.tasks(stage, round)? {
            gathered.add(read(self.objects, &self.done(stage, round, task))?);
        }
        gathered.sort();
        // Another process that gathers writes the same.
        let bytes = bytes_of(&gathered)?;
        self.objects.put(&self.gathered_object(stage, round), bytes)?;
        Ok(gathered)
    }

    fn gathered(&self, stage: Stage, round: u32) -> Result<StageReport, Error> {
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
    /// Part of the names of the objects that this attempt writes.
    writer: String,
}

impl<'s> Work<'s> {
    fn plan(&self) -> &'s Plan {
        &self.steps.plan
    }

    fn groups(&self) -> Result<PartitionCount, Error> {
        self.plan().groups()
    }

    /// Makes a load for the rows of this task.
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
        let context = Context::new(config, *target, objects, &())?;
        let files = FileTable { reports: plan.reports(), columns: plan.columns() };
        let names = Names::of_tokens(self.steps.gathered(Stage::Parse, self.round)?.names);
        Load::new(context, files, names, writer.named(&self.writer))
    }
}

/// Returns the error of a task. A refused row that ends the load is none.
fn to_the_end(result: Result<(), Stop>) -> Result<(), Error> {
    match result {
        Ok(()) | Err(Stop::AtRejected) => Ok(()),
        Err(Stop::Error(error)) => Err(error),
    }
}

fn read<T: DeserializeOwned>(objects: &Objects, object: &str) -> Result<T, Error> {
    let bytes = objects.get(object)?;
    serde_json::from_slice(&bytes)
        .map_err(|source| Error::Stored { object: format!("{}/{object}", objects.name()), source })
}

fn bytes_of(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(Error::Encode)
}

fn put_new(objects: &Objects, object: &str, value: &impl Serialize) -> Result<bool, Error> {
    Ok(objects.put_new(object, bytes_of(value)?)?)
}
