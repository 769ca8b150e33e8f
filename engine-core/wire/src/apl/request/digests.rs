//! Requests that make less of the vertices of a scan than rows: groups, ends of edges with their numbers, and first vertices.

use super::super::shapes::{
    expand_from, expand_to, guis_from, guis_to, same, scan_cursor_to, scan_from, scan_to, tokens_from,
    tokens_to,
};
use super::scans::{ScanValues, column_from, column_to, next_from};
use super::{Allowance, Request};
use crate::{Error, proto};
use proto::GroupItemKind as ItemKind;
use tidegraph_apl::{
    self as apl, Apl, At, EndCounts, Error as AplError, Expand, GroupItem, Grouping, Groups, ScanCursor,
    ScannedValues, VertexScan, Weight,
};
use tidegraph_types::{Token, Value};

/// Bytes of groups after which a server ends an answer.
const GROUP_BYTES: usize = 1 << 20;

/// The request of the method `Apl::group_vertices`.
#[derive(Clone, PartialEq, Debug)]
pub struct GroupVertices {
    /// Selects the vertices. A server answers about `max_rows` groups at once.
    pub scan: VertexScan,
    /// The groups.
    pub grouping: Grouping,
    /// Cursor at which the answer starts.
    pub from: ScanCursor,
}

impl Request for GroupVertices {
    type Message = proto::GroupVerticesRequest;
    type AnswerMessage = proto::VertexGroups;

    fn encode(&self) -> Result<Self::Message, Error> {
        let Grouping { keys, items, weight } = &self.grouping;
        Ok(proto::GroupVerticesRequest {
            scan: Some(scan_to(&self.scan, self.from)?),
            keys: tokens_to(keys),
            items: items.iter().map(item_to).collect(),
            steps: weight.steps.iter().map(|step| expand_to(step, &[], None)).collect(),
            distinct_edges: weight.distinct,
        })
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        const MESSAGE: &str = "GroupVerticesRequest";
        let invalid = |reason: &str| Error::Invalid { message: MESSAGE, reason: reason.into() };
        let scan = m.scan.ok_or(Error::Missing { message: MESSAGE, field: "scan" })?;
        let (scan, from) = scan_from(scan)?;
        let items = m.items.into_iter().map(item_from).collect::<Result<Vec<_>, _>>()?;
        let steps = m.steps.into_iter().map(|step| Ok(expand_from(step)?.0));
        let steps = steps.collect::<Result<Vec<Expand>, Error>>()?;
        if items.is_empty() {
            return Err(Error::Missing { message: MESSAGE, field: "items" });
        }
        if m.distinct_edges && steps.len() != 2 {
            return Err(invalid("only the edges of two steps can be told apart"));
        }
        if !steps.is_empty() && items.iter().any(|item| matches!(item, GroupItem::Sum(_))) {
            return Err(invalid("a sum has no steps"));
        }
        let weight = Weight { steps, distinct: m.distinct_edges };
        Ok(Self { scan, grouping: Grouping { keys: tokens_from(m.keys), items, weight }, from })
    }

    fn encode_answer((groups, next): &(Groups, Option<ScanCursor>)) -> Result<Self::AnswerMessage, Error> {
        let columns = |columns: &[Vec<Value>]| {
            columns.iter().map(|column| column_to(column)).collect::<Result<Vec<_>, Error>>()
        };
        Ok(proto::VertexGroups {
            keys: columns(&groups.keys)?,
            items: columns(&groups.items)?,
            next: next.map(scan_cursor_to),
        })
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<(Groups, Option<ScanCursor>), Error> {
        let rows = m.items.first().map_or(0, |column| column.ends.len());
        let columns = |columns: Vec<proto::ValueColumn>| {
            columns.into_iter().map(|column| column_from(column, rows)).collect::<Result<Vec<_>, _>>()
        };
        Ok((Groups::of_columns(columns(m.keys)?, columns(m.items)?), next_from(m.next)?))
    }

    fn call(
        &self,
        apl: &dyn Apl,
        at: At,
        allowance: &Allowance<'_>,
    ) -> Result<(Groups, Option<ScanCursor>), AplError> {
        let most = self.scan.max_rows.min(allowance.max_rows) as usize;
        let (mut groups, mut next) = (Groups::default(), Some(self.from));
        while let Some(from) = next.filter(|_| groups.len() < most && groups.bytes() < GROUP_BYTES) {
            (allowance.check)()?;
            next = apl.group_vertices(at, &self.scan, &self.grouping, from, &mut groups)?;
        }
        Ok((groups, next))
    }

    fn rows(_: &Self::Message) -> Option<usize> {
        None
    }
}

fn item_to(item: &GroupItem) -> proto::GroupItem {
    let kind = match item {
        GroupItem::Rows => ItemKind::Rows,
        GroupItem::Values(_) => ItemKind::Values,
        GroupItem::Sum(_) => ItemKind::Sum,
        GroupItem::Min(_) => ItemKind::Min,
        GroupItem::Max(_) => ItemKind::Max,
    };
    proto::GroupItem { kind: kind.into(), key: item.key().unwrap_or_default().0 }
}

fn item_from(m: proto::GroupItem) -> Result<GroupItem, Error> {
    let key = Token(m.key);
    Ok(match m.kind() {
        ItemKind::Unspecified => return Err(Error::UnknownKind { message: "GroupItem" }),
        ItemKind::Rows => GroupItem::Rows,
        ItemKind::Values => GroupItem::Values(key),
        ItemKind::Sum => GroupItem::Sum(key),
        ItemKind::Min => GroupItem::Min(key),
        ItemKind::Max => GroupItem::Max(key),
    })
}

/// The request of the method `Apl::top_vertices`.
#[derive(Clone, PartialEq, Debug)]
pub struct TopVertices {
    /// Selects the vertices and the columns of the answer. A server looks at all vertices from the cursor on.
    pub scan: ScanValues,
    /// Selects the first vertices.
    pub top: apl::TopVertices,
}

impl Request for TopVertices {
    type Message = proto::TopVerticesRequest;
    type AnswerMessage = proto::ScannedValues;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(proto::TopVerticesRequest {
            scan: Some(self.scan.encode()?),
            order: self.top.order.iter().map(|(key, _)| key.0).collect(),
            descending: self.top.order.iter().map(|(_, descending)| *descending).collect(),
            count: self.top.count,
        })
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        const MESSAGE: &str = "TopVerticesRequest";
        let scan = m.scan.ok_or(Error::Missing { message: MESSAGE, field: "scan" })?;
        let scan = ScanValues::decode(scan)?;
        same(MESSAGE, "descending", m.descending.len(), m.order.len())?;
        let order: Vec<(Token, bool)> = m.order.into_iter().map(Token).zip(m.descending).collect();
        if order.iter().any(|(key, _)| !scan.keys.contains(key)) {
            let reason = "vertices can be ordered only by the keys of the scan".into();
            return Err(Error::Invalid { message: MESSAGE, reason });
        }
        Ok(Self { scan, top: apl::TopVertices { order, count: m.count } })
    }

    fn encode_answer(answer: &(ScannedValues, Option<ScanCursor>)) -> Result<Self::AnswerMessage, Error> {
        ScanValues::encode_answer(answer)
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<(ScannedValues, Option<ScanCursor>), Error> {
        ScanValues::decode_answer(m)
    }

    fn call(
        &self,
        apl: &dyn Apl,
        at: At,
        allowance: &Allowance<'_>,
    ) -> Result<(ScannedValues, Option<ScanCursor>), AplError> {
        let ScanValues { scan, keys, from } = &self.scan;
        let top = apl::TopVertices { count: self.top.count.min(allowance.max_rows), ..self.top.clone() };
        let (mut found, mut next) = (ScannedValues::default(), Some(*from));
        found.begin(keys.len());
        while let Some(from) = next {
            (allowance.check)()?;
            let before = found.vertices.len();
            next = apl.top_vertices(at, scan, keys, &top, from, &mut found)?;
            if before > 0 {
                top.select(keys, &mut found);
            }
        }
        Ok((found, next))
    }

    fn rows(_: &Self::Message) -> Option<usize> {
        None
    }
}

/// The request of the method `Apl::count_ends`.
#[derive(Clone, PartialEq, Debug)]
pub struct CountEnds {
    /// Selects the vertices. A server answers about `max_rows` ends at once.
    pub scan: VertexScan,
    /// Selects the edges.
    pub expand: Expand,
    /// Cursor at which the answer starts.
    pub from: ScanCursor,
}

impl Request for CountEnds {
    type Message = proto::CountEndsRequest;
    type AnswerMessage = proto::EndCounts;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(proto::CountEndsRequest {
            scan: Some(scan_to(&self.scan, self.from)?),
            expand: Some(expand_to(&self.expand, &[], None)),
        })
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        const MESSAGE: &str = "CountEndsRequest";
        let scan = m.scan.ok_or(Error::Missing { message: MESSAGE, field: "scan" })?;
        let expand = m.expand.ok_or(Error::Missing { message: MESSAGE, field: "expand" })?;
        let (scan, from) = scan_from(scan)?;
        Ok(Self { scan, expand: expand_from(expand)?.0, from })
    }

    fn encode_answer((counts, next): &(EndCounts, Option<ScanCursor>)) -> Result<Self::AnswerMessage, Error> {
        let loops = counts.loops.iter().enumerate().filter(|(_, loops)| **loops > 0);
        let (loop_rows, loops) = loops.map(|(row, loops)| (row as u32, *loops)).unzip();
        Ok(proto::EndCounts {
            ends: guis_to(&counts.ends),
            edges: counts.edges.clone(),
            loop_rows,
            loops,
            next: next.map(scan_cursor_to),
        })
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<(EndCounts, Option<ScanCursor>), Error> {
        const MESSAGE: &str = "EndCounts";
        let ends = guis_from(&m.ends, MESSAGE, "ends")?;
        same(MESSAGE, "edges", m.edges.len(), ends.len())?;
        same(MESSAGE, "loops", m.loops.len(), m.loop_rows.len())?;
        let mut loops = vec![0; ends.len()];
        for (row, of_row) in m.loop_rows.into_iter().zip(m.loops) {
            let place = loops.get_mut(row as usize);
            *place.ok_or(Error::Misaligned { message: MESSAGE, field: "loop_rows" })? = of_row;
        }
        Ok((EndCounts::of_columns(ends, m.edges, loops), next_from(m.next)?))
    }

    fn call(
        &self,
        apl: &dyn Apl,
        at: At,
        allowance: &Allowance<'_>,
    ) -> Result<(EndCounts, Option<ScanCursor>), AplError> {
        let most = self.scan.max_rows.min(allowance.max_rows) as usize;
        let (mut counts, mut next) = (EndCounts::default(), Some(self.from));
        while let Some(from) = next.filter(|_| counts.len() < most) {
            (allowance.check)()?;
            next = apl.count_ends(at, &self.scan, &self.expand, from, &mut counts)?;
        }
        Ok((counts, next))
    }

    fn rows(_: &Self::Message) -> Option<usize> {
        None
    }
}
