//! How a worker runs loads: whole ones, and steps of those that several workers do.

use crate::load::{LoadEnd, LoadPlan, SubmittedLoad, SubmittedLoads};
use crate::process::Process;
use crate::run_token::WorkerClock;
use crate::steps::{SteppedLoads, TASK_BYTES};
use crate::transaction::TransactionGenerator;
use crate::worker::{EndedLoad, Wish};
use std::path::PathBuf;
use std::sync::Arc;
use tidegraph_engine::loads::Ingest;
use tidegraph_engine::{Backend, Database};
use tidegraph_fleet::Worker;
use tidegraph_platform::{Objects, Random};
use tidegraph_types::{ErrorCode, Version};

/// Where a worker runs loads, and the loads of all workers.
#[derive(Clone, Debug)]
pub(crate) struct LoadFolder {
    pub folder: PathBuf,
    pub submitted: SubmittedLoads,
    pub stepped: SteppedLoads,
}

/// Runs loads, and steps of loads.
pub(crate) struct Loader<'a> {
    pub database: &'a Database,
    pub loads: &'a LoadFolder,
    pub process: &'a Process,
    pub objects: &'a Arc<Objects>,
    pub clock: &'a Arc<WorkerClock>,
    pub random: &'a Arc<dyn Random>,
}

impl Loader<'_> {
    /// Does what the world wishes, or what is drawn. Returns what the job of a load says, if one ended.
    pub fn work(
        &self,
        worker: &Arc<Worker>,
        generator: &TransactionGenerator,
        count: i64,
        wish: Option<Wish>,
    ) -> Result<Option<EndedLoad>, tidegraph_engine::Error> {
        let since = worker.status().version;
        let draw = || LoadPlan::draw(&generator.random, generator.index, count);
        let open = self.loads.stepped.open();
        match wish {
            Some(Wish::Report(id)) => {
                let end = match self.database.loads().status(&id) {
                    Ok(status) => LoadEnd::of(&status),
                    Err(error) if error.code() == ErrorCode::BulkLoadIdNotFound => LoadEnd::without_job(),
                    Err(error) => return Err(error),
                };
                Ok(Some((id, end)))
            }
            Some(Wish::Step(id)) => self.step(worker, &id),
            Some(_) => self.run(draw().without_risks(), since),
            None if !open.is_empty() && !generator.random.one_in(4) => {
                self.step(worker, &open[generator.random.below(open.len() as u64) as usize])
            }
            None if generator.random.one_in(3) => {
                let LoadFolder { folder, submitted, stepped } = self.loads;
                stepped.start(folder, submitted, draw(), since).map_err(cannot_write)?;
                Ok(None)
            }
            None => self.run(draw(), since),
        }
    }

    fn step(&self, worker: &Arc<Worker>, id: &str) -> Result<Option<EndedLoad>, tidegraph_engine::Error> {
        let (objects, clock, random) = (self.objects.clone(), self.clock.clone(), self.random.clone());
        let ingest = Ingest::new(worker.clone(), objects, clock, random, TASK_BYTES);
        self.loads.stepped.step(&ingest, self.database, self.process, id)
    }

    /// Runs a load to its end.
    fn run(&self, plan: LoadPlan, since: Version) -> Result<Option<EndedLoad>, tidegraph_engine::Error> {
        let spec = plan.write(&self.loads.folder).map_err(cannot_write)?;
        let id = self.database.loads().submit(spec)?;
        self.loads.submitted.lock().insert(id.clone(), SubmittedLoad { plan, since, in_steps: false });
        self.database.loads().run_queued();
        let status = self.database.loads().status(&id)?;
        Ok(Some((id, LoadEnd::of(&status))))
    }
}

fn cannot_write(error: std::io::Error) -> tidegraph_engine::Error {
    tidegraph_engine::Error::new(ErrorCode::Internal, format!("cannot write the files of a load: {error}"))
}
