//! The memory that values of a client may take while they are read.

use std::fmt;

/// The memory that values may take. It is asked before memory is taken.
///
/// ```
/// use tidegraph_types::Budget;
///
/// let mut left = 100_usize;
/// let mut take = |more: usize| left.checked_sub(more).map(|rest| left = rest).is_some();
/// let mut budget = Budget::new(&mut take);
/// assert!(budget.take(60).is_ok());
/// assert!(budget.take(60).is_err());
/// ```
pub struct Budget<'a> {
    take: &'a mut dyn FnMut(usize) -> bool,
}

/// A budget did not grant memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory;

impl<'a> Budget<'a> {
    /// Makes a budget. `take` is asked for more bytes, and says whether they are granted.
    pub fn new(take: &'a mut dyn FnMut(usize) -> bool) -> Self {
        Self { take }
    }

    /// Asks for more bytes.
    ///
    /// # Errors
    ///
    /// [`NoMemory`] if they are not granted.
    pub fn take(&mut self, bytes: usize) -> Result<(), NoMemory> {
        if (self.take)(bytes) { Ok(()) } else { Err(NoMemory) }
    }
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").finish_non_exhaustive()
    }
}
