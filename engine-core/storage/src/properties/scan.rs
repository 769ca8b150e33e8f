//! Scans page by page: labels by set, predicates column by column into a bit for each row.
//!
//! A page without versions is read at full speed: kernels run over whole columns, one check finds no undo records,
//! and the owners of the remaining bits are the answer. Rows with records are read one by one. A vertex that moved is
//! in two pages; each version sees it in exactly one of them (STO-1).

use super::bytes::Texts;
use super::page::{Page, ROWS};
use super::page_table::{PageTable, Peek};
use super::predicate::Kernel;
use super::read::{RowOwner, RowRequest, read_in};
use super::sets::{RowKind, Set};
use crossbeam_epoch::Guard;
use std::sync::atomic::{Ordering, fence};
use tidegraph_apl::{Projection, PropertyPredicate, Reservoir};
use tidegraph_types::{Gui, Token, Version};

/// How the rows of one set are tested.
enum Plan {
    /// No row passes.
    Skip,
    /// Rows that pass all kernels, each on a column; with `look`, each of them is then read.
    Run { kernels: Vec<(u16, Kernel)>, look: bool },
}

/// A scan over the vertices of a partition.
pub(crate) struct Scan<'r> {
    groups: &'r [Vec<Token>],
    without: &'r [Token],
    predicates: &'r [PropertyPredicate],
    keys: Projection,
    /// Keys whose texts are read: those of the predicates, and those read of rows that pass.
    texts: Vec<Token>,
    /// Plans by set number, made when a set is first met.
    plans: Vec<Option<Plan>>,
}

/// A bit for each row of a page.
pub(crate) type Bits = [u64; ROWS / 64];

/// Receives the vertices that pass.
pub(crate) trait VertexSink {
    /// Takes the rows of a page whose bits are set. Returns the row to continue with, if it became full before the
    /// end.
    fn rows(&mut self, bits: &Bits, owner: impl Fn(usize) -> Gui) -> Option<usize>;
    /// Takes one vertex.
    fn one(&mut self, gui: Gui);
    /// Returns whether it takes no more now.
    fn full(&self) -> bool;
}

/// Calls `each` with the rows whose bits are set, in order, until it returns false; returns that row.
fn each_row(bits: &Bits, mut each: impl FnMut(usize) -> bool) -> Option<usize> {
    for (index, &word) in bits.iter().enumerate() {
        let mut word = word;
        while word != 0 {
            let row = index * 64 + word.trailing_zeros() as usize;
            if !each(row) {
                return Some(row);
            }
            word &= word - 1;
        }
    }
    None
}

fn number_of_rows(bits: &Bits) -> u64 {
    bits.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Lists vertices up to a limit.
pub(crate) struct Listed<'o> {
    pub out: &'o mut Vec<Gui>,
    pub limit: usize,
}

impl VertexSink for Listed<'_> {
    fn rows(&mut self, bits: &Bits, owner: impl Fn(usize) -> Gui) -> Option<usize> {
        each_row(bits, |row| {
            let room = self.out.len() < self.limit;
            if room {
                self.out.push(owner(row));
            }
            room
        })
    }

    fn one(&mut self, gui: Gui) {
        self.out.push(gui);
    }

    fn full(&self) -> bool {
        self.out.len() >= self.limit
    }
}

/// Counts vertices.
pub(crate) struct Counted(pub u64);

impl VertexSink for Counted {
    fn rows(&mut self, bits: &Bits, _: impl Fn(usize) -> Gui) -> Option<usize> {
        self.0 += number_of_rows(bits);
        None
    }

    fn one(&mut self, _: Gui) {
        self.0 += 1;
    }

    fn full(&self) -> bool {
        false
    }
}

impl VertexSink for Reservoir<Gui> {
    fn rows(&mut self, bits: &Bits, owner: impl Fn(usize) -> Gui) -> Option<usize> {
        // The requested numbers increase, so the search continues in the word of the last one.
        let (mut index, mut before) = (0, 0);
        self.offer_run(number_of_rows(bits), |number| {
            while number >= before + u64::from(bits[index].count_ones()) {
                before += u64::from(bits[index].count_ones());
                index += 1;
            }
            let mut word = bits[index];
            for _ in before..number {
                word &= word - 1;
            }
            Some(owner(index * 64 + word.trailing_zeros() as usize))
        });
        None
    }

    fn one(&mut self, gui: Gui) {
        self.offer(|| gui);
    }

    fn full(&self) -> bool {
        false
    }
}

impl<'r> Scan<'r> {
    /// Makes a scan; vertices with a label in `without` do not pass.
    pub fn new(groups: &'r [Vec<Token>], without: &'r [Token], predicates: &'r [PropertyPredicate]) -> Self {
        let keys = Projection::Keys(predicates.iter().map(|predicate| predicate.key).collect());
        let texts = predicates.iter().map(|predicate| predicate.key).collect();
        Self { groups, without, predicates, keys, texts, plans: Vec::new() }
    }

    /// Adds keys whose values will be read of the rows that pass.
    pub fn reads(mut self, keys: &[Token]) -> Self {
        self.texts.extend(keys);
        self
    }

    fn plan(&mut self, set: &Set) -> &Plan {
        let number = set.number as usize;
        if self.plans.len() <= number {
            self.plans.resize_with(number + 1, || None);
        }
        let (groups, without, predicates) = (self.groups, self.without, self.predicates);
        self.plans[number].get_or_insert_with(|| Self::make(groups, without, predicates, set))
    }

    fn make(groups: &[Vec<Token>], without: &[Token], predicates: &[PropertyPredicate], set: &Set) -> Plan {
        let has_any = |labels: &[Token]| labels.iter().any(|label| set.labels.contains(label));
        let labelled = groups.iter().all(|group| has_any(group)) && !has_any(without);
        if set.kind != RowKind::Vertex || !labelled {
            return Plan::Skip;
        }
        let (mut kernels, mut look) = (Vec::new(), false);
        for predicate in predicates {
            let Some(at) = set.find(predicate.key) else {
                if !set.irregular {
                    return Plan::Skip;
                }
                look = true;
                continue;
            };
            let kernel = Kernel::of(&predicate.test, set.columns[usize::from(at)].shape.column);
            look |= kernel.looks();
            match kernel {
                Kernel::Never => return Plan::Skip,
                Kernel::Always | Kernel::Look => {}
                kernel => kernels.push((at, kernel)),
            }
        }
        Plan::Run { kernels, look }
    }

    /// Passes the vertices of a page from a row on to `found`, as a version sees them. Returns the row to continue
    /// with if `found` is full.
    pub fn page(
        &mut self,
        table: &PageTable,
        number: u32,
        first: usize,
        at: Version,
        guard: &Guard,
        found: &mut impl VertexSink,
    ) -> Option<usize> {
        let (peek, bits) = self.bits(table, number, first, at, guard)?;
        let page = peek.page();
        let owners = page.owners();
        found.rows(&bits, |row| Gui(owners[row].load(Ordering::Relaxed)))
    }

    /// Returns the rows of a page, from one on, that pass at a version.
    pub(super) fn bits<'g>(
        &mut self,
        table: &PageTable,
        number: u32,
        first: usize,
        at: Version,
        guard: &'g Guard,
    ) -> Option<(Peek<'g>, Bits)> {
        if self.skips(table, number) {
            return None;
        }
        let peek = table.peek(number, Texts::Of(&self.texts), guard)?;
        let page = peek.page();
        let keys = std::mem::take(&mut self.keys);
        let predicates = self.predicates;
        let bits = match self.plan(page.set()) {
            Plan::Skip => None,
            Plan::Run { kernels, look } => {
                let scanned = Scanned { table, number, page, at, keys: &keys, predicates };
                Some(scanned.bits(kernels, *look, first))
            }
        };
        self.keys = keys;
        bits.map(|bits| (peek, bits))
    }

    /// Returns whether a page is known to have no row that passes. If its number was reused for another set
    /// meanwhile, no readable version has a row there.
    fn skips(&self, table: &PageTable, number: u32) -> bool {
        number >= table.end()
            || matches!(self.plans.get(table.set_of(number) as usize), Some(Some(Plan::Skip)))
    }

    /// Prefetches for the scan of a page: the header two pages ahead; and, when that is there, the tested columns of
    /// the next page. The processor itself prefetches only to the next 4 KiB of one column.
    pub fn prefetch(&mut self, table: &PageTable, number: u32, guard: &Guard) {
        if !self.skips(table, number + 1) {
            match table.resident(number + 1, guard) {
                Some(page) => crate::hints::prefetch_line(page.header()),
                None => table.read_ahead(number + 1),
            }
        }
        if self.skips(table, number) {
            return;
        }
        let Some(page) = table.resident(number, guard) else { return };
        if let Some(Some(Plan::Run { kernels, .. })) = self.plans.get(page.set().number as usize) {
            page.prefetch_present();
            kernels.iter().for_each(|(at, _)| page.prefetch_column(*at));
        }
    }
}

/// A page during a scan.
struct Scanned<'s> {
    table: &'s PageTable,
    number: u32,
    page: Page<'s>,
    at: Version,
    keys: &'s Projection,
    predicates: &'s [PropertyPredicate],
}

impl Scanned<'_> {
    fn bits(&self, kernels: &[(u16, Kernel)], look: bool, first: usize) -> Bits {
        let (page, set) = (self.page, self.page.set());
        let used = page.header().used.load(Ordering::Acquire) as usize;
        let mut bits: Bits = [0; ROWS / 64];
        for (bits, present) in bits.iter_mut().zip(page.present()) {
            *bits = present.load(Ordering::Relaxed);
        }
        clear_below(&mut bits, first);
        // A row that was first used after its number was loaded belongs to a version that no caller can ask for yet.
        // Its undo record is not checked below.
        clear_from(&mut bits, used);
        let words = used.div_ceil(64);
        for (at, kernel) in kernels {
            let column = set.columns[usize::from(*at)].shape.column;
            kernel.narrow(page.column(*at), column, &mut bits[..words]);
        }
        fence(Ordering::Acquire);
        let mut dirty: Bits = [0; ROWS / 64];
        if let Some(heads) = page.undo() {
            for (row, head) in heads.iter().enumerate().take(used).skip(first) {
                dirty[row / 64] |= u64::from(!head.load(Ordering::Acquire).is_null()) << (row % 64);
            }
        }
        if self.table.begin(self.number) > self.at {
            return [0; ROWS / 64];
        }
        for (index, (bits, dirty)) in bits.iter_mut().zip(dirty).enumerate() {
            let mut doubtful = dirty | if look { *bits } else { 0 };
            *bits &= !doubtful;
            while doubtful != 0 {
                let bit = doubtful.trailing_zeros() as usize;
                *bits |= u64::from(self.passes(index * 64 + bit)) << bit;
                doubtful &= doubtful - 1;
            }
        }
        bits
    }

    /// Returns whether a row is present at the version and passes.
    fn passes(&self, row: usize) -> bool {
        let owner = RowOwner::Vertex(Gui(self.page.owners()[row].load(Ordering::Acquire)));
        let want = RowRequest { id: false, properties: self.keys };
        // STO-1: if the row was reused meanwhile, no readable version has it here.
        let seen = read_in(self.page, || self.table.begin(self.number), owner, row, self.at, want);
        seen.is_ok_and(|row| row.is_some_and(|row| row.passes(self.predicates)))
    }
}

fn clear_from(bits: &mut Bits, row: usize) {
    let Some((word, after)) = bits.get_mut(row / 64..).and_then(<[u64]>::split_first_mut) else { return };
    *word &= (1 << (row % 64)) - 1;
    after.fill(0);
}

fn clear_below(bits: &mut Bits, row: usize) {
    bits[..row / 64].fill(0);
    if let Some(word) = bits.get_mut(row / 64) {
        *word &= u64::MAX << (row % 64);
    }
}
