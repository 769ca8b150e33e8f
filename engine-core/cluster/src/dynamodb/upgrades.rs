//! The items about releases: one for each node, and one for the last upgrade.

use super::DynamoMap;
use super::items::{self, Read, number};
use crate::memory::describe_upgrade;
use crate::{Error, NodeId, NodeRelease, NodeReleases, Upgrade};

impl DynamoMap {
    pub(super) fn put_release(&self, graph: &str, node: &NodeId, release: &NodeRelease) -> Result<(), Error> {
        self.graph(graph)?;
        let item = items::item(graph, &format!("{}{node}", items::RELEASE), None, release)?;
        let (names, values) = ([("#n", "generation")], [(":n", number(release.generation))]);
        let condition = "attribute_not_exists(#n) OR #n <= :n";
        match self.put("note a release", item, condition, &names, &values)? {
            None => Ok(()),
            Some(found) => {
                let found = Read::new(graph, found)?.value::<NodeRelease>(graph)?.generation;
                let item = format!("release of node {node}");
                Err(Error::Conflict { item, found: format!("generation {found}") })
            }
        }
    }

    pub(super) fn read_releases(&self, graph: &str) -> Result<NodeReleases, Error> {
        self.graph(graph)?;
        let reads = self.query("read releases", graph, items::RELEASE)?.into_iter();
        reads
            .map(|read| {
                let id = NodeId::new(read.key.strip_prefix(items::RELEASE).unwrap_or_default())
                    .map_err(|error| items::damaged(graph, &read.key, error))?;
                Ok((id, read.value(graph)?))
            })
            .collect()
    }

    pub(super) fn read_upgrade(&self, graph: &str) -> Result<Option<Upgrade>, Error> {
        self.graph(graph)?;
        let read = self.get("read the upgrade", graph, items::UPGRADE)?;
        read.map(|read| read.value(graph)).transpose()
    }

    pub(super) fn put_upgrade(
        &self,
        graph: &str,
        seen: Option<&Upgrade>,
        next: &Upgrade,
    ) -> Result<(), Error> {
        self.graph(graph)?;
        let item = items::item(graph, items::UPGRADE, None, next)?;
        let names = [("#s", items::SERIAL)];
        let refused = match seen {
            None => self.put("write the upgrade", item, "attribute_not_exists(#s)", &names, &[])?,
            Some(seen) => {
                let values = [(":s", number(seen.serial))];
                self.put("write the upgrade", item, "#s = :s", &names, &values)?
            }
        };
        let Some(found) = refused else { return Ok(()) };
        let conflict = |found| Error::Conflict { item: "the upgrade".into(), found };
        if found.is_empty() {
            return Err(conflict("there is none any more".into()));
        }
        let found: Upgrade = Read::new(graph, found)?.value(graph)?;
        // An earlier attempt of this call wrote it, and its answer was lost.
        match found == *next {
            true => Ok(()),
            false => Err(conflict(describe_upgrade(&found))),
        }
    }
}
