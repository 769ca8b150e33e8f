//! Tests lists against a simple model at every readable version, hubs, memory, and readers beside a writer.

use super::*;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};

fn link(sid: u64, label: u32) -> Link {
    Link { neighbour: Gui(sid.wrapping_mul(0x9e37_79b9_7f4a_7c15)), sid: Sid(sid), label: Token(label) }
}

/// Returns links with small limits, so that few entries make a hub of many chunks.
fn small() -> Links {
    Links { hub_degree: 12, chunk: 8, ..Links::default() }
}

fn all(links: &Links, list: &List, at: Version, labels: Labels<'_>) -> Vec<Link> {
    let (mut found, guard) = (Vec::new(), pin());
    links.read(list, at, labels, 0, &guard, &mut Each(|run: Run<'_>| found.extend(run.links())));
    found.sort_unstable_by_key(Link::key);
    found
}

/// Returns the result of the fast path, if it applies.
fn glanced<const SIDS: bool>(links: &Links, list: &List, at: Version) -> Option<Vec<Link>> {
    let found = match links.fast_read::<SIDS>(list, at, &pin()) {
        FastRead::Nothing => vec![],
        FastRead::One(link) => vec![link],
        FastRead::Few(few) => {
            let link =
                |n| Link { neighbour: Gui(few.neighbours[n]), sid: Sid(few.sids[n]), label: few.label };
            (0..few.count).map(link).collect()
        }
        FastRead::Run(run) => run.links().collect(),
        FastRead::More => return None,
    };
    Option::Some(found)
}

/// Counts entries, and is full after some number of rows.
struct Some<'f> {
    found: &'f mut Vec<Link>,
    limit: usize,
}

impl Sink for Some<'_> {
    fn take(&mut self, run: Run<'_>) {
        self.found.extend(run.links());
    }

    fn len(&self) -> usize {
        self.found.len()
    }

    fn full(&self) -> bool {
        self.found.len() >= self.limit
    }
}

/// Begin and end of every entry that ever existed.
#[derive(Default)]
struct Model(BTreeMap<(Token, Sid), (Link, Version, Version)>);

impl Model {
    fn at(&self, at: Version, labels: Labels<'_>) -> Vec<Link> {
        let visible = |(link, begin, end): &&(Link, Version, Version)| {
            *begin <= at && at < *end && labels.pass(link.label)
        };
        self.0.values().filter(visible).map(|(link, _, _)| *link).collect()
    }
}

fn check(links: &Links, list: &List, model: &Model, at: Version, random: &mut StdRng) {
    let guard = pin();
    if let Option::Some(found) = glanced::<true>(links, list, at) {
        assert_eq!(found, model.at(at, Labels::All), "at a glance, at {at}");
    }
    let wanted = [Token(random.random_range(0..5)), Token(random.random_range(0..5))];
    for labels in [Labels::All, Labels::These(&wanted[..1]), Labels::These(&wanted)] {
        let expected = model.at(at, labels);
        assert_eq!(all(links, list, at, labels), expected, "at {at} of {labels:?}");
        assert_eq!(links.degree(list, at, labels, &guard), expected.len() as u64);
    }
    if let Option::Some((key, (link, begin, end))) =
        model.0.iter().nth(random.random_range(0..model.0.len().max(1)))
    {
        let hint = random.random_bool(0.5).then_some(key.0);
        let found = links.find(list, key.1, hint, &guard).filter(|found| found.visible(at));
        let there = *begin <= at && at < *end;
        assert_eq!(found.map(|found| found.link), there.then_some(*link));
    }
}

#[test]
fn what_a_load_wrote_is_seen_at_a_glance() {
    let neighbours = |links: Vec<Link>| links.into_iter().map(|link| link.neighbour).collect::<Vec<_>>();
    for (count, apart, oldest) in
        (0..40).flat_map(|count| [(count, 1, 9), (count, 1, 0), (count, 1 << 33, 9), (count, 1 << 33, 0)])
    {
        let (links, list, mut permit) = (Links::default(), List::default(), WritePermit::new());
        // Other lists are stored before and behind this one.
        let others = [List::default(), List::default()];
        let mut new: Vec<Link> = (1..=count).map(|n| link(n * apart, 3)).collect();
        for list in [&others[0], &list, &others[1]] {
            links.push_all(&mut permit, list, &mut new, Version(5), Version(oldest));
        }
        assert_eq!(
            glanced::<true>(&links, &list, Version(5)).as_ref(),
            Option::Some(&new),
            "{count} entries"
        );
        let found = glanced::<false>(&links, &list, Version(5)).map(neighbours);
        assert_eq!(found, Option::Some(neighbours(new.clone())), "{count} entries");
        if oldest == 0 && count > 0 {
            let before = glanced::<true>(&links, &list, Version(4));
            assert!(before.is_none_or(|found| found.is_empty()), "{count} entries before they began");
        }
        links.prefetch(&list, true);
        links.prefetch_lines(&list, 3);
    }
}

fn run(seed: u64, steps: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let (links, list, mut permit) = (small(), List::default(), WritePermit::new());
    let mut model = Model::default();
    let (mut oldest, mut sid) = (Version(0), 0);
    let labels = random.random_range(1..5);
    // The position at which a reader stopped, and the entries that it has seen.
    let mut reading: Option<(Version, u32, Vec<Link>)> = None;
    for version in (1..steps).map(Version) {
        let shrink = (version.0 / 40) % 2 == 1;
        for _ in 0..random.random_range(0..4) {
            let live = model.at(Version(u64::MAX - 1), Labels::All);
            match random.random_range(0..10) {
                0..6 if !live.is_empty() && (shrink || random.random_bool(0.3)) => {
                    let link = live[random.random_range(0..live.len())];
                    let ended = links.end(&mut permit, &list, link.sid, link.label, version, oldest);
                    let (_, begin, end) = model.0.get_mut(&link.key()).unwrap();
                    *end = version;
                    assert_eq!(
                        ended,
                        Option::Some(if *begin == version { Ended::Gone } else { Ended::Kept })
                    );
                    assert_eq!(links.end(&mut permit, &list, link.sid, link.label, version, oldest), None);
                }
                0..8 => {
                    sid += random.random_range(1..4);
                    // Some entries arrive late, and some SIDs are too large for 32 bits and for inline entries.
                    let far = if random.random_bool(0.02) { 1 << 41 } else { 0 };
                    let mut one = link(sid + far, random.random_range(0..labels));
                    if random.random_bool(0.2) && sid > 500 {
                        one.sid.0 = (sid - 500) << 42;
                    }
                    if !model.0.keys().any(|(_, sid)| *sid == one.sid) {
                        links.push(&mut permit, &list, one, version, oldest);
                        model.0.insert(one.key(), (one, version, NEVER));
                    }
                }
                _ => {
                    let mut many: Vec<Link> = (0..random.random_range(1..30))
                        .map(|_| {
                            sid += 1;
                            link(sid, random.random_range(0..labels))
                        })
                        .collect();
                    model.0.extend(many.iter().map(|link| (link.key(), (*link, version, NEVER))));
                    links.push_all(&mut permit, &list, &mut many, version, oldest);
                }
            }
        }
        if let Option::Some((at, after, mut seen)) = reading.take() {
            let guard = pin();
            let limit = seen.len() + 1;
            let mut sink = Some { found: &mut seen, limit };
            match links.read(&list, at, Labels::All, after, &guard, &mut sink) {
                Option::Some(after) => reading = Option::Some((at, after, seen)),
                None => {
                    seen.sort_unstable_by_key(Link::key);
                    assert_eq!(seen, model.at(at, Labels::All), "read in pieces at {at}");
                }
            }
        }
        if random.random_bool(0.3) {
            let newest = reading.as_ref().map_or(version, |(at, _, _)| *at);
            let back = if random.random_bool(0.5) { 0 } else { 10 };
            oldest = oldest.max(Version(newest.0.saturating_sub(back)));
            links.set_compacting(random.random_bool(0.3));
            links.fold(&mut permit, &list, oldest, random.random_bool(0.5));
            links.set_compacting(false);
            model.0.retain(|_, (_, _, end)| *end > oldest);
            links.collect();
        }
        if reading.is_none() {
            let mut seen = Vec::new();
            let at = Version(random.random_range(oldest.0..=version.0));
            let mut sink = Some { found: &mut seen, limit: 1 };
            let stopped = links.read(&list, at, Labels::All, 0, &pin(), &mut sink);
            reading = stopped.map(|after| (at, after, seen));
        }
        // Miri has time only for the oldest version, the newest one and one in between.
        let stride = if cfg!(miri) { 1 + (version.0 - oldest.0) / 2 } else { 1 };
        for at in (oldest.0..=version.0).step_by(stride as usize) {
            check(&links, &list, &model, Version(at), &mut random);
        }
        assert!(!list.is_empty() || model.at(version, Labels::All).is_empty());
    }
    // Nothing is left once everything has ended and was folded.
    let last = Version(steps);
    for link in model.at(Version(steps - 1), Labels::All) {
        links.end(&mut permit, &list, link.sid, link.label, last, oldest);
    }
    links.fold(&mut permit, &list, last, false);
    assert!(list.is_empty());
    assert_eq!(links.arena.live_bytes(), 0);
}

#[test]
fn behaves_like_a_plain_map_at_every_version() {
    let (seeds, steps) = if cfg!(miri) { (1, 30) } else { (16, 200) };
    for seed in 0..seeds {
        eprintln!("seed {seed}");
        run(seed, steps);
    }
}

#[test]
fn one_settled_entry_takes_no_block() {
    let (links, list, mut permit) = (Links::default(), List::default(), WritePermit::new());
    links.push(&mut permit, &list, link(7, 3), Version(5), Version(0));
    assert_eq!(links.live_bytes(), 0);
    assert_eq!(all(&links, &list, Version(4), Labels::All), []);
    assert_eq!(all(&links, &list, Version(5), Labels::All), [link(7, 3)]);
    links.push(&mut permit, &list, link(8, 3), Version(6), Version(5));
    assert_eq!(all(&links, &list, Version(5), Labels::All), [link(7, 3)]);
    assert_eq!(
        links.end(&mut permit, &list, Sid(8), Token(3), Version(7), Version(5)),
        Option::Some(Ended::Kept)
    );
    assert_eq!(all(&links, &list, Version(6), Labels::All).len(), 2);
    links.fold(&mut permit, &list, Version(7), false);
    assert_eq!(links.live_bytes(), 0, "back inline");
    // Another entry cannot take the inline words, which a reader may be looking at.
    links.end(&mut permit, &list, Sid(7), Token(3), Version(8), Version(7));
    links.push(&mut permit, &list, link(9, 3), Version(8), Version(7));
    links.fold(&mut permit, &list, Version(8), false);
    assert_eq!(all(&links, &list, Version(8), Labels::All), [link(9, 3)]);
    assert!(links.live_bytes() > 0);
}

#[test]
fn a_loaded_list_takes_twelve_bytes_an_entry() {
    let (links, list, mut permit) = (Links::default(), List::default(), WritePermit::new());
    let mut many: Vec<Link> = (1..=1000).rev().map(|sid| link(sid, 1)).collect();
    links.push_all(&mut permit, &list, &mut many, Version(1), Version(0));
    assert!(links.live_bytes() <= 1000 * 12 + 24 + 1000 * 12 / 16, "{}", links.live_bytes());
    assert_eq!(all(&links, &list, Version(0), Labels::All), []);
    assert_eq!(all(&links, &list, Version(1), Labels::All).len(), 1000);
}

/// Makes a hub of two labels, with one edge in a thousand of the second.
fn hub_of(edges: u64) {
    let (links, list, mut permit) = (Links::default(), List::default(), WritePermit::new());
    let label = |sid: u64| if sid.is_multiple_of(1000) { 2 } else { 1 };
    for sid in 1..=edges {
        // A new version for each hundred edges, so that base and tail both have entries.
        let version = Version(1 + sid / 100);
        links.push(&mut permit, &list, link(sid, label(sid)), version, Version(version.0 - 1));
        if sid.is_multiple_of(100) {
            links.fold(&mut permit, &list, version, false);
        }
    }
    let last = Version(2 + edges / 100);
    links.fold(&mut permit, &list, last, true);
    links.collect();
    let guard = pin();
    let (before, mut rows) = (hub::CHUNKS_READ.get(), 0);
    let mut rare = Each(|run: Run<'_>| rows += run.neighbours.len() as u64);
    links.read(&list, last, Labels::These(&[Token(2)]), 0, &guard, &mut rare);
    assert_eq!(rows, edges / 1000);
    // The reader visits only the chunks of the label and at most one more at each end, out of thousands.
    let visited = hub::CHUNKS_READ.get() - before;
    assert!(visited <= 3 + rows / (CHUNK as u64 / 4), "{visited} chunks for {rows} entries");
    assert_eq!(links.degree(&list, last, Labels::All, &guard), edges);
    assert!(links.find(&list, Sid(edges / 2), None, &guard).is_some());
    drop(guard);
    let full = links.live_bytes();
    assert!(full < edges as usize * 14, "{full} bytes for {edges} entries");
    // All edges end at one version, and are removed once that version is old.
    for sid in 1..=edges {
        let ended = links.end(&mut permit, &list, Sid(sid), Token(label(sid)), last.next(), last);
        assert_eq!(ended, Option::Some(Ended::Kept));
    }
    let guard = pin();
    assert_eq!(links.degree(&list, last, Labels::All, &guard), edges);
    assert_eq!(links.degree(&list, last.next(), Labels::All, &guard), 0);
    drop(guard);
    links.fold(&mut permit, &list, last.next(), false);
    assert!(list.is_empty());
    assert_eq!(links.arena.live_bytes(), 0);
}

#[test]
#[cfg(not(miri))]
fn a_hub_of_ten_million_edges_grows_is_read_by_label_and_goes() {
    hub_of(10_000_000);
}

#[test]
fn a_hub_counts_chunks_of_its_own_label_only() {
    let (links, list, mut permit) = (small(), List::default(), WritePermit::new());
    for sid in 1..=200 {
        links.push(&mut permit, &list, link(sid, sid as u32 % 50), Version(1), Version(0));
    }
    let guard = pin();
    let ListForm::Hub(number) = list.form() else { panic!("200 entries are no hub") };
    assert!(links.hubs.get(number, &guard).chunks(&guard) >= 25);
    for label in 0..50 {
        assert_eq!(all(&links, &list, Version(1), Labels::These(&[Token(label)])).len(), 4);
    }
}

/// STO-1. Version v adds entry v and ends entry v - LIVE, so the version alone tells a
/// reader which entries it must see.
#[test]
fn readers_see_their_version_while_a_writer_appends_ends_and_settles() {
    const LIVE: u64 = 40;
    let versions: u64 = if cfg!(miri) { 120 } else { 10_000 };
    let (links, list) = (small(), List::default());
    let (published, done) = (AtomicU64::new(0), AtomicBool::new(false));
    // The version at which each reader reads, which limits folding; 0 while the reader chooses one.
    let pins: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(u64::MAX)).collect();
    std::thread::scope(|scope| {
        for pinned in &pins {
            let (links, list, published, done) = (&links, &list, &published, &done);
            scope.spawn(move || {
                let mut reads = 0_u64;
                while !done.load(Ordering::Acquire) || reads == 0 {
                    pinned.store(0, Ordering::SeqCst);
                    let at = published.load(Ordering::SeqCst);
                    pinned.store(at, Ordering::SeqCst);
                    let found = all(links, list, Version(at), Labels::All);
                    let expected: Vec<Link> =
                        (at.saturating_sub(LIVE) + 1..=at).map(|sid| link(sid, 1)).collect();
                    assert_eq!(found, expected, "at {at}");
                    let mut first = Vec::new();
                    let mut sink = Some { found: &mut first, limit: 1 };
                    let mut after = links.read(list, Version(at), Labels::All, 0, &pin(), &mut sink);
                    while let Option::Some(number) = after {
                        let limit = first.len() + 1;
                        let mut sink = Some { found: &mut first, limit };
                        after = links.read(list, Version(at), Labels::All, number, &pin(), &mut sink);
                    }
                    first.sort_unstable_by_key(Link::key);
                    assert_eq!(first, expected, "in pieces at {at}");
                    pinned.store(u64::MAX, Ordering::SeqCst);
                    reads += 1;
                }
            });
        }
        let mut permit = WritePermit::new();
        let mut oldest = Version(0);
        for version in 1..=versions {
            let now = Version(version);
            links.push(&mut permit, &list, link(version, 1), now, oldest);
            if version > LIVE {
                let ended = links.end(&mut permit, &list, Sid(version - LIVE), Token(1), now, oldest);
                assert_eq!(ended, Option::Some(Ended::Kept));
            }
            published.store(version, Ordering::SeqCst);
            let least = pins.iter().map(|pin| pin.load(Ordering::SeqCst)).min().unwrap_or(0).min(version);
            oldest = oldest.max(Version(least));
            links.fold(&mut permit, &list, oldest, version.is_multiple_of(3));
            if version.is_multiple_of(16) {
                links.collect();
            }
        }
        done.store(true, Ordering::Release);
    });
    // After the last reader, the memory of everything that ended is freed.
    links.fold(&mut WritePermit::new(), &list, Version(versions), true);
    assert_eq!(all(&links, &list, Version(versions), Labels::All).len() as u64, LIVE);
    assert!(links.arena.live_bytes() < LIVE as usize * 64, "{}", links.arena.live_bytes());
}

#[test]
fn what_is_built_at_once_is_as_what_was_added_one_by_one() {
    let lengths = if cfg!(miri) { [1, 3, 90] } else { [1, 700, 9_000] };
    for (length, labels) in lengths.into_iter().flat_map(|length| [(length, 1), (length, 5)]) {
        let (links, mut permit) =
            (Links { hub_degree: 80, chunk: 64, ..Links::default() }, WritePermit::new());
        let (built, added) = (List::default(), List::default());
        let mut many: Vec<Link> = (1..=length).map(|sid| link(sid * 3, (sid % labels) as u32)).collect();
        for one in &many {
            links.push(&mut permit, &added, *one, Version(5), Version(4));
        }
        many.sort_unstable_by_key(Link::key);
        let (first, second): (Vec<Link>, Vec<Link>) = many.iter().partition(|link| link.sid.0 % 2 == 0);
        // Two pieces of one version, as in a large load.
        links.build(&mut permit, &built, &first, Version(5), Version(4));
        links.build(&mut permit, &built, &second, Version(5), Version(4));
        for at in [4, 5] {
            let [built, added] = [&built, &added].map(|list| all(&links, list, Version(at), Labels::All));
            assert_eq!(built, added, "{length} entries of {labels} labels at {at}");
            assert_eq!(built.len(), if at == 5 { many.len() } else { 0 });
        }
        let ended = links.end(&mut permit, &built, many[0].sid, many[0].label, Version(6), Version(4));
        assert_eq!(ended, Option::Some(Ended::Kept));
        assert_eq!(all(&links, &built, Version(6), Labels::All).len(), many.len() - 1);
        assert_eq!(all(&links, &built, Version(5), Labels::All).len(), many.len());
    }
}
