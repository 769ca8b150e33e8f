//! PackStream: values as bytes. A marker byte gives the type and, for short values, the length or the value itself.

mod read;
mod tags;
mod write;

pub use read::{Error, Reader};
pub use write::{Dialect, write_value};
pub(crate) use write::{write_list_header, write_map_header, write_structure, write_text};

/// Deepest nesting of lists, maps and structures that is read.
pub const DEPTH_LIMIT: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;
    use proptest::prelude::*;
    use std::sync::Arc;
    use tidegraph_types::point::Crs;
    use tidegraph_types::temporal::{self, Duration, OffsetTime};
    use tidegraph_types::{Budget, Map, Point, Temporal, Value};

    const DIALECT: Dialect = Dialect { element_ids: true, utc: true };

    fn read(bytes: &[u8]) -> Result<Value, Error> {
        read_within(bytes, usize::MAX)
    }

    fn read_within(bytes: &[u8], mut left: usize) -> Result<Value, Error> {
        let mut take = |more: usize| {
            let fits = more <= left;
            left = left.saturating_sub(more);
            fits
        };
        let mut reader = Reader::new(bytes, Budget::new(&mut take));
        let value = reader.value()?;
        reader.end()?;
        Ok(value)
    }

    fn written(value: &Value) -> Vec<u8> {
        let mut bytes = vec![];
        write_value(value, DIALECT, &mut bytes);
        bytes
    }

    fn times() -> impl Strategy<Value = Value> {
        let zones = prop::sample::select(vec!["Europe/Stockholm", "America/New_York", "+05:30", "Z"]);
        let parts = (-3_000_000_i64..2_900_000, 0..86_400_000_000_000_i64, any::<[i64; 2]>());
        (0..7, parts, zones).prop_map(|(kind, (days, nanos, [months, seconds]), zone)| {
            let date = temporal::date_of_epoch_days(days).unwrap();
            let time = temporal::time_of_nanos(i128::from(nanos));
            let zone = temporal::parse_zone(zone).unwrap();
            let offset = zone.to_offset(jiff::Timestamp::UNIX_EPOCH);
            Value::Temporal(match kind {
                0 => Temporal::Date(date),
                1 => Temporal::LocalTime(time),
                2 => Temporal::Time(OffsetTime { time, offset }),
                3 => Temporal::LocalDateTime(date.to_datetime(time)),
                4 => return temporal::zoned(date.to_datetime(time).to_zoned(zone).unwrap()),
                5 => {
                    let duration = Duration::new(months, days, seconds / 2, i128::from(nanos));
                    Temporal::Duration(Arc::new(duration.unwrap()))
                }
                _ => return Value::Point(Arc::new(Point::new(Crs::Cartesian, &[days as f64, 0.5]).unwrap())),
            })
        })
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Long),
            (-300_i64..70_000).prop_map(Value::Long),
            any::<f64>().prop_map(Value::Double),
            ".{0,300}".prop_map(Value::string),
            (-9_999_999_999_i64..9_999_999_999, 0..1_000_000_000)
                .prop_map(|(second, nano)| Value::DateTime(jiff::Timestamp::new(second, nano).unwrap())),
            times(),
        ];
        leaf.prop_recursive(5, 400, 40, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..40).prop_map(Value::list),
                prop::collection::btree_map(".{0,20}", inner, 0..20).prop_map(|entries| {
                    Value::map(entries.into_iter().map(|(k, v)| (Value::string(k), v)).collect::<Map>())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in values()) {
            // The text shows types, which the equivalence of values does not.
            prop_assert_eq!(format!("{:?}", read(&written(&value)).unwrap()), format!("{value:?}"));
        }

        #[test]
        fn cut_bytes_are_refused(value in values(), cut in any::<prop::sample::Index>()) {
            let bytes = written(&value);
            let cut = cut.index(bytes.len());
            prop_assert!(read(&bytes[..cut]).is_err());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }
    }

    #[test]
    fn integers_take_as_few_bytes_as_they_can() {
        let bytes = |value: i64| written(&Value::Long(value));
        assert_eq!(bytes(-16), [0xF0]);
        assert_eq!(bytes(127), [0x7F]);
        assert_eq!(bytes(-17), [0xC8, 0xEF]);
        assert_eq!(bytes(128), [0xC9, 0, 0x80]);
        assert_eq!(bytes(-40_000), [0xCA, 0xFF, 0xFF, 0x63, 0xC0]);
        assert_eq!(bytes(i64::MIN), [0xCB, 0x80, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn lengths_that_lie_take_no_memory() {
        // A list, a map, a text and bytes of 4 GiB.
        for marker in [0xD6, 0xDA, 0xD2, 0xCE] {
            let bytes = [marker, 0xFF, 0xFF, 0xFF, 0xFF, 1];
            assert!(matches!(read_within(&bytes, 1_000), Err(Error::Truncated { .. })), "{marker:#x}");
        }
    }

    #[test]
    fn memory_is_asked_for_before_it_is_taken() {
        let mut nulls = vec![0xD6, 0, 1, 0, 0];
        nulls.extend([0xC0; 65_536]);
        assert!(matches!(read_within(&nulls, 1 << 20), Err(Error::Memory)));
        assert_eq!(read_within(&nulls, 4 << 20).unwrap().as_slice().map(<[Value]>::len), Some(65_536));
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |depth: usize| [vec![0x91; depth], vec![0xC0]].concat();
        assert!(read(&nested(DEPTH_LIMIT)).is_ok());
        assert!(matches!(read(&nested(DEPTH_LIMIT + 1)), Err(Error::Deep)));
        assert!(matches!(read(&nested(1_000_000)), Err(Error::Deep)));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert_eq!(message(&[0x91, 0xC7]), "byte 1: 0xC7 is not a marker of PackStream");
        assert_eq!(message(&[0x82, b'a', 0xFF]), "byte 0: the text is not valid UTF-8");
        assert_eq!(message(&[0xA1, 0x01, 0x01]), "byte 1: a key of a map must be text");
        assert_eq!(message(&[0xA2, 0x81, b'a', 1, 0x81, b'a', 2]), "byte 4: the map has the key \"a\" twice");
        assert_eq!(message(&[1, 2]), "byte 1: the message goes on after its last field");
        assert_eq!(message(&[0xB1, 0x4E, 1]), "byte 0: values of the type Node are not supported");
        assert_eq!(message(&[0xB2, 0x44, 1, 1]), "byte 0: a Date has 1 field, not 2");
        assert_eq!(message(&[0xB1, 0x44, 0xC0]), "byte 0: null is not an integer of a Date");
        assert_eq!(message(&[0xB1, 0x74, 0xFF]), "byte 0: -1 nanoseconds are not a time of day");
        assert_eq!(
            message(&[0xB1, 0x44, 0xCA, 0x7F, 0xFF, 0xFF, 0xFF]),
            "byte 0: 2147483647 days are not in the years -9999 to 9999"
        );
        assert_eq!(message(&[0xB3, 0x58, 7, 1, 1]), "byte 0: 7 is not a known SRID");
        assert_eq!(message(&[0xB0, 0x99]), "byte 0: there is no structure with the tag 0x99");
        assert_eq!(message(&[0xCC, 1, 7]), "byte 0: values of the type bytes are not supported");
        assert_eq!(message(&[0x92, 1]), "byte 0: 2 values do not fit into the 1 bytes that are left");
    }

    #[test]
    fn points_in_time_of_all_forms_are_read() {
        let at = |bytes: &[u8]| read(bytes).unwrap();
        let of =
            |text| temporal::zoned(temporal::parse_zoned(text).unwrap().resolve(&TimeZone::UTC).unwrap());
        let in_offset = of("2024-05-06T09:08:09.000000005+02:00");
        let in_zone = of("2024-05-06T09:08:09.000000005[Europe/Berlin]");
        let seconds = 1_714_979_289_i32;
        let with = |tag: u8, seconds: i32, zone: &[u8]| {
            [&[0xB3, tag, 0xCA][..], &seconds.to_be_bytes(), &[5], zone].concat()
        };
        let offset = [0xC9, 0x1C, 0x20]; // 7,200 s
        let berlin = [&[0x8D][..], b"Europe/Berlin"].concat();
        assert_eq!(at(&with(b'I', seconds, &offset)), in_offset);
        assert_eq!(at(&with(b'i', seconds, &berlin)), in_zone);
        assert_eq!(at(&with(b'F', seconds + 7_200, &offset)), in_offset);
        assert_eq!(at(&with(b'f', seconds + 7_200, &berlin)), in_zone);
        assert_eq!(at(&with(b'I', seconds, &[0])), of("2024-05-06T07:08:09.000000005Z"));
        let nowhere = [&[0x87][..], b"Nowhere"].concat();
        let refused = read(&with(b'f', seconds, &nowhere)).unwrap_err().to_string();
        assert_eq!(refused, "byte 0: \"Nowhere\" is not the name of a time zone");
    }

    #[test]
    fn sets_are_lists_and_numbers_are_of_two_types() {
        let set = Value::Set(Arc::new(vec![Value::Int(1), Value::Float(0.5)]));
        assert_eq!(read(&written(&set)).unwrap(), Value::list(vec![Value::Long(1), Value::Double(0.5)]));
    }
}
