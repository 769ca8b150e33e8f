//! Range tests on several rows at once, on processors with 256-bit registers (AVX2).
//!
//! Cells are atomics that a writer may be storing to, and Rust has no atomic load of several of them, so one machine
//! instruction loads them here. The processor loads each aligned 8-byte part at once, so every cell is read like a
//! relaxed load.

#![allow(unsafe_code, reason = "loads of several atomics")]

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// A range of values of one width: `low`, and `span` above it, both included.
#[derive(Clone, Copy)]
pub(super) enum Range<'c> {
    Bytes(&'c [AtomicU8], u8, u8),
    Shorts(&'c [AtomicU16], u16, u16),
    Ints(&'c [AtomicU32], u32, u32),
    Longs(&'c [AtomicU64], u64, u64),
    /// Floats between two bounds, both included.
    Floats(&'c [AtomicU32], f32, f32),
    Doubles(&'c [AtomicU64], f64, f64),
}

impl Range<'_> {
    /// Clears the bits of rows outside the range, 64 rows for each word of `bits`. Returns false, without clearing,
    /// if the processor has no AVX2 or the rows do not fill the words.
    #[inline]
    pub fn narrow(self, bits: &mut [u64]) -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if self.rows() >= bits.len() * 64 && std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            unsafe { avx2::narrow(self, bits) };
            return true;
        }
        let _ = bits;
        false
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn rows(self) -> usize {
        match self {
            Self::Bytes(cells, ..) => cells.len(),
            Self::Shorts(cells, ..) => cells.len(),
            Self::Ints(cells, ..) | Self::Floats(cells, ..) => cells.len(),
            Self::Longs(cells, ..) | Self::Doubles(cells, ..) => cells.len(),
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2 {
    use super::Range;
    use std::arch::asm;
    use std::arch::x86_64::*;

    /// Loads 32 bytes of cells.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load<A>(cells: &[A]) -> __m256i {
        debug_assert!(size_of_val(cells) == 32, "{} bytes", size_of_val(cells));
        let value;
        // SAFETY: the cells have 32 bytes. The instruction reads only these, each like a relaxed load.
        unsafe {
            asm!("vmovdqu {}, [{}]", out(ymm_reg) value, in(reg) cells.as_ptr(),
                options(nostack, preserves_flags, readonly));
        }
        value
    }

    /// Narrows each word of bits with tests of groups of `N` rows.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn words<A, const N: usize>(cells: &[A], bits: &mut [u64], test: impl Fn(__m256i) -> u64) {
        let words = cells.as_chunks::<64>().0;
        for (word, cells) in bits.iter_mut().zip(words).filter(|(word, _)| **word != 0) {
            let mut passed = 0;
            for (group, cells) in cells.as_chunks::<N>().0.iter().enumerate() {
                passed |= test(load(cells)) << (group * N);
            }
            *word &= passed;
        }
    }

    #[target_feature(enable = "avx2")]
    pub fn narrow(range: Range<'_>, bits: &mut [u64]) {
        match range {
            Range::Bytes(cells, low, span) => {
                let (low, span) = (_mm256_set1_epi8(low as i8), _mm256_set1_epi8(span as i8));
                words::<_, 32>(cells, bits, |cells| {
                    let above = _mm256_sub_epi8(cells, low);
                    let inside = _mm256_cmpeq_epi8(_mm256_min_epu8(above, span), above);
                    u64::from(_mm256_movemask_epi8(inside) as u32)
                });
            }
            Range::Shorts(cells, low, span) => {
                let (low, span) = (_mm256_set1_epi16(low as i16), _mm256_set1_epi16(span as i16));
                words::<_, 16>(cells, bits, |cells| {
                    let above = _mm256_sub_epi16(cells, low);
                    let inside = _mm256_cmpeq_epi16(_mm256_min_epu16(above, span), above);
                    // One byte for each row, with both halves adjacent.
                    let bytes = _mm256_packs_epi16(inside, _mm256_setzero_si256());
                    let bytes = _mm256_permute4x64_epi64::<0b11_01_10_00>(bytes);
                    u64::from(_mm256_movemask_epi8(bytes) as u32)
                });
            }
            Range::Ints(cells, low, span) => {
                let (low, span) = (_mm256_set1_epi32(low as i32), _mm256_set1_epi32(span as i32));
                words::<_, 8>(cells, bits, |cells| {
                    let above = _mm256_sub_epi32(cells, low);
                    let inside = _mm256_cmpeq_epi32(_mm256_min_epu32(above, span), above);
                    u64::from(_mm256_movemask_ps(_mm256_castsi256_ps(inside)) as u32)
                });
            }
            Range::Longs(cells, low, span) => {
                // AVX2 compares signed numbers only; flipping the highest bit makes the comparison unsigned.
                let turned = |word: u64| _mm256_set1_epi64x((word ^ 1 << 63) as i64);
                let (low, span, turn) =
                    (_mm256_set1_epi64x(low as i64), turned(span), _mm256_set1_epi64x(i64::MIN));
                words::<_, 4>(cells, bits, |cells| {
                    let above = _mm256_xor_si256(_mm256_sub_epi64(cells, low), turn);
                    let outside = _mm256_cmpgt_epi64(above, span);
                    u64::from(!_mm256_movemask_pd(_mm256_castsi256_pd(outside)) as u32 & 0b1111)
                });
            }
            Range::Floats(cells, low, high) => {
                let (low, high) = (_mm256_set1_ps(low), _mm256_set1_ps(high));
                words::<_, 8>(cells, bits, |cells| {
                    let value = _mm256_castsi256_ps(cells);
                    let inside = _mm256_and_ps(
                        _mm256_cmp_ps::<_CMP_GE_OQ>(value, low),
                        _mm256_cmp_ps::<_CMP_LE_OQ>(value, high),
                    );
                    u64::from(_mm256_movemask_ps(inside) as u32)
                });
            }
            Range::Doubles(cells, low, high) => {
                let (low, high) = (_mm256_set1_pd(low), _mm256_set1_pd(high));
                words::<_, 4>(cells, bits, |cells| {
                    let value = _mm256_castsi256_pd(cells);
                    let inside = _mm256_and_pd(
                        _mm256_cmp_pd::<_CMP_GE_OQ>(value, low),
                        _mm256_cmp_pd::<_CMP_LE_OQ>(value, high),
                    );
                    u64::from(_mm256_movemask_pd(inside) as u32)
                });
            }
        }
    }
}
