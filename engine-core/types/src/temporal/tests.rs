//! Texts of temporal values, their order, and their places on the calendar.

use super::*;
use crate::order;

fn zoned_text(text: &str) -> Value {
    zoned(parse_zoned(text).unwrap().resolve(&TimeZone::UTC).unwrap())
}

fn text(value: &Value) -> String {
    match value {
        Value::DateTime(at) => Iso(*at).to_string(),
        Value::Temporal(temporal) => temporal.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn dates_are_read_in_every_form() {
    let cases = [
        ("2015-07-21", "2015-07-21"),
        ("20150721", "2015-07-21"),
        ("2015-07", "2015-07-01"),
        ("201507", "2015-07-01"),
        ("2015-W30-2", "2015-07-21"),
        ("2015W302", "2015-07-21"),
        ("2015-W30", "2015-07-20"),
        ("2015W30", "2015-07-20"),
        ("2015-Q2-60", "2015-05-30"),
        ("2015Q260", "2015-05-30"),
        ("2015-Q2", "2015-04-01"),
        ("2015-202", "2015-07-21"),
        ("2015202", "2015-07-21"),
        ("2015", "2015-01-01"),
        ("-0044-03-15", "-0044-03-15"),
        ("+2015-07-21", "2015-07-21"),
    ];
    for (given, expected) in cases {
        assert_eq!(Temporal::Date(parse_date(given).unwrap()).to_string(), expected, "{given}");
    }
}

#[test]
fn a_wrong_text_names_its_wrong_part() {
    let problem = |text: &str| parse_date(text).unwrap_err().0;
    assert!(problem("2015-13-01").contains("month"), "{}", problem("2015-13-01"));
    assert!(problem("2015-02-30").contains("day"), "{}", problem("2015-02-30"));
    assert_eq!(problem("2015-366"), "day 366 is not in 1 to 365, the days of the year 2015");
    assert_eq!(problem("2015-Q5"), "quarter 5 is not in 1 to 4");
    assert_eq!(problem("2015-Q1-91"), "day 91 is not in quarter 1 of the year 2015");
    assert!(problem("2015-W54").contains("week"), "{}", problem("2015-W54"));
    assert_eq!(problem("soon"), "the year needs 4 digits, found \"soon\"");
    assert_eq!(problem("2015-07-21x"), "unexpected \"x\"");
    assert_eq!(problem("+12015-07-21"), "the year 12015 is not in -9999 to 9999");
    assert!(problem(&"2".repeat(5_000)).starts_with("the text has 5000 characters"));
    let zone = |text: &str| parse_zone(text).unwrap_err().0;
    assert_eq!(zone("Europe/Atlantis"), "\"Europe/Atlantis\" is not the name of a time zone");
    assert_eq!(zone("+19:00"), "an offset of 68400 seconds is more than 18 hours");
    let zoned = |text: &str| parse_zoned(text).and_then(|text| text.resolve(&TimeZone::UTC)).unwrap_err().0;
    assert_eq!(
        zoned("2015-07-21T21:40+05:00[Europe/London]"),
        "the offset of Europe/London at this time is +01:00, not +05:00"
    );
    let duration = |text: &str| Duration::parse(text).unwrap_err().0;
    assert_eq!(duration("P"), "a duration needs at least one part");
    assert_eq!(duration("P1DT"), "a duration needs at least one part");
    assert_eq!(duration("P1H"), "H is not a unit here");
    assert_eq!(duration("P1D2Y"), "2Y comes too late");
    assert_eq!(duration("P99999999999999999999D"), "the duration is too long");
}

#[test]
fn points_in_time_keep_their_zone() {
    for (given, expected) in [
        ("2015-07-21T21:40:32.142+0100", "2015-07-21T21:40:32.142+01:00"),
        ("2015-W30T2140-02", "2015-07-20T21:40-02:00"),
        ("2015-07-21T21:40:32.142[Europe/London]", "2015-07-21T21:40:32.142+01:00[Europe/London]"),
        ("1818-07-21T21:40:32.142[Europe/Stockholm]", "1818-07-21T21:40:32.142+00:53:28[Europe/Stockholm]"),
        ("2015-07-21T21:40-00:00", "2015-07-21T21:40Z"),
        ("2015-07-21", "2015-07-21T00:00Z"),
    ] {
        assert_eq!(text(&zoned_text(given)), expected);
    }
    // The clock shows 02:30 twice; the offset says which one is meant.
    let first = zoned_text("2017-10-29T02:30+02:00[Europe/Stockholm]");
    let second = zoned_text("2017-10-29T02:30+01:00[Europe/Stockholm]");
    assert_eq!(order::compare(&first, &second), Some(Ordering::Less));
}

#[test]
fn one_instant_in_two_zones_is_ordered_from_west_to_east_and_not_equal() {
    let west = zoned_text("2015-07-21T20:00-01:00");
    let utc = zoned_text("2015-07-21T21:00Z");
    let east = zoned_text("2015-07-21T23:00+02:00");
    let named = zoned_text("2015-07-21T23:00[Europe/Stockholm]");
    let sorted = [&west, &utc, &east, &named];
    for (i, a) in sorted.iter().enumerate() {
        for (j, b) in sorted.iter().enumerate() {
            assert_eq!(order::compare(a, b), Some(i.cmp(&j)), "{a:?} {b:?}");
            assert_eq!(order::order(a, b), i.cmp(&j));
            assert_eq!(order::equals(a, b), Some(i == j));
        }
    }
}

#[test]
fn durations_are_read_and_written() {
    for (given, expected) in [
        ("P14DT16H12M", "P14DT16H12M"),
        ("P5M1.5D", "P5M1DT12H"),
        ("P0.75M", "P22DT19H51M49.5S"),
        ("PT0.75M", "PT45S"),
        ("P2.5W", "P17DT12H"),
        ("P12Y5M14DT16H12M70S", "P12Y5M14DT16H13M10S"),
        ("P2012-02-02T14:37:21.545", "P2012Y2M2DT14H37M21.545S"),
        ("PT-0.4S", "PT-0.4S"),
        ("-P1Y-2D", "P-1Y2D"),
        ("PT0S", "PT0S"),
        ("P-1Y-6M", "P-1Y-6M"),
        ("PT-61.001S", "PT-1M-1.001S"),
    ] {
        assert_eq!(Duration::parse(given).unwrap().to_string(), expected, "{given}");
        let again = Duration::parse(&Duration::parse(given).unwrap().to_string());
        assert_eq!(again, Duration::parse(given));
    }
    let half = Duration::parse("P12Y5M14DT16H13M10.000000001S").unwrap().scaled(0.5).unwrap();
    assert_eq!(half.to_string(), "P6Y2M22DT13H21M8S");
    assert_eq!(Duration::parse("P1D").unwrap().checked_mul(i64::MAX).map(|d| d.days()), Some(i64::MAX));
    assert_eq!(Duration::parse("P2D").unwrap().checked_mul(i64::MAX), None);
    assert_eq!(Duration::default().scaled(f64::NAN), None);
    // 30 days are shorter than an average month, 31 longer; they never compare with `<`.
    let day = |text| Value::Temporal(Temporal::Duration(Arc::new(Duration::parse(text).unwrap())));
    assert_eq!(order::order(&day("P30D"), &day("P1M")), Ordering::Less);
    assert_eq!(order::order(&day("P31D"), &day("P1M")), Ordering::Greater);
    assert_eq!(order::compare(&day("P30D"), &day("P1M")), None);
    assert_eq!(order::equals(&day("P1D"), &day("PT24H")), Some(false));
}

#[test]
fn days_and_times_come_back() {
    for days in [-4_371_587, -1, 0, 1, 2_932_896] {
        assert_eq!(date_of_epoch_days(days).map(epoch_days), Some(days));
    }
    assert_eq!(date_of_epoch_days(2_932_897), None);
    let local = civil::date(1969, 12, 31).at(23, 59, 59, 999_999_999);
    assert_eq!(epoch_seconds(local), (-1, 999_999_999));
    assert_eq!(local_of_epoch_seconds(-1, 999_999_999), Some(local));
    assert_eq!(local_of_epoch_seconds(i64::MAX, 0), None);
    assert_eq!(time_of_nanos(-1), civil::time(23, 59, 59, 999_999_999));
}

#[test]
fn lists_of_one_type_are_storable() {
    let date = Value::Temporal(Temporal::Date(civil::date(2015, 7, 21)));
    let list = |items: &[Value]| Value::list(items.to_vec()).is_storable();
    assert!(list(&[]) && list(&[date.clone(), date.clone()]));
    assert!(list(&[Value::Long(1), Value::Double(0.5)]));
    assert!(!list(&[Value::Long(1), Value::string("1")]));
    assert!(!list(&[date, Value::DateTime(Timestamp::UNIX_EPOCH)]));
    assert!(!list(&[Value::Null]) && !list(&[Value::list(vec![])]));
}
