//! The graphs of a fleet: a request goes to the steps of its graph, and two steps are about all of them.

use crate::answer::{Answer, Needed, OfGraph};
use crate::event::{Event, Request};
use crate::settings::Settings;
use crate::steps::{Detected, Error, Steps};
use std::collections::BTreeSet;
use std::sync::Arc;
use tidegraph_cluster::{MapStore, NodeId, NodeState};
use tidegraph_platform::Clock;

/// Answers requests about the graphs of a fleet.
#[derive(Debug)]
pub struct Graphs {
    /// The first one is meant by requests that name none. It stands for the fleet in upgrades.
    first: Steps,
    others: Vec<Steps>,
    clock: Arc<dyn Clock>,
    settings: Settings,
}

impl Graphs {
    /// Makes the steps of the graphs in the settings, over a map.
    pub fn new(settings: Settings, store: &Arc<dyn MapStore>, clock: Arc<dyn Clock>) -> Self {
        let of = |graph: &str, others: &[String]| {
            Steps::new(graph, others, settings.clone(), store.clone(), clock.clone())
        };
        let (first, others) = settings
            .graphs
            .split_first()
            .map_or(("default", &[][..]), |(first, others)| (first.as_str(), others));
        let first = of(first, others);
        let others = others.iter().map(|graph| of(graph, &[])).collect();
        Self { first, others, clock, settings }
    }

    /// Answers a request.
    ///
    /// # Errors
    /// [`Error::Map`] if the map cannot be read or changed; [`Error::NotOurs`] if the step needs the lease and another
    /// execution has it; [`Error::Invalid`] if the request is not allowed, or its graph is not one of the fleet.
    pub fn answer(&self, request: Request) -> Result<Answer, Error> {
        match (request.graph, request.event) {
            (None, Event::DetectAll {}) => self.detect_all(),
            (None, Event::Graphs {}) => Ok(Answer::Graphs { graphs: self.existing()? }),
            (None, Event::Keep { node }) => self.keep(&node),
            (None, event) => self.first.answer(event),
            (Some(_), Event::UpgradeBegin { .. } | Event::UpgradeNext { .. } | Event::UpgradeEnd { .. }) => {
                Err(Error::Invalid { reason: "an upgrade is one of all graphs and takes none".into() })
            }
            (Some(_), Event::ScaleNext { .. } | Event::Keep { .. }) => Err(Error::Invalid {
                reason: "the size of a fleet is that of all graphs, and its steps take none".into(),
            }),
            (Some(graph), event) => self.steps_of(&graph)?.answer(event),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Steps> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn steps_of(&self, graph: &str) -> Result<&Steps, Error> {
        self.all().find(|steps| steps.graph() == graph).ok_or_else(|| {
            let all = self.settings.graphs.join(", ");
            Error::Invalid {
                reason: format!("the graph {graph:?} is not one of this fleet, which has {all}"),
            }
        })
    }

    fn existing(&self) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        for steps in self.all() {
            if steps.exists()? {
                found.push(steps.graph().to_owned());
            }
        }
        Ok(found)
    }

    /// Ends the draining of a node in all graphs, and returns its state in the first one that exists.
    fn keep(&self, node: &NodeId) -> Result<Answer, Error> {
        let mut state = NodeState::Gone;
        for steps in self.all().collect::<Vec<_>>().into_iter().rev() {
            if steps.exists()? {
                state = steps.keep(node)?;
            }
        }
        Ok(Answer::Drains { state, held: None })
    }

    /// Looks at all graphs, with one wait between two looks at their heartbeats. A graph that cannot be looked at does not
    /// keep others from what they need.
    fn detect_all(&self) -> Result<Answer, Error> {
        let before: Vec<_> = self.all().map(Steps::look).collect();
        self.clock.sleep(self.settings.silence);
        let mut found: Vec<_> = self
            .all()
            .zip(before)
            .map(|(steps, before)| (steps, before.and_then(|before| steps.detect(&before))))
            .collect();
        if found.iter().all(|(_, found)| found.is_err())
            && let Some((_, Err(error))) = found.pop()
        {
            return Err(error);
        }
        let mut drained = BTreeSet::new();
        let graphs = found.into_iter().map(|(steps, found)| {
            let mut told = told(steps.graph(), found);
            // An execution that drains a node empties it of all graphs.
            if told.node.as_ref().is_some_and(|node| !drained.insert(node.clone())) {
                (told.needed, told.node) = (Needed::Nothing, None);
            }
            told
        });
        Ok(Answer::DetectedAll { graphs: graphs.collect() })
    }
}

fn told(graph: &str, found: Result<Detected, Error>) -> OfGraph {
    let graph = graph.to_owned();
    match found {
        Ok(Detected { needed, node, lost, name }) => {
            let name = name.in_words(needed, Some(&graph));
            OfGraph { graph, needed, node, lost, name, error: None }
        }
        Err(error) => {
            let error = error.to_string();
            tracing::warn!(graph, error, "the graph cannot be looked at");
            let (needed, name) = (Needed::Nothing, String::new());
            OfGraph { graph, needed, node: None, lost: Vec::new(), name, error: Some(error) }
        }
    }
}

#[cfg(test)]
mod tests;
