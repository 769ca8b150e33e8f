//! Virtual array: a reserved range of addresses that gets memory as it is used.
//!
//! Reserving costs no memory. An index is an address, growing copies nothing, and an element never moves, so readers
//! reach elements by plain arithmetic while the one writer adds more. Fresh elements are all zero bits, which must be
//! a valid value ([`ZeroValid`]). Elements change through their own atomics.
//!
//! Roles: the writer calls [`VirtualArray::reserve`] before it uses an array for the first time (so a store of a few
//! vertices has few mappings) and [`VirtualArray::release`] for elements that are not needed. Readers call
//! [`VirtualArray::get`] with indexes that the writer published.
//!
//! What must never happen: a range released while a reader may look at it; an element that needs `Drop`.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Types for which all zero bits are a valid value.
///
/// # Safety
///
/// Zeroed memory must be a valid value of the type at any time, even while another thread holds a reference.
pub(crate) unsafe trait ZeroValid {}

// SAFETY: every bit pattern is a number.
unsafe impl ZeroValid for std::sync::atomic::AtomicU8 {}
// SAFETY: every bit pattern is a number.
unsafe impl ZeroValid for std::sync::atomic::AtomicU16 {}
// SAFETY: every bit pattern is a number.
unsafe impl ZeroValid for std::sync::atomic::AtomicU32 {}
// SAFETY: every bit pattern is a number.
unsafe impl ZeroValid for std::sync::atomic::AtomicU64 {}
// SAFETY: an array of zeros is valid where each of them is.
unsafe impl<T: ZeroValid, const N: usize> ZeroValid for [T; N] {}

/// The kernel refused to reserve address space.
#[derive(Debug, thiserror::Error)]
#[error("cannot reserve {bytes} bytes of address space: {source}")]
pub(crate) struct ReserveError {
    bytes: usize,
    source: std::io::Error,
}

/// The first bytes of an array are on small pages, so that a small graph does not occupy huge ones.
#[cfg(not(miri))]
const SMALL_PAGES: usize = 2 << 20;
/// Smallest reservation to fall back to if the kernel refuses more.
const LEAST_BYTES: usize = 64 << 20;

/// Elements of one type at fixed addresses.
pub(crate) struct VirtualArray<T> {
    /// Number of elements requested.
    most: usize,
    /// Start of the region, null before it is reserved. Every access needs it.
    start: AtomicPtr<T>,
    capacity: AtomicUsize,
    region: OnceLock<Region>,
}

// SAFETY: the array owns its elements and hands out nothing but shared references to them.
unsafe impl<T: Send> Send for VirtualArray<T> {}
// SAFETY: as for `Send`; elements are shared between threads as in a slice.
unsafe impl<T: Sync> Sync for VirtualArray<T> {}

impl<T> std::fmt::Debug for VirtualArray<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VirtualArray").field("most", &self.most).finish_non_exhaustive()
    }
}

impl<T: ZeroValid> VirtualArray<T> {
    /// Makes an array of at most `most` elements, without reserving anything.
    pub const fn new(most: usize) -> Self {
        assert!(size_of::<T>() > 0 && align_of::<T>() <= 4096 && !std::mem::needs_drop::<T>());
        Self {
            most,
            start: AtomicPtr::new(std::ptr::null_mut()),
            capacity: AtomicUsize::new(0),
            region: OnceLock::new(),
        }
    }

    /// Reserves the addresses, unless they are reserved already. If the kernel refuses, halves the size until it
    /// accepts: see [`Self::capacity`].
    ///
    /// # Errors
    ///
    /// [`ReserveError`] if the kernel refuses even the smallest size.
    pub fn reserve(&self) -> Result<(), ReserveError> {
        if self.region.get().is_some() {
            return Ok(());
        }
        let wanted = (self.most * size_of::<T>()).max(1);
        let mut bytes = wanted;
        let region = loop {
            match Region::reserve(bytes) {
                Ok(region) => break region,
                Err(_) if bytes / 2 >= LEAST_BYTES => bytes /= 2,
                Err(source) => return Err(ReserveError { bytes: wanted, source }),
            }
        };
        // There is one writer, so no other thread reserves at the same time; if one did, its region is as good.
        let region = self.region.get_or_init(|| region);
        self.start.store(region.start.cast(), Ordering::Relaxed);
        // Release: a thread that sees the capacity sees the start.
        self.capacity.store((region.bytes / size_of::<T>()).min(self.most), Ordering::Release);
        Ok(())
    }

    /// Returns the number of elements that there is room for; 0 before [`Self::reserve`].
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Acquire)
    }

    /// Returns the address of the first element, for callers that compute addresses; null before [`Self::reserve`].
    #[inline]
    pub fn base(&self) -> *mut T {
        self.start.load(Ordering::Relaxed)
    }

    /// Returns an element.
    ///
    /// # Panics
    ///
    /// If the index is beyond the capacity.
    #[inline]
    pub fn get(&self, index: usize) -> &T {
        let capacity = self.capacity();
        assert!(index < capacity, "element {index} of an array of {capacity}");
        // SAFETY: the element lies inside the mapping, which lives as long as `self`; its bits are valid from the
        // start (`ZeroValid`), and nothing hands out exclusive references.
        unsafe { &*self.base().add(index) }
    }

    /// Returns a range of elements.
    ///
    /// # Panics
    ///
    /// If the range reaches beyond the capacity.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> &[T] {
        let capacity = self.capacity();
        assert!(range.start <= range.end && range.end <= capacity, "{range:?} of an array of {capacity}");
        if range.is_empty() {
            return &[];
        }
        // SAFETY: as in `get`, for each element of the range.
        unsafe { std::slice::from_raw_parts(self.base().add(range.start), range.len()) }
    }

    /// Prefetches the first cache line of an element, which need not exist.
    #[inline]
    pub fn prefetch(&self, index: usize) {
        crate::hints::prefetch_address(self.base().wrapping_add(index));
    }

    /// Gives the memory of a range of elements back to the kernel; they are zero afterwards. Only whole pages are
    /// released.
    ///
    /// # Safety
    ///
    /// No thread looks at these elements, now or later, until the writer has filled them again. The writer must
    /// not rely on zeros.
    pub unsafe fn release(&self, range: Range<usize>) {
        let Some(region) = self.region.get() else { return };
        let size = size_of::<T>();
        let bytes = range.start.min(self.most) * size..range.end.min(self.most) * size;
        // SAFETY: the caller promises it.
        unsafe { region.release(bytes) };
    }
}

/// The mapping of an array.
#[cfg(not(miri))]
struct Region {
    map: memmap2::MmapRaw,
    start: *mut u8,
    bytes: usize,
}

#[cfg(not(miri))]
impl Region {
    fn reserve(bytes: usize) -> std::io::Result<Self> {
        let map =
            memmap2::MmapRaw::from(memmap2::MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?);
        let start = map.as_mut_ptr();
        #[cfg(target_os = "linux")]
        {
            // Random reads miss the TLB far less often on huge pages. This is a hint: without it everything works the
            // same.
            const HUGE: usize = 2 << 20;
            let first = (start as usize + SMALL_PAGES).next_multiple_of(HUGE) - start as usize;
            if first < bytes {
                let _ = map.advise_range(memmap2::Advice::HugePage, first, bytes - first);
            }
        }
        Ok(Self { map, start, bytes })
    }

    /// # Safety
    ///
    /// As [`VirtualArray::release`].
    unsafe fn release(&self, range: Range<usize>) {
        #[cfg(target_os = "linux")]
        {
            const PAGE: usize = 4096;
            let (first, last) = (range.start.next_multiple_of(PAGE), range.end.min(self.bytes) / PAGE * PAGE);
            if first < last {
                // SAFETY: the range lies inside the private anonymous mapping, and the caller promises that no thread
                // looks at it, so none sees it turn to zeros. A failure leaves the memory in place.
                let _ = unsafe {
                    self.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, first, last - first)
                };
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (range, &self.map);
    }
}

/// Miri has no mappings, so this is a small heap allocation.
#[cfg(miri)]
struct Region {
    start: *mut u8,
    bytes: usize,
}

#[cfg(miri)]
impl Region {
    const ALIGN: usize = 4096;

    fn reserve(bytes: usize) -> std::io::Result<Self> {
        let bytes = bytes.min(1 << 20);
        let layout =
            std::alloc::Layout::from_size_align(bytes, Self::ALIGN).map_err(std::io::Error::other)?;
        // SAFETY: the size is not zero (`reserve` asks for one byte at least).
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        Ok(Self { start, bytes })
    }

    unsafe fn release(&self, _: Range<usize>) {}
}

#[cfg(miri)]
impl Drop for Region {
    fn drop(&mut self) {
        if let Ok(layout) = std::alloc::Layout::from_size_align(self.bytes, Self::ALIGN) {
            // SAFETY: allocated by `reserve` with the same layout.
            unsafe { std::alloc::dealloc(self.start, layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn elements_begin_as_zero_and_stay_where_they_are() {
        let array: VirtualArray<AtomicU64> = VirtualArray::new(if cfg!(miri) { 1 << 14 } else { 1 << 30 });
        assert_eq!(array.capacity(), 0);
        assert!(array.base().is_null());
        array.reserve().unwrap();
        array.reserve().unwrap();
        let last = array.capacity() - 1;
        for index in [0, 1, last / 2, last] {
            let address = std::ptr::from_ref(array.get(index));
            assert_eq!(array.get(index).swap(index as u64 + 1, Ordering::Relaxed), 0);
            assert_eq!(std::ptr::from_ref(array.get(index)), address);
            array.prefetch(index);
        }
        assert_eq!(array.slice(0..2)[1].load(Ordering::Relaxed), 2);
        assert!(array.slice(last..last).is_empty());
    }

    #[test]
    #[should_panic(expected = "element 16 of an array of 16")]
    fn what_lies_outside_is_refused() {
        let array: VirtualArray<AtomicU64> = VirtualArray::new(16);
        array.reserve().unwrap();
        array.get(16);
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn released_pages_are_zero_again_and_the_rest_is_not() {
        let array: VirtualArray<AtomicU64> = VirtualArray::new(1 << 20);
        array.reserve().unwrap();
        for index in 0..4096 {
            array.get(index).store(7, Ordering::Relaxed);
        }
        // SAFETY: no other code uses the array.
        unsafe { array.release(100..3000) };
        assert_eq!(array.get(511).load(Ordering::Relaxed), 7, "the page has elements that stay");
        assert_eq!(array.get(512).load(Ordering::Relaxed), 0);
        assert_eq!(array.get(2559).load(Ordering::Relaxed), 0);
        assert_eq!(array.get(2560).load(Ordering::Relaxed), 7);
    }

    #[test]
    #[cfg(not(miri))]
    fn more_than_the_machine_has_gets_less_or_a_named_error() {
        let array: VirtualArray<AtomicU64> = VirtualArray::new(1 << 55);
        match array.reserve() {
            Ok(()) => assert!((1..1 << 55).contains(&array.capacity())),
            Err(error) => assert!(error.to_string().contains(&(1_u64 << 58).to_string()), "{error}"),
        }
    }

    #[test]
    #[cfg(not(miri))]
    fn many_arrays_fit_beside_each_other() {
        let arrays: Vec<VirtualArray<AtomicU64>> = (0..1000).map(|_| VirtualArray::new(1 << 30)).collect();
        for array in &arrays {
            array.reserve().unwrap();
            array.get(5).store(1, Ordering::Relaxed);
        }
    }
}
