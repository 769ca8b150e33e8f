//! A partition as blocks of a checkpoint, and back.
//!
//! Writing goes on slot by slot from a [`Progress`]; between two blocks the lock is free and the partition may change:
//! what a pinned version sees keeps its slot and its order. Restoring fills an empty partition with settled records.

use super::{Body, EdgeIdEntry, EdgeRecord, Filter, Node, Partition, Place, Tally, Want};
use crate::adjacency::{Adjacency, Link};
use crate::scalar::{Cell, Scalar};
use crate::stamps::SETTLED;
use thin_vec::ThinVec;
use tidegraph_apl::Expansion;
use tidegraph_types::{Cardinality, Direction, Edge, Gui, Str, Token, Value, Version};
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

fn property_images(cells: &[Cell]) -> Result<Vec<PropertyImage>, Error> {
    let mut images: Vec<PropertyImage> = Vec::new();
    for run in cells.chunk_by(|a, b| a.key == b.key) {
        let values = run.iter().map(|cell| value::encode(&Value::from(&cell.value)));
        images.push(PropertyImage {
            key: run[0].key.0,
            cardinality: value::encode_cardinality(run[0].cardinality).into(),
            values: values.collect::<Result<_, _>>()?,
        });
    }
    Ok(images)
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
                Some(VertexImage { gui: self.node(slot).gui.0, continued, ..VertexImage::default() })
            } else {
                self.read_vertex(slot, at, |id, labels, cells| {
                    Ok::<_, Error>(VertexImage {
                        gui: self.node(slot).gui.0,
                        id: id.as_ref().map_or_else(String::new, Str::to_string),
                        labels: self.label_sets.get(labels).iter().map(|label| label.0).collect(),
                        properties: property_images(cells)?,
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
            };
            let next = self.expand(slot, 0, &want, progress.place, edges);
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
            let content = self.read_edge(&edge, at, |id, cells| {
                let property = |cell: &Cell| {
                    let value = value::encode(&Value::from(&cell.value))?;
                    Ok(EdgeProperty { key: cell.key.0, value: Some(value) })
                };
                let properties: Result<Vec<_>, Error> = cells.iter().map(property).collect();
                (id.map(Str::to_string), properties)
            });
            let (id, properties) = content.unwrap_or((None, Ok(Vec::new())));
            image.out_edges.push(EdgeImage {
                sid: edge.sid.0,
                target: edge.target.0,
                label: edge.label.0,
                id,
                properties: properties?,
            });
        }
        Ok(())
    }

    /// Some entries of the edge id index, of edges that may have ended; false when that were all.
    pub fn edge_id_piece(&self, progress: &mut Progress, out: &mut Vec<EdgeIdEntry>) -> bool {
        let last = progress.edge_id.saturating_add(BLOCK_SLOTS).min(self.edge_ids.end());
        out.extend((progress.edge_id..last).map(|slot| *self.edge_ids.get(slot)));
        progress.edge_id = last;
        last < self.edge_ids.end()
    }

    /// The user-chosen id of an edge at a version, with the edge.
    pub fn edge_with_its_id(&self, entry: &EdgeIdEntry, at: Version) -> Option<(Edge, Str)> {
        let edge = self.find_edge(entry.source, entry.sid, at)?;
        let id = self.read_edge(&edge, at, |id, _| id.cloned())??;
        Some((edge, id))
    }

    /// Adds a restored vertex; false if it is there already.
    pub fn restore_vertex(
        &mut self,
        tally: &mut Tally,
        gui: Gui,
        id: Str,
        labels: &[Token],
        cells: ThinVec<Cell>,
    ) -> bool {
        if self.slot(gui).is_some() {
            return false;
        }
        let set = self.label_sets.intern(labels);
        let slot = self.nodes.insert(Node {
            gui,
            out: Adjacency::Empty,
            inward: Adjacency::Empty,
            labels: set,
            state: SETTLED,
        });
        self.bodies.insert(Body { id: Some(id), cells });
        self.by_gui.insert(&mut self.turn, gui.0, slot);
        tally.vertices += 1;
        for &label in labels {
            self.members.insert(label, slot);
            *tally.vertices_by_label.entry(label).or_default() += 1;
        }
        true
    }

    /// Adds a restored edge at its source; false if the vertex is not there.
    pub fn restore_out(
        &mut self,
        tally: &mut Tally,
        edge: &Edge,
        id: Option<Str>,
        cells: ThinVec<Cell>,
    ) -> bool {
        let Some(slot) = self.slot(edge.source) else { return false };
        let link = Link { neighbour: edge.target, sid: edge.sid, label: edge.label, stamp: SETTLED };
        self.nodes.get_mut(slot).out.push(link, Version(0), &self.stamps);
        if id.is_some() || !cells.is_empty() {
            let record = self.edges.insert(EdgeRecord { sid: edge.sid, state: SETTLED, id, cells });
            self.by_sid.insert(&mut self.turn, super::sid_hash(edge.sid), record);
        }
        tally.edges += 1;
        *tally.edges_by_label.entry(edge.label).or_default() += 1;
        true
    }

    /// Adds the restored copy of an edge at its target; false if the vertex is not there.
    pub fn restore_in(&mut self, edge: &Edge) -> bool {
        let Some(slot) = self.slot(edge.target) else { return false };
        let link = Link { neighbour: edge.source, sid: edge.sid, label: edge.label, stamp: SETTLED };
        self.nodes.get_mut(slot).inward.push(link, Version(0), &self.stamps);
        true
    }
}

/// The cells of property images.
pub(crate) fn cells_of(images: Vec<PropertyImage>) -> Result<ThinVec<Cell>, Error> {
    let mut cells = ThinVec::with_capacity(images.iter().map(|image| image.values.len()).sum());
    for image in images {
        let cardinality = value::decode_cardinality(image.cardinality)?;
        for one in image.values {
            let value = Scalar::from(&value::decode(one)?);
            cells.push(Cell { value, key: Token(image.key), cardinality });
        }
    }
    Ok(cells)
}

/// The cells of edge properties.
pub(crate) fn edge_cells_of(properties: Vec<EdgeProperty>) -> Result<ThinVec<Cell>, Error> {
    let mut cells = ThinVec::with_capacity(properties.len());
    for property in properties {
        let value = property.value.ok_or(Error::Missing { message: "EdgeProperty", field: "value" })?;
        let value = Scalar::from(&value::decode(value)?);
        cells.push(Cell { value, key: Token(property.key), cardinality: Cardinality::Single });
    }
    Ok(cells)
}
