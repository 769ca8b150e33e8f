//! The codes of types.

pub(crate) const CUSTOM: u8 = 0x00;
pub(crate) const INT: u8 = 0x01;
pub(crate) const LONG: u8 = 0x02;
pub(crate) const STRING: u8 = 0x03;
pub(crate) const DATE: u8 = 0x04;
pub(crate) const TIMESTAMP: u8 = 0x05;
pub(crate) const CLASS: u8 = 0x06;
pub(crate) const DOUBLE: u8 = 0x07;
pub(crate) const FLOAT: u8 = 0x08;
pub(crate) const LIST: u8 = 0x09;
pub(crate) const MAP: u8 = 0x0A;
pub(crate) const SET: u8 = 0x0B;
pub(crate) const UUID: u8 = 0x0C;
pub(crate) const EDGE: u8 = 0x0D;
pub(crate) const PATH: u8 = 0x0E;
pub(crate) const PROPERTY: u8 = 0x0F;
pub(crate) const GRAPH: u8 = 0x10;
pub(crate) const VERTEX: u8 = 0x11;
pub(crate) const VERTEX_PROPERTY: u8 = 0x12;
pub(crate) const BINDING: u8 = 0x14;
pub(crate) const BYTECODE: u8 = 0x15;
pub(crate) const DIRECTION: u8 = 0x18;
pub(crate) const LAMBDA: u8 = 0x1D;
pub(crate) const PREDICATE: u8 = 0x1E;
pub(crate) const T: u8 = 0x20;
pub(crate) const TRAVERSER: u8 = 0x21;
pub(crate) const BIG_DECIMAL: u8 = 0x22;
pub(crate) const BIG_INTEGER: u8 = 0x23;
pub(crate) const BYTE: u8 = 0x24;
pub(crate) const SHORT: u8 = 0x26;
pub(crate) const BOOLEAN: u8 = 0x27;
pub(crate) const TEXT_PREDICATE: u8 = 0x28;
pub(crate) const STRATEGY: u8 = 0x29;
pub(crate) const TREE: u8 = 0x2B;
pub(crate) const CHAR: u8 = 0x80;
pub(crate) const INSTANT: u8 = 0x83;
pub(crate) const OFFSET_DATE_TIME: u8 = 0x88;
pub(crate) const ZONED_DATE_TIME: u8 = 0x8D;
pub(crate) const NULL: u8 = 0xFE;

/// Names the types that drivers can write and the engine has no values for.
pub(crate) const fn unsupported(code: u8) -> Option<&'static str> {
    Some(match code {
        CUSTOM => "a type of its client's own",
        PATH => "Path",
        GRAPH => "Graph",
        0x25 => "ByteBuffer",
        0x2A => "BulkSet",
        TREE => "Tree",
        0x2C => "Metrics",
        0x2D => "TraversalMetrics",
        TRAVERSER => "Traverser",
        0x81 => "Duration",
        0x82 => "InetAddress",
        0x84 => "LocalDate",
        0x85 => "LocalDateTime",
        0x86 => "LocalTime",
        0x87 => "MonthDay",
        0x89 => "OffsetTime",
        0x8A => "Period",
        0x8B => "Year",
        0x8C => "YearMonth",
        0x8E => "ZoneOffset",
        _ => return None,
    })
}
