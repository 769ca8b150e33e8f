//! The snapshot of a large map: one item with a compressed copy of the whole map as of one epoch, so that a process
//! that starts does not read the map item by item.
//!
//! Flow of a start (`read.rs`): read the items that changed last, at most [`FIRST_PAGE`] of them. A small map is
//! complete with that. Of a larger one, read the snapshot, and more of the newest items if more than those changed since.
//! Items that did not change since have to be in the snapshot as they are, and the counts show whether the parts are
//! the map of one epoch, as for every load (MAP-1). Without a snapshot that fits, all other items are read.
//!
//! Flow of a refresh, by the process that leads the graph: read the snapshot's *incarnation*, a random text, or write a
//! snapshot without a body and with a new incarnation. *Then* read the map, with strong consistency. Write the snapshot
//! if the table has that incarnation still, under a lower epoch.
//!
//! What must never happen: a process uses the snapshot of an earlier graph of the same name. A map can be read only until
//! its graph is marked as being dropped. All items that are in the table then are removed before the name is free, and
//! the incarnation is one of them. So a map that was read after its incarnation, and is written while the incarnation is
//! in the table, is of the graph that has the name now.

mod body;
mod read;

use super::DynamoMap;
use super::items::{self, Attributes, number};
use crate::{Error, PartitionMap};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_types::Epoch;

/// Number of items that a process which starts reads first. A smaller map has no snapshot. A change touches fewer items,
/// so the graph's item is among them.
pub(super) const FIRST_PAGE: usize = 128;
const _: () = assert!(FIRST_PAGE > crate::MOST_ITEMS);

/// Number of items that may have changed since the snapshot before it is written again. They are on the first page.
pub(super) const MOST_CHANGED: usize = FIRST_PAGE / 2;

/// Largest body of a snapshot. DynamoDB takes items of 400 KB.
const MOST_BYTES: usize = 350_000;

/// How long a process relies on the snapshot that it wrote or read. Somebody may have removed or damaged it.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(600);

/// Format of the body: `docs/formats/map-snapshot.md`.
const FORMAT: u64 = 1;

/// Attribute of the format's number.
pub(super) const FORMAT_KEY: &str = "format";
/// Attribute that tells graphs apart that had the same name one after the other.
pub(super) const INCARNATION: &str = "incarnation";
/// Attribute of the map's epoch; 0 if there is no body.
pub(super) const EPOCH: &str = "epoch";
/// Attribute of the compressed map.
pub(super) const BODY: &str = "body";

/// A snapshot that this process wrote or read.
#[derive(Debug)]
pub(super) struct Kept {
    pub incarnation: String,
    /// Its map; `None` if it has no body.
    pub map: Option<Arc<PartitionMap>>,
    /// When it was read or written first.
    pub since: Duration,
}

/// A snapshot that was read.
pub(super) struct Stored {
    pub incarnation: String,
    /// Its map; `None` if it has no body.
    pub map: Option<PartitionMap>,
}

impl Stored {
    /// Decodes an item. Returns `None` if it has another format.
    pub fn decode(graph: &str, item: &Attributes) -> Result<Option<Self>, Error> {
        let damaged = |reason: String| items::damaged(graph, items::SNAPSHOT, reason);
        let number = |name: &str| match item.get(name) {
            Some(AttributeValue::N(text)) => {
                text.parse::<u64>().map_err(|_| damaged(format!("{name} is {text}")))
            }
            _ => Err(damaged(format!("{name} is no number"))),
        };
        if number(FORMAT_KEY)? != FORMAT {
            return Ok(None);
        }
        let epoch = Epoch(number(EPOCH)?);
        let (Some(AttributeValue::S(incarnation)), Some(AttributeValue::B(body))) =
            (item.get(INCARNATION), item.get(BODY))
        else {
            return Err(damaged(format!("{INCARNATION} is no text, or {BODY} no bytes")));
        };
        let map = match body.as_ref() {
            [] if epoch == Epoch(0) => None,
            body => Some(body::decode(graph, epoch, body).map_err(|error| damaged(error.to_string()))?),
        };
        Ok(Some(Self { incarnation: incarnation.clone(), map }))
    }
}

/// A snapshot as an item.
pub(super) fn item(graph: &str, incarnation: &str, epoch: Epoch, body: Vec<u8>) -> Attributes {
    let mut item = items::key(graph, items::SNAPSHOT);
    item.extend([
        (FORMAT_KEY.to_owned(), number(FORMAT)),
        (INCARNATION.to_owned(), AttributeValue::S(incarnation.into())),
        (EPOCH.to_owned(), number(epoch.0)),
        (BODY.to_owned(), AttributeValue::B(Blob::new(body))),
    ]);
    item
}

impl DynamoMap {
    /// Writes the snapshot again if it is far behind `map`. Sends no request otherwise, nor for a small map.
    pub(super) fn refresh(&self, graph: &str, map: &PartitionMap) -> Result<(), Error> {
        if map.item_count() < FIRST_PAGE {
            return Ok(());
        }
        let now = self.clock.now();
        let is_recent = |kept: &Kept| now.saturating_sub(kept.since) < LOOK_EVERY;
        // After an error, or if another process wrote one meanwhile, the next call begins anew.
        let kept = self.snapshots.lock().remove(graph).filter(is_recent);
        let kept = match kept {
            Some(kept) => Some(kept),
            None => self.adopt(graph)?,
        };
        let Some(kept) = kept else { return Ok(()) };
        let is_near = |written: &Arc<PartitionMap>| map.changed_after(written.epoch()) <= MOST_CHANGED;
        let kept = match kept.map.as_ref().is_some_and(is_near) {
            true => Some(kept),
            false => self.replace(graph, kept)?,
        };
        if let Some(kept) = kept {
            self.snapshots.lock().insert(graph.into(), kept);
        }
        Ok(())
    }

    /// Reads the snapshot, or writes one without a body if there is none that can be used. Returns `None` if another
    /// process did so at the same time.
    pub(super) fn adopt(&self, graph: &str) -> Result<Option<Kept>, Error> {
        let operation = "read the snapshot of the map";
        let since = self.clock.now();
        let found = self.get_attributes(operation, graph, items::SNAPSHOT, true)?;
        // A damaged one was logged.
        let stored = found.as_ref().and_then(|item| Stored::decode(graph, item).ok().flatten());
        if let Some(Stored { incarnation, map }) = stored {
            let Some(map) = map else { return Ok(Some(Kept { incarnation, map: None, since })) };
            let newest = self.load_verified(graph, None, true)?;
            if map.leads_to(&newest) {
                return Ok(Some(Kept { incarnation, map: Some(Arc::new(map)), since }));
            }
        }
        self.graph(graph)?;
        let incarnation = format!("{:016x}", self.random.next_u64());
        let item = item(graph, &incarnation, Epoch(0), Vec::new());
        let before = found.and_then(|mut item| item.remove(INCARNATION));
        let names = [("#i", INCARNATION)];
        let refused = match before {
            Some(before) => self.put(operation, item, "#i = :i", &names, &[(":i", before)])?,
            None => self.put(operation, item, "attribute_not_exists(#i)", &names, &[])?,
        };
        Ok(refused.is_none().then_some(Kept { incarnation, map: None, since }))
    }

    /// Reads the map and writes it as the snapshot. Returns `None` if another snapshot is there.
    fn replace(&self, graph: &str, kept: Kept) -> Result<Option<Kept>, Error> {
        // The incarnation was read before.
        let newest = self.load_verified(graph, kept.map.as_ref(), true)?;
        if !self.put_snapshot(graph, &kept.incarnation, &newest)? {
            tracing::debug!(graph, "another process wrote the snapshot of the map, or it was removed");
            return Ok(None);
        }
        Ok(Some(Kept { map: Some(newest), ..kept }))
    }

    /// Writes a map as the snapshot, unless it is too large. Returns false if the table has a snapshot of another
    /// incarnation, or a newer one.
    pub(super) fn put_snapshot(
        &self,
        graph: &str,
        incarnation: &str,
        map: &PartitionMap,
    ) -> Result<bool, Error> {
        let body = body::encode(map)?;
        let (bytes, epoch) = (body.len(), map.epoch());
        if bytes > MOST_BYTES {
            tracing::info!(graph, bytes, "the snapshot of the map would be too large: starts read all items");
            return Ok(true);
        }
        let item = item(graph, incarnation, epoch, body);
        let names = [("#i", INCARNATION), ("#e", EPOCH)];
        let values = [(":i", AttributeValue::S(incarnation.into())), (":e", number(epoch.0))];
        let operation = "write the snapshot of the map";
        let refused = self.put(operation, item, "#i = :i AND #e < :e", &names, &values)?;
        if refused.is_none() {
            tracing::debug!(graph, bytes, %epoch, "wrote the snapshot of the map");
        }
        Ok(refused.is_none())
    }
}
