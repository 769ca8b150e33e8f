//! APL between processes: requests and answers as values, and their messages.
//!
//! Roles: [`Request`] and [`Answer`] stand for the calls and results of the trait `tidegraph_apl::Apl`, which in one
//! process is called directly. `request` and `answer` convert.
//!
//! A decoded answer is safe to use: columns that belong together are of one length, and the ends of rows rise and stay
//! within what they index. What a peer sends must never make the caller index out of bounds.

mod answer;
mod column;
mod request;
mod values;

pub use answer::{Answer, decode_answer, encode_answer};
pub use request::{Request, decode_request, encode_request};

use crate::{Error, proto};
use bytes::Bytes;
use tidegraph_apl::{Cursor, Draw, Reservoir, ScanCursor};
use tidegraph_types::{Gui, Sid, Token};

fn guis_to(guis: &[Gui]) -> Bytes {
    column::wide_to(guis, |gui| gui.0)
}

fn guis_from(bytes: &[u8], message: &'static str, field: &'static str) -> Result<Vec<Gui>, Error> {
    column::wide_from(bytes, message, field, Gui)
}

fn sids_to(sids: &[Sid]) -> Bytes {
    column::wide_to(sids, |sid| sid.0)
}

fn sids_from(bytes: &[u8], message: &'static str, field: &'static str) -> Result<Vec<Sid>, Error> {
    column::wide_from(bytes, message, field, Sid)
}

/// Columns of one length.
fn same(message: &'static str, field: &'static str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::Misaligned { message, field }) }
}

fn tokens_to(tokens: &[Token]) -> Vec<u32> {
    tokens.iter().map(|t| t.0).collect()
}

fn tokens_from(numbers: Vec<u32>) -> Vec<Token> {
    numbers.into_iter().map(Token).collect()
}

fn cursor_to(cursor: Cursor) -> proto::ExpandCursor {
    proto::ExpandCursor { row: cursor.row, offset: cursor.offset }
}

fn cursor_from(cursor: proto::ExpandCursor) -> Cursor {
    Cursor { row: cursor.row, offset: cursor.offset, replica: 0 }
}

fn scan_cursor_to(cursor: ScanCursor) -> proto::ScanCursor {
    proto::ScanCursor {
        partition: u32::from(cursor.partition),
        position: cursor.position,
        by_index: cursor.by_index,
        cover: u32::from(cursor.cover),
    }
}

fn scan_cursor_from(cursor: proto::ScanCursor) -> Result<ScanCursor, Error> {
    let partition = u16::try_from(cursor.partition)
        .map_err(|_| Error::OutOfRange { field: "partition", value: i128::from(cursor.partition) })?;
    let cover = u16::try_from(cursor.cover)
        .map_err(|_| Error::OutOfRange { field: "cover", value: i128::from(cursor.cover) })?;
    Ok(ScanCursor { partition, position: cursor.position, by_index: cursor.by_index, cover, replica: 0 })
}

fn reservoir_to(sample: &Reservoir<Gui>) -> proto::Reservoir {
    proto::Reservoir {
        count: sample.count,
        guis: sample.items.iter().map(|gui| gui.0).collect(),
        draw: sample.draw.0,
        weight: sample.weight,
        skip: sample.skip,
    }
}

fn reservoir_from(sample: Option<proto::Reservoir>) -> Result<Reservoir<Gui>, Error> {
    let sample = sample.ok_or(Error::UnknownKind { message: "Reservoir" })?;
    Ok(Reservoir {
        count: sample.count,
        items: sample.guis.into_iter().map(Gui).collect(),
        draw: Draw(sample.draw),
        weight: sample.weight,
        skip: sample.skip,
    })
}

#[cfg(test)]
mod tests;
