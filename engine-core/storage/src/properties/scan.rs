//! Scans, page by page: labels by set, predicates column by column into a bit for each row.
//!
//! A page without versions is read at full speed: the kernels run over whole columns, one look says that no row has
//! undo records, and the owners of the remaining bits are the answer. Rows with records are looked at one by one.
//! A vertex that moved stands in two pages; each version sees it in exactly one of them.

use super::bytes::Texts;
use super::page::{Page, ROWS};
use super::page_table::{PageTable, Peek};
use super::predicate::Kernel;
use super::read::{Owner, Want, read_in};
use super::sets::{Kind, Set};
use crossbeam_epoch::Guard;
use std::sync::atomic::{Ordering, fence};
use tidegraph_apl::{Projection, PropertyPredicate, Reservoir};
use tidegraph_types::{Gui, Token, Version};

/// How the rows of one set are tested.
enum Plan {
    /// None passes.
    Skip,
    /// Those that pass all kernels, each on a column. `look`: and then a look at each.
    Run { kernels: Vec<(u16, Kernel)>, look: bool },
}

/// One scan over the vertices of a partition.
pub(crate) struct Scan<'r> {
    groups: &'r [Vec<Token>],
    without: &'r [Token],
    predicates: &'r [PropertyPredicate],
    keys: Projection,
    /// Keys whose texts are looked at: those of the predicates, and what is read of the rows that pass.
    texts: Vec<Token>,
    /// By set number, made when a set is met first.
    plans: Vec<Option<Plan>>,
}

/// A bit for each row of a page.
pub(crate) type Bits = [u64; ROWS / 64];

/// What becomes of the vertices that pass.
pub(crate) trait Found {
    /// Takes the rows of a page whose bits are set. Answers the row to go on with, if it had enough before.
    fn rows(&mut self, bits: &Bits, owner: impl Fn(usize) -> Gui) -> Option<usize>;
    /// Takes one vertex.
    fn one(&mut self, gui: Gui);
    /// Whether no more are wanted now.
    fn full(&self) -> bool;
}

/// Calls `each` with the rows whose bits are set, in order, until it answers false; answers that row.
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

/// Lists them up to a length.
pub(crate) struct Listed<'o> {
    pub out: &'o mut Vec<Gui>,
    pub limit: usize,
}

impl Found for Listed<'_> {
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

/// Counts them.
pub(crate) struct Counted(pub u64);

impl Found for Counted {
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

impl Found for Reservoir<Gui> {
    fn rows(&mut self, bits: &Bits, owner: impl Fn(usize) -> Gui) -> Option<usize> {
        // Numbers that are asked for rise: the word of the last one is where the next one is looked for.
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
    /// `without`: vertices that have none of these labels.
    pub fn new(groups: &'r [Vec<Token>], without: &'r [Token], predicates: &'r [PropertyPredicate]) -> Self {
        let keys = Projection::Keys(predicates.iter().map(|predicate| predicate.key).collect());
        let texts = predicates.iter().map(|predicate| predicate.key).collect();
        Self { groups, without, predicates, keys, texts, plans: Vec::new() }
    }

    /// Says that the values of these keys will be read of the rows that pass.
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
        if set.kind != Kind::Vertex || !labelled {
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

    /// Hands out the vertices of a page from a row on, as a version sees them. Answers the row to go on with, if
    /// enough were found before.
    pub fn page(
        &mut self,
        table: &PageTable,
        number: u32,
        first: usize,
        at: Version,
        guard: &Guard,
        found: &mut impl Found,
    ) -> Option<usize> {
        let (peek, bits) = self.bits(table, number, first, at, guard)?;
        let page = peek.page();
        let owners = page.owners();
        found.rows(&bits, |row| Gui(owners[row].load(Ordering::Relaxed)))
    }

    /// The rows of a page from one on that pass at a version.
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

    /// Whether a page is known to hold nothing. If its number went to another set meanwhile, no version that can be read
    /// has a row there.
    fn skips(&self, table: &PageTable, number: u32) -> bool {
        number >= table.end()
            || matches!(self.plans.get(table.set_of(number) as usize), Some(Some(Plan::Skip)))
    }

    /// Asks for what the scan of a page begins with: its header, long before; and nearer to it, when that is there, the
    /// columns that are tested. The processor looks ahead by itself in one column only as far as the next 4 KiB.
    pub fn prefetch(&mut self, table: &PageTable, number: u32, guard: &Guard) {
        if !self.skips(table, number + 1) {
            match table.hot(number + 1, guard) {
                Some(page) => crate::prefetch::line(page.header()),
                None => table.read_ahead(number + 1),
            }
        }
        if self.skips(table, number) {
            return;
        }
        let Some(page) = table.hot(number, guard) else { return };
        if let Some(Some(Plan::Run { kernels, .. })) = self.plans.get(page.set().number as usize) {
            page.prefetch_present();
            kernels.iter().for_each(|(at, _)| page.prefetch_column(*at));
        }
    }
}

/// A page in the course of a scan.
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
        // A row that was first used after the look above is of a version that nobody could name yet, and its undo record is not
        // looked for below.
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

    /// Whether a row is here at the version and passes everything.
    fn passes(&self, row: usize) -> bool {
        let owner = Owner::Vertex(Gui(self.page.owners()[row].load(Ordering::Acquire)));
        let want = Want { id: false, properties: self.keys };
        // Gone to somebody else meanwhile: then no version that can be read has it here.
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
