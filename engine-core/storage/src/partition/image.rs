//! A partition as blocks of a checkpoint, and back.
//!
//! Writing goes on slot by slot from a [`Progress`]; between two blocks the lock is free and the partition may change:
//! what a pinned version sees keeps its slot and its order. Restoring fills an empty partition with settled records.

use super::{EdgeIdEntry, Filter, Open, Partition, Place, Tally, Want};
use crate::adjacency::Link;
use crate::properties::{self, Content, Entry, Owner, Row, Scalar, Values};
use crossbeam_epoch::pin;
use tidegraph_apl::Expansion;
use tidegraph_types::{Cardinality, Direction, Edge, Gui, Str, Token, Version};
use tidegraph_wire::proto::{
    CheckpointBlock, EdgeImage, EdgeProperty, InEdgeImage, PropertyImage, VertexImage,
};
use tidegraph_wire::{Error, value};

/// A block holds about this many vertices and edges.
const BLOCK_ITEMS: usize = 4096;
/// A block looks at no more slots than this under one lock.
const BLOCK_SLOTS: u32 = 8192;

/// How far the writing of a partition has come.
#[derive(Default)]
pub(crate) struct Progress {
    slot: u32,
    place: Place,
    edge_id: u32,
    pub vertices: u64,
    pub edges: u64,
}

fn property_images(row: &Row<'_>) -> Result<Vec<PropertyImage>, Error> {
    let mut images: Vec<PropertyImage> = Vec::new();
    let mut result = Ok(());
    row.for_each(properties::Want::ALL, |key, cardinality, stored| {
        let stored = match value::encode(&stored) {
            Ok(stored) => stored,
            Err(error) => {
                result = Err(error);
                return;
            }
        };
        match images.last_mut() {
            Some(last) if last.key == key.0 => last.values.push(stored),
            _ => images.push(PropertyImage {
                key: key.0,
                cardinality: value::encode_cardinality(cardinality).into(),
                values: vec![stored],
            }),
        }
    });
    result.map(|()| images)
}

impl Partition {
    /// The next block of vertices at a version; `None` when all are written.
    pub fn vertex_block(
        &self,
        at: Version,
        progress: &mut Progress,
        edges: &mut Expansion,
    ) -> Result<Option<CheckpointBlock>, Error> {
        if progress.slot >= self.end() {
            return Ok(None);
        }
        let mut block = CheckpointBlock::default();
        let last = progress.slot.saturating_add(BLOCK_SLOTS).min(self.end());
        let mut items = 0;
        while progress.slot < last && items < BLOCK_ITEMS {
            let slot = progress.slot;
            let continued = progress.place != Place::default();
            let image = if continued {
                Some(VertexImage { gui: self.node(slot).gui().0, continued, ..VertexImage::default() })
            } else {
                self.read_vertex(slot, at, properties::Want::ALL, &pin())
                    .map(|row| {
                        Ok::<_, Error>(VertexImage {
                            gui: self.node(slot).gui().0,
                            id: row.id().map_or_else(String::new, |id| id.to_string()),
                            labels: row.labels().iter().map(|label| label.0).collect(),
                            properties: property_images(&row)?,
                            ..VertexImage::default()
                        })
                    })
                    .transpose()?
            };
            let Some(mut image) = image else {
                progress.slot += 1;
                continue;
            };
            edges.clear();
            let want = Want {
                direction: Direction::Both,
                filter: Filter::Any,
                loops_once: false,
                at,
                limit: BLOCK_ITEMS,
                neighbours_only: false,
            };
            let next = self.expand(slot, 0, &want, progress.place, &pin(), edges);
            self.add_edges(at, &mut image, edges)?;
            items += 1 + edges.len();
            progress.vertices += u64::from(!continued);
            progress.edges += image.out_edges.len() as u64;
            progress.slot += u32::from(next.is_none());
            progress.place = next.unwrap_or_default();
            block.vertices.push(image);
        }
        Ok(Some(block))
    }

    fn add_edges(&self, at: Version, image: &mut VertexImage, edges: &Expansion) -> Result<(), Error> {
        let owner = [Gui(image.gui)];
        for index in 0..edges.len() {
            let edge = edges.edge(index, &owner);
            if !edges.outgoing[index] {
                image.in_edges.push(InEdgeImage {
                    sid: edge.sid.0,
                    source: edge.source.0,
                    label: edge.label.0,
                });
                continue;
            }
            let guard = pin();
            let row = self.read_edge(&edge, at, properties::Want::ALL, &guard).flatten();
            let images = row.as_ref().map(property_images).transpose()?.unwrap_or_default();
            let property =
                |mut image: PropertyImage| EdgeProperty { key: image.key, value: image.values.pop() };
            image.out_edges.push(EdgeImage {
                sid: edge.sid.0,
                target: edge.target.0,
                label: edge.label.0,
                id: row.as_ref().and_then(Row::id).map(|id| id.to_string()),
                properties: images.into_iter().map(property).collect(),
            });
        }
        Ok(())
    }

    /// Some entries of the edge id index, of edges that may have ended; false when that were all.
    pub fn edge_id_piece(&self, progress: &mut Progress, out: &mut Vec<EdgeIdEntry>) -> bool {
        let last = progress.edge_id.saturating_add(BLOCK_SLOTS).min(self.edge_ids.end());
        out.extend((progress.edge_id..last).map(|slot| self.edge_ids.get(slot).get()));
        progress.edge_id = last;
        last < self.edge_ids.end()
    }

    /// The user-chosen id of an edge at a version, with the edge.
    pub fn edge_with_its_id(&self, entry: &EdgeIdEntry, at: Version) -> Option<(Edge, Str)> {
        let guard = pin();
        let edge = self.find_edge(entry.source, entry.sid, at, &guard)?;
        let id = self.read_edge(&edge, at, properties::Want::ID, &guard)??.id()?;
        Some((edge, id))
    }
}

impl Open<'_> {
    /// Adds a restored vertex; false if it is there already.
    pub fn restore_vertex(
        &mut self,
        tally: &mut Tally,
        gui: Gui,
        id: Str,
        labels: &[Token],
        content: &Content,
    ) -> bool {
        if self.slot(gui).is_some() {
            return false;
        }
        let guard = pin();
        let (keeper, desk) = self.desk(&guard);
        let place = keeper.insert(desk, None, Owner::Vertex(gui), Some(&id), labels, content, None);
        self.insert_node(gui, place);
        tally.vertices += 1;
        for &label in labels {
            *tally.vertices_by_label.entry(label).or_default() += 1;
        }
        true
    }

    /// Counts a restored edge and adds what it holds.
    pub fn restore_content(&mut self, tally: &mut Tally, edge: &Edge, id: Option<Str>, content: &Content) {
        if id.is_some() || !content.entries.is_empty() {
            self.insert_edge(&pin(), None, edge.sid, id.as_ref(), content);
        }
        tally.edges += 1;
        *tally.edges_by_label.entry(edge.label).or_default() += 1;
    }

    /// Adds restored edges of a vertex; false if the vertex is not there.
    pub fn restore_links(&mut self, gui: Gui, out: &mut [Link], inward: &mut [Link]) -> bool {
        let Some(slot) = self.slot(gui) else { return false };
        let node = self.partition.nodes.get(slot);
        for (list, links) in [(&node.out, out), (&node.inward, inward)] {
            if !links.is_empty() {
                self.partition.links.push_all(
                    &mut self.book.turn,
                    list,
                    links,
                    Version(0),
                    self.partition.reclaimed(),
                );
            }
        }
        true
    }
}

/// The content of property images.
pub(crate) fn content_of(images: Vec<PropertyImage>) -> Result<Content, Error> {
    let mut entries = Vec::with_capacity(images.len());
    for image in images {
        let cardinality = value::decode_cardinality(image.cardinality)?;
        let values: Result<Vec<Scalar>, Error> =
            image.values.into_iter().map(|one| Ok(Scalar::from(&value::decode(one)?))).collect();
        if let Some(values) = Values::of(values?) {
            entries.push(Entry { key: Token(image.key), cardinality, values });
        }
    }
    Ok(Content { entries })
}

/// The content of edge properties.
pub(crate) fn edge_content_of(properties: Vec<EdgeProperty>) -> Result<Content, Error> {
    let mut entries = Vec::with_capacity(properties.len());
    for property in properties {
        let value = property.value.ok_or(Error::Missing { message: "EdgeProperty", field: "value" })?;
        let values = Values::One(Scalar::from(&value::decode(value)?));
        entries.push(Entry { key: Token(property.key), cardinality: Cardinality::Single, values });
    }
    Ok(Content { entries })
}
