//! Commit requests of clients: their mutations, and the keys that they read and wrote, as
//! the executor would name them.

use crate::transaction::{Common, Extra, TransactionPlan};
use tidegraph_types::{
    Cardinality, CommitRequest, Edge, Gui, Key, Mutation, PropertyWrite, Sid, Token, Value,
};

/// Builds the commit request of a transaction that has read all of its keys.
pub(crate) fn request(
    work: &TransactionPlan,
    common: &Common,
    [list, label, edge_label]: [Token; 3],
) -> CommitRequest {
    let gui = |key: usize| common.keys[key].1;
    let (mut read_keys, mut write_keys, mut mutations) = (Vec::new(), Vec::new(), Vec::new());
    for key in &work.reads {
        read_keys.push(Key::existence(gui(*key)));
        if !common.hides_reads {
            read_keys.push(Key::content(gui(*key)));
        }
    }
    for (key, number) in &work.appends {
        let write = PropertyWrite { key: list, cardinality: Cardinality::List, value: Value::Long(*number) };
        write_keys.push(Key::content(gui(*key)));
        if work.seen.get(key).is_none_or(|seen| seen.present) {
            mutations.push(Mutation::SetVertexProperty { gui: gui(*key), write });
        } else {
            write_keys.push(Key::existence(gui(*key)));
            let (id, labels, properties) = (common.keys[*key].0.clone(), vec![label], vec![write]);
            mutations.push(Mutation::CreateVertex { gui: gui(*key), id, labels, properties });
        }
    }
    let touched = |edge: &Edge| {
        let ends = [(edge.source, true), (edge.target, false)];
        let labels = [None, Some(edge.label)];
        let lists = ends
            .into_iter()
            .flat_map(move |(end, out)| labels.into_iter().map(move |label| Key::adjacency(end, out, label)));
        lists.chain([Key::edge(edge.sid)]).collect::<Vec<_>>()
    };
    if let Some(edge) = work.edge {
        write_keys.extend(touched(&edge));
        mutations.push(Mutation::CreateEdge { edge, id: None, properties: vec![] });
    }
    if let (Extra::Transient { one_by_one }, [key]) = (work.extra, &work.reads[..]) {
        let (gui, seen) = (gui(*key), &work.seen[key]);
        write_keys.extend([Key::existence(gui), Key::content(gui)]);
        let lists = [true, false].map(|out| Key::adjacency(gui, out, None));
        if !seen.present {
            let id = common.keys[*key].0.clone();
            mutations.push(Mutation::CreateVertex { gui, id, labels: vec![label], properties: vec![] });
        } else if one_by_one {
            read_keys.extend(lists);
            let ways = [(true, &seen.outgoing), (false, &seen.incoming)];
            for (out, ends) in ways {
                for (sid, other) in ends {
                    let (source, target) = if out { (gui, Gui(*other)) } else { (Gui(*other), gui) };
                    let edge = Edge { sid: Sid(*sid), source, target, label: edge_label };
                    write_keys.extend(touched(&edge));
                    mutations.push(Mutation::DeleteEdge { edge, id: None });
                }
            }
            mutations.push(Mutation::DeleteVertex { gui, edges_left: false });
        } else {
            read_keys.extend(lists);
            write_keys.extend(lists);
            // All edges are known: a transaction that added one in between wrote one of the lists, so it conflicts.
            let ends = seen.outgoing.iter().chain(&seen.incoming);
            write_keys.extend(ends.map(|(sid, _)| Key::edge(Sid(*sid))));
            mutations.push(Mutation::DeleteVertex { gui, edges_left: true });
        }
    }
    if let Extra::DeleteEdge(edge) = work.extra {
        read_keys.push(Key::edge(edge.sid));
        write_keys.extend(touched(&edge));
        mutations.push(Mutation::DeleteEdge { edge, id: None });
    }
    if work.extra == Extra::Reset {
        write_keys.push(Key::GRAPH);
        mutations.push(Mutation::Reset);
    }
    CommitRequest {
        read_version: work.read_at,
        read_keys,
        write_keys,
        mutations,
        request: None,
        first_asked: None,
        by_key: false,
        changes: None,
    }
}
