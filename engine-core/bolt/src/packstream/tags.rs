//! Tags of structures.

pub const NODE: u8 = b'N';
pub const RELATIONSHIP: u8 = b'R';
pub const UNBOUND_RELATIONSHIP: u8 = b'r';
pub const PATH: u8 = b'P';
pub const DATE: u8 = b'D';
pub const TIME: u8 = b'T';
pub const LOCAL_TIME: u8 = b't';
pub const DATE_TIME: u8 = b'I';
pub const DATE_TIME_ZONE: u8 = b'i';
/// [`DATE_TIME`] before Bolt 5: seconds of the local time.
pub const LEGACY_DATE_TIME: u8 = b'F';
/// [`DATE_TIME_ZONE`] before Bolt 5: seconds of the local time.
pub const LEGACY_DATE_TIME_ZONE: u8 = b'f';
pub const LOCAL_DATE_TIME: u8 = b'd';
pub const DURATION: u8 = b'E';
pub const POINT_2D: u8 = b'X';
pub const POINT_3D: u8 = b'Y';

/// Returns the number of fields of a structure that a client may send; `None` for structures that only answers have.
pub fn fields(tag: u8) -> Option<usize> {
    Some(match tag {
        DATE | LOCAL_TIME => 1,
        TIME | LOCAL_DATE_TIME => 2,
        DATE_TIME | DATE_TIME_ZONE | LEGACY_DATE_TIME | LEGACY_DATE_TIME_ZONE | POINT_2D => 3,
        DURATION | POINT_3D => 4,
        _ => return None,
    })
}

/// Returns the name of a structure.
pub fn name(tag: u8) -> Option<&'static str> {
    Some(match tag {
        NODE => "Node",
        RELATIONSHIP => "Relationship",
        UNBOUND_RELATIONSHIP => "UnboundRelationship",
        PATH => "Path",
        DATE => "Date",
        TIME => "Time",
        LOCAL_TIME => "LocalTime",
        DATE_TIME | DATE_TIME_ZONE | LEGACY_DATE_TIME | LEGACY_DATE_TIME_ZONE => "DateTime",
        LOCAL_DATE_TIME => "LocalDateTime",
        DURATION => "Duration",
        POINT_2D | POINT_3D => "Point",
        _ => return None,
    })
}
