//! Runs the step of an event and answers. `contracts/schemas/ingest-answer.schema.json` is the schema of answers.

use crate::Event;
use crate::event::spec_of;
use serde::Serialize;
use tidegraph_engine::loads::{Ahead, Ingest, Stage};
use tidegraph_types::Kind;

/// The answer to an event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// What the state machine does next.
    #[serde(rename_all = "camelCase")]
    Ahead {
        /// Id of the load.
        load_id: String,
        /// A stage with tasks, `commit` or `ended`.
        stage: &'static str,
        /// Number of the attempt to commit.
        round: u32,
        /// Tasks of the stage.
        tasks: Vec<u32>,
        /// How the load ended, as the loader API names it.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'static str>,
        /// Path of its report in the data bucket.
        #[serde(skip_serializing_if = "Option::is_none")]
        report: Option<String>,
    },
    /// A task is done.
    Worked {
        /// Its stage.
        stage: Stage,
        /// Its number.
        task: u32,
        /// Number of rows of the task.
        rows: u64,
        /// Number of refused rows.
        rejected: u64,
    },
}

impl Answer {
    /// Returns the answer for a graph whose objects are below a folder of the data bucket.
    #[must_use]
    pub fn in_folder(mut self, folder: Option<&str>) -> Self {
        if let (Self::Ahead { report: Some(report), .. }, Some(folder)) = (&mut self, folder) {
            *report = format!("{folder}/{report}");
        }
        self
    }
}

/// Why a step failed. The variant decides whether the state machine retries.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The event is wrong, or asks for something that cannot be done. A retry does not help.
    #[error("{0}")]
    Invalid(String),
    /// A part of the fleet cannot be reached. A retry may help.
    #[error("{0}")]
    Unavailable(String),
    /// A defect of Tidegraph.
    #[error("{0}")]
    Defect(String),
}

impl Error {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// Returns the name by which the state machine knows the error.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "Invalid",
            Self::Unavailable(_) => "Unavailable",
            Self::Defect(_) => "Defect",
        }
    }
}

impl From<tidegraph_engine::Error> for Error {
    fn from(error: tidegraph_engine::Error) -> Self {
        let message = format!("{}: {error}", error.code().as_str());
        match error.code().kind() {
            Kind::Unavailable | Kind::Unknown | Kind::Timeout | Kind::Conflict => Self::Unavailable(message),
            Kind::Internal => Self::Defect(message),
            _ => Self::Invalid(message),
        }
    }
}

/// Runs the step of an event.
///
/// # Errors
///
/// [`Error::Unavailable`] if the step may succeed later, [`Error::Invalid`] if it never does, [`Error::Defect`] for a
/// broken invariant.
pub fn answer(ingest: &Ingest, event: Event) -> Result<Answer, Error> {
    let load_id = event.load_id().to_owned();
    let (before, ahead) = match event {
        Event::Begin {
            source,
            files,
            dialect,
            fail_on_error,
            update_single_cardinality_properties,
            allow_empty_strings,
            user_provided_edge_ids,
            edge_only_load,
            ..
        } => {
            let flags = [
                fail_on_error,
                update_single_cardinality_properties,
                allow_empty_strings,
                user_provided_edge_ids,
                edge_only_load,
            ];
            (0, ingest.begin(&load_id, spec_of(source, dialect, flags), files)?)
        }
        Event::Work { stage, round, task, .. } => {
            let (rows, rejected) = ingest.work(&load_id, stage, round, task)?;
            return Ok(Answer::Worked { stage, task, rows, rejected });
        }
        Event::Next { stage, round, .. } => (round, ingest.next(&load_id, stage, round)?),
        Event::Commit { round, .. } => (round, ingest.commit(&load_id, round)?),
        Event::Abandon { error, cause, .. } => (0, ingest.abandon(&load_id, &error, &cause)?),
    };
    Ok(match ahead {
        Ahead::Work { stage, round, tasks } => {
            Answer::Ahead { load_id, stage: stage.name(), round, tasks, status: None, report: None }
        }
        Ahead::Commit { round } => {
            Answer::Ahead { load_id, stage: "commit", round, tasks: Vec::new(), status: None, report: None }
        }
        Ahead::Ended { state, report } => Answer::Ahead {
            load_id,
            stage: "ended",
            round: before,
            tasks: Vec::new(),
            status: Some(state.as_str()),
            report: Some(report),
        },
    })
}
