//! Plans as text: one operator a line, in the order in which rows flow, with subplans indented below their operator.

use crate::op::ScanTest;
use crate::{
    ApplyKind, Arithmetic, Arm, BindKind, Collected, Comparison, CountStep, Digest, DigestItem, Drawn,
    EdgeStep, Expr, Length, Op, Plan, PropertyAssignment, Quantifier, RepeatTest, ScanColumn, ScanFilter,
    Selection, Shortest, Signature, Slot, SortKey,
};
use std::fmt::{self, Display, Formatter, Write};
use tidegraph_types::temporal::Iso;
use tidegraph_types::{Big, Direction, Str, Value};

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (line, _) in self.lines() {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

impl Plan {
    /// Returns the plan as text: a line for each operator, with the operator unless the line is about a part of one.
    #[must_use]
    pub fn lines(&self) -> Vec<(String, Option<&Op>)> {
        let mut lines = Vec::new();
        add_lines(&self.root, 0, &mut lines);
        if !self.columns.is_empty() {
            let columns = list(self.columns.iter().map(|c| format!("{}={}", c.name, c.slot)));
            lines.push((format!("answer {columns}"), None));
        }
        lines
    }
}

impl Display for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        add_lines(self, 0, &mut lines);
        for (line, _) in lines {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

fn join<T: Display>(items: impl IntoIterator<Item = T>, separator: &str) -> String {
    let mut text = String::new();
    for (i, item) in items.into_iter().enumerate() {
        let _ = write!(text, "{}{item}", if i > 0 { separator } else { "" });
    }
    text
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    join(items, ", ")
}

fn bounds(Length { min, max }: Length) -> String {
    format!("*{min}..{}", max.map(|max| max.to_string()).unwrap_or_default())
}

fn arrow(direction: Direction, labels: &[Str], length: Option<Length>) -> String {
    let mut inner = join(labels.iter(), "|");
    if let Some(length) = length {
        inner.push_str(&bounds(length));
    }
    match direction {
        Direction::Out => format!("-[{inner}]->"),
        Direction::In => format!("<-[{inner}]-"),
        Direction::Both => format!("-[{inner}]-"),
    }
}

/// A counted step with those after it: `-[X]-> (n:L, -[Y]->)`.
fn count_step(step: &CountStep) -> String {
    let mut text = arrow(step.direction, &step.labels, None);
    if step.loops_once && step.direction == Direction::Both {
        text.push_str(" loops once");
    }
    let condition = step.condition.iter().map(|(_, condition)| condition.to_string());
    let inner: Vec<String> = condition.chain(step.then.iter().map(count_step)).collect();
    if !inner.is_empty() {
        let _ = write!(text, " ({})", inner.join(", "));
    }
    if step.optional {
        text.push_str(" or once");
    }
    text
}

fn assignments(properties: &[PropertyAssignment]) -> String {
    list(properties.iter().map(|p| {
        let key = match &p.key {
            Expr::Literal(Value::String(key)) => key.to_string(),
            other => format!("({other})"),
        };
        let cardinality = format!("{:?}", p.cardinality).to_lowercase();
        if p.meta.is_empty() {
            return format!("{key}: {} {cardinality}", p.value);
        }
        let meta = list(p.meta.iter().map(|(key, value)| format!("{key}: {value}")));
        format!("{key}: {} {cardinality} with {{{meta}}}", p.value)
    }))
}

fn sort_keys(keys: &[SortKey]) -> String {
    list(keys.iter().map(|k| format!("{}{}", k.expr, if k.descending { " desc" } else { "" })))
}

fn slots(slots: &[Slot]) -> String {
    list(slots.iter())
}

fn add_lines<'p>(op: &'p Op, depth: usize, lines: &mut Vec<(String, Option<&'p Op>)>) {
    if let Some(input) = op.input() {
        add_lines(input, depth, lines);
    }
    let pad = "  ".repeat(depth);
    if !(matches!(op, Op::Argument) && depth == 0) {
        lines.push((format!("{pad}{}", describe(op)), Some(op)));
    }
    let mut sub = |name: &str, plan: &'p Op| {
        lines.push((format!("{pad}  {name}:"), None));
        add_lines(plan, depth + 2, lines);
    };
    match op {
        Op::Apply { plan, .. } | Op::Bind { plan, .. } => add_lines(plan, depth + 1, lines),
        Op::QuantifiedPath { body, .. } => add_lines(body, depth + 1, lines),
        Op::PathSearch { parts, .. } => {
            for part in parts {
                let times = part.length.map(bounds).unwrap_or_default();
                sub(&format!("part {} to {}{times} until {}", part.first, part.last, part.end), &part.body);
            }
        }
        Op::Intersect { steps, .. } => sub("or step by step", steps),
        Op::DigestScan { rows, .. } => sub("or vertex by vertex", rows),
        Op::Union { branches, .. } | Op::Coalesce { branches, .. } => {
            for branch in branches {
                sub("branch", branch);
            }
        }
        Op::Choose { branches, otherwise, .. } => {
            for branch in branches {
                sub(&format!("when {}", branch.condition), &branch.plan);
            }
            if let Some(plan) = otherwise {
                sub("otherwise", plan);
            }
        }
        Op::Repeat { body, until, emit, .. } => {
            sub("body", body);
            for (name, test) in [("until", until), ("emit", emit)] {
                if let Some(RepeatTest { before, plan }) = test {
                    sub(&format!("{name} {}", if *before { "before" } else { "after" }), plan);
                }
            }
        }
        Op::Merge { matching, create, .. } => {
            sub("matching", matching);
            sub("create", create);
        }
        _ => {}
    }
}

fn edge_step(step: &EdgeStep) -> String {
    let once = if step.loops_once && step.direction == Direction::Both { " loops once" } else { "" };
    format!("{}{once}", arrow(step.direction, &step.labels, None))
}

fn describe_digest(filter: &ScanFilter, digest: &Digest) -> String {
    match digest {
        Digest::Groups { keys, items, steps, distinct } => {
            let keys = list(keys.iter().map(|(slot, key)| format!("{slot} = {key}")));
            let items = list(items.iter().map(|(slot, item)| match item {
                DigestItem::Rows => format!("{slot} = rows"),
                DigestItem::Values(key) => format!("{slot} = values of {key}"),
                DigestItem::Sum(key) => format!("{slot} = sum of {key}"),
                DigestItem::Min(key) => format!("{slot} = least {key}"),
                DigestItem::Max(key) => format!("{slot} = greatest {key}"),
            }));
            let mut text = format!("group vertices in storage{filter}");
            if !steps.is_empty() {
                let distinct = if *distinct { " (distinct edges)" } else { "" };
                let _ = write!(text, " with {}{distinct}", list(steps.iter().map(edge_step)));
            }
            let _ = write!(text, " by [{keys}] to [{items}]");
            text
        }
        Digest::Ends { step, to, edges, loops } => {
            let step = edge_step(step);
            format!("count ends in storage{filter} {step} {to} to [{edges} = edges, {loops} = loops]")
        }
    }
}

fn describe(op: &Op) -> String {
    match op {
        Op::Argument => "argument".into(),
        Op::ScanVertices { out, filter, columns, .. } => {
            let mut text = format!("scan vertices {out}{filter}");
            for (index, ScanColumn { key, slot, each }) in columns.iter().enumerate() {
                let (with, each) = (if index == 0 { " with" } else { "," }, if *each { "each " } else { "" });
                let _ = write!(text, "{with} {slot} = {each}{out}.{key}");
            }
            text
        }
        Op::DigestScan { filter, digest, .. } => describe_digest(filter, digest),
        Op::ScanEdges { out, labels, .. } => format!("scan edges {out} [{}]", list(labels.iter())),
        Op::LookupVertices { ids, out, .. } => format!("look up vertices {out} of {ids}"),
        Op::LookupEdges { ids, out, .. } => format!("look up edges {out} of {ids}"),
        Op::Expand { from, direction, labels, edge, to, into, loops_once, keep, .. } => {
            let mut text = format!("expand {from} {}", arrow(*direction, labels, None));
            if let Some(to) = to {
                let _ = write!(text, " {}{to}", if *into { "into " } else { "" });
            }
            if let Some(edge) = edge {
                let _ = write!(text, " edge {edge}");
            }
            if *loops_once && *direction == Direction::Both {
                text.push_str(" loops once");
            }
            if let Some(keep) = keep {
                let _ = write!(text, " keep [{}]", slots(keep));
            }
            text
        }
        Op::CountEdges { from, step, except, except_ends, out, .. } => {
            let mut text = format!("count edges {out} of {from} {}", count_step(step));
            if !except.is_empty() {
                let _ = write!(text, " without [{}]", slots(except));
            }
            if !except_ends.is_empty() {
                let _ = write!(text, " not to [{}]", slots(except_ends));
            }
            text
        }
        Op::Intersect { arms, to, count, keep, .. } => {
            let mut text = match count {
                Some(count) => format!("count vertices {} that meet", count.out),
                None => format!("intersect {to} of"),
            };
            for (index, Arm { from, direction, labels, edge, loops_once }) in arms.iter().enumerate() {
                let and = if index == 0 { "" } else { "," };
                let _ = write!(text, "{and} {from} {}", arrow(*direction, labels, None));
                if let (Some(edge), None) = (edge, count) {
                    let _ = write!(text, " edge {edge}");
                }
                if *loops_once && *direction == Direction::Both {
                    text.push_str(" loops once");
                }
                let except = count.as_ref().and_then(|count| count.except.get(index));
                if let Some(except) = except.filter(|except| !except.is_empty()) {
                    let _ = write!(text, " without [{}]", slots(except));
                }
            }
            for (a, b) in count.iter().flat_map(|count| &count.differ) {
                let _ = write!(text, " ({a} and {b} differ)");
            }
            if let Some(keep) = keep {
                let _ = write!(text, " keep [{}]", slots(keep));
            }
            text
        }
        Op::VarExpand {
            from,
            direction,
            labels,
            length,
            edges,
            to,
            into,
            edge_filter,
            exclude,
            ends_only,
            ..
        } => {
            let arrow = arrow(*direction, labels, Some(*length));
            let walk = if *ends_only { "reach" } else { "walk" };
            let mut text = format!("{walk} {from} {arrow} {}{to}", if *into { "into " } else { "" });
            if let Some(edges) = edges {
                let _ = write!(text, " edges {edges}");
            }
            if let Some((slot, expr)) = edge_filter {
                let _ = write!(text, " where each {slot}: {expr}");
            }
            if !exclude.is_empty() {
                let _ = write!(text, " without [{}]", slots(exclude));
            }
            text
        }
        Op::QuantifiedPath {
            from,
            to,
            into,
            first,
            last,
            length,
            reversed,
            edges,
            groups,
            exclude,
            repeats: may_repeat,
            selection,
            ..
        } => {
            let into = if *into { "into " } else { "" };
            let repeats = bounds(*length);
            let mut text = format!("repeat path {from} ({first} to {last}){repeats} {into}{to}");
            if *reversed {
                text.push_str(" from right to left");
            }
            if let Some(edges) = edges {
                let _ = write!(text, " edges {edges}");
            }
            if !groups.is_empty() {
                let lists = list(groups.iter().map(|(slot, list)| format!("{list} = {slot}")));
                let _ = write!(text, " lists [{lists}]");
            }
            if !exclude.is_empty() {
                let _ = write!(text, " without [{}]", slots(exclude));
            }
            if *may_repeat {
                text.push_str(" with edges again");
            }
            describe_selection(&mut text, selection.as_ref());
            text
        }
        Op::ShortestPath { from, to, direction, labels, length, which, edges, edge_filter, .. } => {
            let which = if *which == Shortest::All { "all shortest" } else { "shortest" };
            let mut text =
                format!("{which} {from} {} {to} edges {edges}", arrow(*direction, labels, Some(*length)));
            if let Some((slot, expr)) = edge_filter {
                let _ = write!(text, " where each {slot}: {expr}");
            }
            text
        }
        Op::NearestPath { from, to, at, edge, distance, most, edges, .. } => {
            let most = most.map(|most| format!(" at most {most}")).unwrap_or_default();
            format!("nearest {from} to {to} edges {edges} of {edge} at {at} by {distance}{most}")
        }
        Op::Analyze { algorithm, key, weights, at, edge, .. } => {
            let weights = weights.map(|slot| format!(" from rows at {slot}")).unwrap_or_default();
            format!("analyze {key} = {algorithm:?} of {edge} at {at}{weights}")
        }
        Op::Match { pattern, .. } => describe_pattern(pattern),
        Op::Filter { predicate, .. } => format!("filter {predicate}"),
        Op::Let { bindings, .. } => {
            format!("let {}", list(bindings.iter().map(|(s, e)| format!("{s} = {e}"))))
        }
        Op::Keep { slots: kept, .. } => format!("keep [{}]", slots(kept)),
        Op::Unwind { list, out, .. } => format!("unwind {out} of {list}"),
        Op::CallProcedure { procedure, args, yields, .. } => {
            let Signature { name, columns, .. } = procedure.signature();
            let column = |at: &usize| columns.get(*at).map_or("", |column| &*column.name);
            let yields = list(yields.iter().map(|(at, slot)| format!("{slot} = {}", column(at))));
            format!("call {name}({}) to [{yields}]", list(args.iter()))
        }
        Op::LoadCsv { url, headers, terminator, out, number, file, .. } => {
            let headers = if *headers { " with headers" } else { "" };
            let mut text = format!("load csv {out} of {url}{headers} terminator {terminator:?}");
            for (what, slot) in [("number", number), ("file", file)] {
                if let Some(slot) = slot {
                    let _ = write!(text, " {what} {slot}");
                }
            }
            text
        }
        Op::ReadGraph { url, format, .. } => {
            let format = format.map(|format| format!(" as {format}")).unwrap_or_default();
            format!("create what is in the file {url}{format}")
        }
        Op::Aggregate { keys, items, .. } => {
            let keys = list(keys.iter().map(|(s, e)| format!("{s} = {e}")));
            let items = list(items.iter().map(|i| {
                let distinct = if i.distinct { "distinct " } else { "" };
                let empty = if i.empty_is_unbound { " or nothing" } else { "" };
                let (args, weight) = match i.args.split_last() {
                    Some((weight, args)) if i.weighted => (args, format!(" times {weight}")),
                    _ => (&i.args[..], String::new()),
                };
                format!("{} = {:?}({distinct}{}){weight}{empty}", i.out, i.kind, list(args.iter()))
            }));
            let counted = if op.counts_in_storage() { " counted in storage" } else { "" };
            format!("aggregate by [{keys}] to [{items}]{counted}")
        }
        Op::PathSearch { from, to, into, parts, reversed, repeats, count, groups, .. } => {
            let into = if *into { "into " } else { "" };
            let unit = if *groups { "lengths" } else { "walks" };
            let mut text = format!("search the {count} shortest {unit} from {from} {into}{to}");
            if *reversed {
                text.push_str(" from right to left");
            }
            if *repeats {
                text.push_str(" with repeated edges");
            }
            for (end, check) in parts.iter().filter_map(|part| Some((part.end, part.check.as_ref()?))) {
                let _ = write!(text, " where {end}: {check}");
            }
            text
        }
        Op::ChoosePaths { by, length, count, groups, .. } => {
            let unit = if *groups { "lengths" } else { "rows" };
            format!("choose the {count} smallest {unit} of {length} for each [{}]", list(by.iter()))
        }
        Op::Distinct { by, .. } => format!("distinct [{}]", list(by.iter())),
        Op::Sort { keys, .. } => format!("sort [{}]", sort_keys(keys)),
        Op::Top { keys, count, .. } => {
            let place = if op.sampled_scan().is_some() { " in storage" } else { "" };
            format!("first {count} by [{}]{place}", sort_keys(keys))
        }
        Op::Slice { skip, limit, .. } => {
            let mut text = "slice".to_string();
            if let Some(top) = op.top_edges() {
                let _ = write!(text, " of the first edges {} by {} in storage", top.edge, top.key);
            }
            if let Some(skip) = skip {
                let _ = write!(text, " skip {skip}");
            }
            if let Some(limit) = limit {
                let _ = write!(text, " limit {limit}");
            }
            text
        }
        Op::Tail { count, .. } => format!("tail {count}"),
        Op::Draw { drawn: Drawn::Shuffled, place, .. } => format!("shuffle with the numbers of {place}"),
        Op::Draw { drawn: Drawn::Sample { count, weight }, place, .. } => {
            format!("sample {count} by {weight} with the numbers of {place}")
        }
        Op::Eager { .. } => "eager".into(),
        Op::TimeLimit { millis, .. } => format!("for {millis} ms"),
        Op::Each { by, .. } if by.is_empty() => "each".into(),
        Op::Each { by, .. } => format!("each [{}]", slots(by)),
        Op::Collect { register, what, eager, .. } => {
            let what = match what {
                Collected::Start(value) => format!("start {value}"),
                Collected::Item(value) => format!("item {value}"),
                Collected::Joined(operator, value) => format!("{operator:?} {value}"),
                Collected::Replace(value) => format!("list of {value}"),
                Collected::Count(key) => format!("count {key}"),
                Collected::Group { key, value } => format!("group {key}: {value}"),
            };
            format!("collect {register} {what}{}", if *eager { " of all rows" } else { "" })
        }
        Op::Bulk { by, weight, over_rounds, .. } => {
            let weight = weight.map(|weight| format!(" with weight {weight}")).unwrap_or_default();
            let rounds = if *over_rounds { " over all rounds" } else { "" };
            format!("bulk [{}]{weight}{rounds}", slots(by))
        }
        Op::Apply { kind, .. } => match kind {
            ApplyKind::Cross => "apply".into(),
            ApplyKind::Optional(nulls) => format!("apply optional [{}]", slots(nulls)),
            ApplyKind::Semi => "apply semi".into(),
            ApplyKind::Anti => "apply anti".into(),
            ApplyKind::Discard => "apply discard".into(),
        },
        Op::Bind { out, kind, .. } => match kind {
            BindKind::Exists => format!("bind {out} = exists"),
            BindKind::First(slot) => format!("bind {out} = first {slot}"),
            BindKind::Collect(slot) => format!("bind {out} = collect {slot}"),
            BindKind::Count => format!("bind {out} = count"),
        },
        Op::Union { .. } => "union".into(),
        Op::Coalesce { .. } => "coalesce".into(),
        Op::Choose { .. } => "choose".into(),
        Op::Repeat { times, times_before, loops, .. } => match times {
            Some(times) => {
                format!("repeat {loops} times {times}{}", if *times_before { " before" } else { "" })
            }
            None => format!("repeat {loops}"),
        },
        Op::CreateVertex { out, id, labels, properties, properties_from, .. } => {
            let mut text =
                format!("create vertex {out} [{}] {{{}}}", list(labels.iter()), assignments(properties));
            describe_creation(&mut text, id.as_ref(), properties_from.as_ref());
            text
        }
        Op::CreateEdge { out, id, label, from, to, properties, properties_from, .. } => {
            let mut text =
                format!("create edge {out} {from} -[{label}]-> {to} {{{}}}", assignments(properties));
            describe_creation(&mut text, id.as_ref(), properties_from.as_ref());
            text
        }
        Op::SetProperties { element, properties, .. } => {
            format!("set {element} {{{}}}", assignments(properties))
        }
        Op::SetPropertyMap { element, map, replace, .. } => {
            format!("set {element} {} {map}", if *replace { "=" } else { "+=" })
        }
        Op::SetLabels { element, add, remove, .. } => {
            format!("set labels {element} add [{}] remove [{}]", list(add.iter()), list(remove.iter()))
        }
        Op::Delete { targets, detach, .. } => {
            format!("{}delete {}", if *detach { "detach " } else { "" }, list(targets.iter()))
        }
        Op::Merge { .. } => "merge".into(),
    }
}

fn describe_selection(text: &mut String, selection: Option<&Selection>) {
    let Some(Selection { count, groups, accept, .. }) = selection else { return };
    let _ = write!(text, " shortest {count}{}", if *groups { " groups" } else { "" });
    if let Some(accept) = accept {
        let _ = write!(text, " of those with {accept}");
    }
}

fn describe_creation(text: &mut String, id: Option<&Expr>, properties_from: Option<&Expr>) {
    if let Some(id) = id {
        let _ = write!(text, " id {id}");
    }
    if let Some(map) = properties_from {
        let _ = write!(text, " and all of {map}");
    }
}

fn describe_pattern(pattern: &crate::MatchPattern) -> String {
    let properties = |p: &[(Str, Expr)]| {
        if p.is_empty() {
            String::new()
        } else {
            format!(" {{{}}}", list(p.iter().map(|(k, e)| format!("{k}: {e}"))))
        }
    };
    let nodes = list(pattern.nodes.iter().map(|n| {
        let labels: String = n.labels.iter().map(|l| format!(":{l}")).collect();
        format!("({}{}{labels}{})", if n.bound { "bound " } else { "" }, n.slot, properties(&n.properties))
    }));
    let edges = list(pattern.edges.iter().map(|e| {
        let (left, right) = (pattern.nodes[e.left].slot, pattern.nodes[e.right].slot);
        if let (Some(body), Some(length)) = (&e.body, e.length) {
            let repeated = body.plan.to_string();
            let lists = list(body.groups.iter().map(|(slot, list)| format!("{list} = {slot}")));
            let repeated = join(repeated.lines().map(str::trim), "; ");
            let repeats = bounds(length);
            let mut text = format!("{left} ({repeated}){repeats} {right} as {} lists [{lists}]", e.slot);
            describe_selection(&mut text, body.selection.as_ref());
            return text;
        }
        let shortest = match e.shortest {
            None => "",
            Some(Shortest::One) => "shortest ",
            Some(Shortest::All) => "all shortest ",
        };
        format!(
            "{shortest}{left} {} {right} as {}{}{}",
            arrow(e.direction, &e.labels, e.length),
            if e.bound { "bound " } else { "" },
            e.slot,
            properties(&e.properties)
        )
    }));
    let mut text = format!("match nodes [{nodes}] edges [{edges}]");
    for path in &pattern.paths {
        let steps =
            list(path.edges.iter().map(|(e, forward)| format!("{}{e}", if *forward { "" } else { "-" })));
        let _ = write!(text, " path {} = {} [{steps}]", path.slot, path.start);
    }
    if let Some(predicate) = &pattern.predicate {
        let _ = write!(text, " where {predicate}");
    }
    text
}

impl Display for ScanFilter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for group in &self.labels {
            write!(f, " :{}", join(group.iter(), "|"))?;
        }
        for (key, test) in self.tests() {
            match test {
                ScanTest::Exists => write!(f, " {key} exists")?,
                ScanTest::Equals(e) => write!(f, " {key} = {e}")?,
                ScanTest::Within(e) => write!(f, " {key} in {e}")?,
                ScanTest::StartsWith(e) => write!(f, " {key} starts with {e}")?,
                ScanTest::Range { low, high } => {
                    if let Some((e, inside)) = low {
                        write!(f, " {key} {} {e}", if *inside { ">=" } else { ">" })?;
                    }
                    if let Some((e, inside)) = high {
                        write!(f, " {key} {} {e}", if *inside { "<=" } else { "<" })?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Literal(value) => write_value(value, f),
            Expr::Parameter(name) => write!(f, "@{name}"),
            Expr::Slot(slot) => write!(f, "{slot}"),
            Expr::Register(register) => write!(f, "{register}"),
            Expr::Property(base, key) => write!(f, "{base}.{key}"),
            Expr::Index(base, index) => write!(f, "{base}[{index}]"),
            Expr::Slice(base, from, to) => {
                let end = |e: &Option<Box<Expr>>| e.as_ref().map(ToString::to_string).unwrap_or_default();
                write!(f, "{base}[{}..{}]", end(from), end(to))
            }
            Expr::And(all) => write!(f, "({})", join(all.iter(), " and ")),
            Expr::Or(all) => write!(f, "({})", join(all.iter(), " or ")),
            Expr::Xor(a, b) => write!(f, "({a} xor {b})"),
            Expr::Not(e) => write!(f, "not {e}"),
            Expr::IsNull(e) => write!(f, "{e} is null"),
            Expr::IsType(e, test) => write!(f, "{e} is :: {test}"),
            Expr::IsBound(slot) => write!(f, "{slot} is bound"),
            Expr::Compare(c, a, b) => {
                let sign = match c {
                    Comparison::Equal => "=",
                    Comparison::NotEqual => "<>",
                    Comparison::Less => "<",
                    Comparison::LessOrEqual => "<=",
                    Comparison::Greater => ">",
                    Comparison::GreaterOrEqual => ">=",
                };
                write!(f, "{a} {sign} {b}")
            }
            Expr::In(a, b) => write!(f, "{a} in {b}"),
            Expr::Unused(edge, others) => match &others[..] {
                [other] => write!(f, "not {edge} = {other}"),
                others => write!(f, "{edge} not in [{}]", list(others.iter())),
            },
            Expr::Arithmetic(op, a, b) => {
                let sign = match op {
                    Arithmetic::Add => "+",
                    Arithmetic::Subtract => "-",
                    Arithmetic::Multiply => "*",
                    Arithmetic::Divide => "/",
                    Arithmetic::Modulo => "%",
                    Arithmetic::Power => "^",
                };
                write!(f, "({a} {sign} {b})")
            }
            Expr::Negate(e) => write!(f, "-{e}"),
            Expr::HasLabels(e, labels) => {
                write!(f, "{e}{}", labels.iter().map(|l| format!(":{l}")).collect::<String>())
            }
            Expr::HasAnyLabel(e, labels) => write!(f, "{e}:{}", join(labels.iter(), "|")),
            Expr::List(items) => write!(f, "[{}]", list(items.iter())),
            Expr::Map(entries) => write!(f, "{{{}}}", list(entries.iter().map(|(k, e)| format!("{k}: {e}")))),
            Expr::Case { branches, otherwise } => {
                f.write_str("case")?;
                for (condition, result) in branches {
                    write!(f, " when {condition} then {result}")?;
                }
                write!(f, " else {otherwise} end")
            }
            Expr::Comprehension { variable, list, filter, map } => {
                write!(f, "[{variable} in {list}")?;
                if let Some(filter) = filter {
                    write!(f, " where {filter}")?;
                }
                if let Some(map) = map {
                    write!(f, " | {map}")?;
                }
                f.write_str("]")
            }
            Expr::Quantified { quantifier, variable, list, predicate } => {
                let name = match quantifier {
                    Quantifier::All => "all",
                    Quantifier::Any => "any",
                    Quantifier::None => "none",
                    Quantifier::Single => "single",
                };
                write!(f, "{name}({variable} in {list} where {predicate})")
            }
            Expr::Reduce { accumulator, start, variable, list, step } => {
                write!(f, "reduce({accumulator} = {start}, {variable} in {list} | {step})")
            }
            Expr::Call(function, args) => write!(f, "{function:?}({})", list(args.iter())),
        }
    }
}

fn write_value(value: &Value, f: &mut Formatter<'_>) -> fmt::Result {
    match value {
        Value::Null => f.write_str("null"),
        Value::Unbound => f.write_str("unbound"),
        Value::Bool(v) => write!(f, "{v}"),
        Value::Byte(v) => write!(f, "{v}b"),
        Value::Short(v) => write!(f, "{v}s"),
        Value::Int(v) => write!(f, "{v}i"),
        Value::Long(v) => write!(f, "{v}"),
        Value::Float(v) => write!(f, "{v:?}f"),
        Value::Double(v) => write!(f, "{v:?}"),
        Value::String(v) => write!(f, "'{}'", v.escape_debug()),
        Value::DateTime(v) => write!(f, "datetime('{}')", Iso(*v)),
        Value::Temporal(v) => write!(f, "{}('{v}')", v.type_name().replace(' ', "")),
        Value::Point(v) => write!(f, "{v}"),
        Value::Uuid(v) => write!(f, "uuid('{v}')"),
        Value::Big(v) => write!(f, "{v}{}", if matches!(**v, Big::Integer(_)) { 'n' } else { 'm' }),
        other => match other.as_slice() {
            Some(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write_value(item, f)?;
                }
                f.write_str("]")
            }
            None => write!(f, "{other:?}"),
        },
    }
}
