//! Batches in a file, one behind the other.

use super::{SpillError, SpillFile};
use crate::{Batch, Context, Error, Result};
use tidegraph_types::ErrorCode;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes before each frame: its length, and the checksum of its bytes.
const HEADER: usize = 16;

/// Most bytes of a frame, as far as its rows are shorter.
const FRAME_BYTES: usize = 256 << 10;

/// Most frames of runs that are merged at a time, and room for what else a merge needs.
const FRAMES_OF_A_MERGE: usize = 32;

/// Batches in a file. They come back in the order in which they were written.
pub(crate) struct Frames {
    file: Box<dyn SpillFile>,
    /// Bytes that were written, and read back.
    end: u64,
    at: u64,
    buffer: Vec<u8>,
}

impl Frames {
    pub(crate) fn create(ctx: &Context<'_>) -> Result<Self> {
        let files = ctx
            .spill_files()
            .ok_or_else(|| Error::Plan("rows go to a file where none is allowed".to_owned()))?;
        Ok(Self { file: files.create()?, end: 0, at: 0, buffer: vec![] })
    }

    /// Whether all batches were read back.
    pub(crate) fn is_read(&self) -> bool {
        self.at == self.end
    }

    /// Appends the rows of a batch, in this order. Long ones are cut into several frames.
    pub(crate) fn push(&mut self, batch: &Batch, rows: &[u32], ctx: &Context<'_>) -> Result<()> {
        let most = usize::try_from(ctx.limits.memory_bytes).unwrap_or(usize::MAX) / (4 * FRAMES_OF_A_MERGE);
        let row_bytes = batch.bytes() / batch.len.max(1);
        let at_once = (FRAME_BYTES.min(most) / row_bytes.max(1)).clamp(1, crate::batch::BATCH_ROWS);
        for rows in rows.chunks(at_once) {
            ctx.spend(rows.len() * (8 + row_bytes / 16))?;
            self.append(&batch.gather(rows))?;
        }
        Ok(())
    }

    fn append(&mut self, batch: &Batch) -> Result<()> {
        self.buffer.clear();
        self.buffer.resize(HEADER, 0);
        let frame = postcard::to_extend(batch, std::mem::take(&mut self.buffer)).map_err(of_rows)?;
        self.buffer = frame;
        let (header, rows) = self.buffer.split_at_mut(HEADER);
        header[..8].copy_from_slice(&(rows.len() as u64).to_le_bytes());
        header[8..].copy_from_slice(&xxh3_64(rows).to_le_bytes());
        self.file.append(&self.buffer)?;
        self.end += self.buffer.len() as u64;
        // One long row must not hold memory to the end.
        self.buffer.shrink_to(FRAME_BYTES);
        Ok(())
    }

    /// Returns the next batch; `None` if all were read.
    pub(crate) fn pop(&mut self) -> Result<Option<Batch>> {
        if self.is_read() {
            return Ok(None);
        }
        let mut header = [0; HEADER];
        self.file.read_at(&mut header, self.at)?;
        let [length, sum] =
            [&header[..8], &header[8..]].map(|part| part.try_into().map_or(0, u64::from_le_bytes));
        let begin = self.at + HEADER as u64;
        let length = usize::try_from(length).ok().filter(|_| length <= self.end.saturating_sub(begin));
        let Some(length) = length else { return Err(damaged(self.at)) };
        let mut rows = std::mem::take(&mut self.buffer);
        rows.resize(length, 0);
        self.file.read_at(&mut rows, begin)?;
        if xxh3_64(&rows) != sum {
            return Err(damaged(self.at));
        }
        let batch = postcard::from_bytes(&rows).map_err(of_rows)?;
        self.at = begin + length as u64;
        self.buffer = rows;
        Ok(Some(batch))
    }
}

fn damaged(at: u64) -> Error {
    SpillError::new(ErrorCode::Corrupt, format!("the temporary file is damaged at byte {at}")).into()
}

fn of_rows(error: postcard::Error) -> Error {
    SpillError::new(ErrorCode::Internal, error).into()
}
