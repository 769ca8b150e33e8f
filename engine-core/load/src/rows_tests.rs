//! Tests of reading files: both dialects, bad rows, bad headers, compressed and truncated files.

use super::*;
use std::io::Write;
use tidegraph_types::Value;

fn read(name: &str, bytes: impl Into<Vec<u8>>, options: &Options) -> (Vec<Row>, Vec<String>, RowReader) {
    let mut reader = open(Cursor::new(bytes.into()), name, None, options).unwrap();
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    for item in reader.by_ref() {
        match item {
            Ok(row) => rows.push(row),
            Err(Problem::Row(rejected)) => problems.push(rejected.to_string()),
            Err(Problem::File(error)) => problems.push(format!("FILE {error}")),
        }
    }
    (rows, problems, reader)
}

/// Formats rows as short text for comparison.
fn show(rows: &[Row], reader: &RowReader) -> Vec<String> {
    let name = |n: &Name| reader.names()[n.0 as usize].as_str();
    let properties = |properties: &[Property]| {
        let all = properties.iter().map(|p| format!("{}={:?}", name(&p.name), p.value));
        all.collect::<Vec<_>>().join(" ")
    };
    rows.iter()
        .map(|row| match row {
            Row::Vertex(v) => {
                let labels: Vec<_> = v.labels.iter().map(name).collect();
                format!("{} [{}] {}", v.id, labels.join(","), properties(&v.properties))
            }
            Row::Edge(e) => {
                let id = e.id.as_deref().unwrap_or("-");
                format!("{id} {}->{} {} {}", e.from, e.to, name(&e.label), properties(&e.properties))
            }
        })
        .collect()
}

#[test]
fn gremlin_vertices() {
    let text = "\u{feff}~id,~label,name,age:Int(single),tags:String[],n:long[]\r\n\
                1,person;author,\"Ann, \"\"A\"\"\",40,a;b\\;c;a;;d, 1;2 ;1\r\n\
                2,,,,,\r\n\
                \"\",person,\"\",,,\r\n";
    let (rows, problems, reader) = read("v.csv", text, &Options::default());
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(
        show(&rows, &reader),
        [
            "1 [person,author] name=String(\"Ann, \\\"A\\\"\") age=Int(40) tags=String(\"a\") tags=String(\"b;c\") \
             tags=String(\"d\") n=Long(1) n=Long(2)",
            "2 [] ",
            " [person] ",
        ]
    );
}

#[test]
fn empty_strings_are_values_only_when_allowed_and_quoted() {
    let options = Options { allow_empty_strings: true, ..Options::default() };
    let (rows, _, reader) = read("v.csv", "~id,a,b,c:int\n1,\"\",,\"\"\n", &options);
    assert_eq!(show(&rows, &reader), ["1 [] a=String(\"\")"]);
}

#[test]
fn edges_of_both_dialects() {
    let (rows, _, reader) =
        read("e.csv", "~id,~from,~to,~label,w:Double\ne1,a,b,knows,0.5\ne2,a,b,,\n", &Options::default());
    assert_eq!(show(&rows, &reader), ["e1 a->b knows w=Double(0.5)", "e2 a->b edge "]);
    let text = ":ID,:START_ID(person),:END_ID,:TYPE\nr1,ann,x,LIKES\n";
    let (rows, _, reader) = read("e.csv", text, &Options::default());
    assert_eq!(show(&rows, &reader), ["r1 person:ann->x LIKES "]);
    let options = Options { user_provided_edge_ids: false, ..Options::default() };
    let (rows, _, reader) = read("e.csv", ":START_ID,:END_ID,:TYPE\na,b,LIKES\n", &options);
    assert_eq!(show(&rows, &reader), ["- a->b LIKES "]);
    let (rows, _, reader) =
        read("n.csv", "name:ID(person),born:Date,:LABEL\nann,1815-12-10,A;B\n", &Options::default());
    let expected = "person:ann [A,B] name=String(\"ann\") born=Temporal(Date(1815-12-10))";
    assert_eq!(show(&rows, &reader), [expected]);
    let text = ":ID,born:Date,wait:Duration,at:Time\nann,soon,,\nbob,,1 day,\neve,,,25:00\n";
    let (rows, problems, _) = read("n.csv", text, &Options::default());
    assert_eq!(
        problems,
        [
            "n.csv, line 2, column born:Date, value \"soon\": not a date: the year needs 4 digits, found \"soon\"",
            "n.csv, line 3, column wait:Duration, value \"1 day\": not a duration: a duration begins with P",
            "n.csv, line 4, column at:Time, value \"25:00\": not a time: parameter 'hour' is not in the required range \
             of 0..=23",
        ]
    );
    assert_eq!(rows.len(), 0);
}

#[test]
fn bad_rows_are_reported_and_reading_goes_on() {
    let mut text = b"~id,~label,age:Int,born:Date,f:float\n".to_vec();
    text.extend(b"1,p,x,,\n2,p,,2023-02-30,\n3,p\n4,p,99999999999,,\n,p,,,\n6,p,1,2024-01-01,INF\n");
    text.extend(b"7,\xff\xfe,,,\n8,\"\",,,\n9,p,9,2024-01-01,1.5\n10,\"p,,,\n");
    let (rows, problems, _) = read("v.csv", text, &Options::default());
    assert_eq!(rows.len(), 1);
    assert_eq!(
        problems,
        [
            "v.csv, line 2, column age:Int, value \"x\": not a whole number, as int asks for",
            "v.csv, line 3, column born:Date, value \"2023-02-30\": there is no such date",
            "v.csv, line 4: 2 fields, the header has 5",
            "v.csv, line 5, column age:Int, value \"99999999999\": the number is out of the range of int",
            "v.csv, line 6, column ~id, value \"\": the id is missing",
            "v.csv, line 7, column f:float, value \"INF\": not a number, as float asks for",
            "v.csv, line 8, column ~label, value \"\u{fffd}\u{fffd}\": not valid UTF-8",
            "v.csv, line 9, column ~label, value \"\": a label cannot be empty",
            "v.csv, line 11: the file ends inside a quoted field",
        ]
    );
}

#[test]
fn lines_are_physical() {
    let (_, problems, _) = read("v.csv", "~id,a,n:int\n1,\"x\ny\nz\",1\n\n2,b,bad\n", &Options::default());
    assert_eq!(problems, ["v.csv, line 6, column n:int, value \"bad\": not a whole number, as int asks for"]);
}

#[test]
fn a_long_value_is_cut_in_the_report() {
    let (_, problems, _) = read("v.csv", format!("~id,n:int\n1,{}\n", "é".repeat(300)), &Options::default());
    assert!(problems[0].len() < 300, "{}", problems[0]);
    assert!(problems[0].contains("é…\""), "{}", problems[0]);
}

/// `n` bytes of one field, generated as they are read.
struct Field(u64);

impl Read for Field {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = (out.len() as u64).min(self.0) as usize;
        out[..n].fill(b'x');
        self.0 -= n as u64;
        Ok(n)
    }
}

#[test]
fn a_field_of_100_mb_is_refused_without_being_held() {
    let options = Options { max_record_bytes: 1 << 20, ..Options::default() };
    for quote in ["", "\""] {
        let stream = Cursor::new(format!("~id,a\n1,ok\n2,{quote}"))
            .chain(Field(100 << 20))
            .chain(Cursor::new(format!("{quote}\n3,ok\n")));
        let mut reader = open(stream, "v.csv", None, &options).unwrap();
        assert!(matches!(reader.next(), Some(Ok(_))));
        match reader.next() {
            Some(Err(Problem::Row(rejected))) => {
                assert_eq!(
                    rejected.to_string(),
                    "v.csv, line 3: the record has more than 1048576 bytes, the limit"
                );
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(reader.next(), Some(Ok(Row::Vertex(v))) if v.id == "3" && v.line == 4));
        assert!(reader.next().is_none());
    }
}

#[test]
fn a_field_within_the_limit_is_read_whole() {
    let long = "y".repeat(3 << 20);
    let (rows, problems, _) = read("v.csv", format!("~id,a\n1,{long}\n"), &Options::default());
    assert!(problems.is_empty());
    assert!(matches!(&rows[0], Row::Vertex(v) if v.properties[0].value == Value::string(long)));
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn bzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn many_rows() -> String {
    let mut text = "~id,a:long\n".to_owned();
    let mut x = 1_u64;
    for i in 0..20_000 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text += &format!("v{i},{}\n", x >> 2);
    }
    text
}

#[test]
fn compressed_files_are_told_by_extension() {
    let text = many_rows();
    for (name, bytes) in [("a.csv.gz", gzip(text.as_bytes())), ("a.csv.BZ2", bzip(text.as_bytes()))] {
        let (rows, problems, _) = read(name, bytes.clone(), &Options::default());
        assert_eq!((rows.len(), problems.len()), (20_000, 0), "{name}");
        // Several members in sequence form one file.
        let more = if name.ends_with("gz") { gzip(b"x,1\n") } else { bzip(b"x,1\n") };
        let (rows, problems, _) = read(name, [bytes, more].concat(), &Options::default());
        assert_eq!((rows.len(), problems.len()), (20_001, 0), "{name}");
    }
}

#[test]
fn truncated_files_name_the_file_and_the_rows_read() {
    let text = many_rows();
    for (name, bytes) in [("a.csv.gz", gzip(text.as_bytes())), ("a.csv.bz2", bzip(text.as_bytes()))] {
        for cut in [bytes.len() / 2, bytes.len() - 3] {
            let result = open(Cursor::new(bytes[..cut].to_vec()), name, None, &Options::default());
            let mut rows = 0;
            let error = match result {
                Err(e) => e.to_string(),
                Ok(mut reader) => loop {
                    match reader.next() {
                        Some(Ok(_)) => rows += 1,
                        Some(Err(Problem::File(e))) => break e.to_string(),
                        other => panic!("{name} cut at {cut}: {other:?}"),
                    }
                },
            };
            let start = format!("{name}: reading failed after {rows} rows: ");
            assert!(error.starts_with(&start), "{error}");
            if name.ends_with("gz") {
                assert!(error.contains("cut short"), "{error}");
            }
        }
    }
}

#[test]
fn wrong_headers_name_file_line_column_and_value() {
    for (text, expected) in [
        ("~label,a\n", "f.csv, line 1, column ~id, value \"~id\": the column ~id is missing"),
        ("", "f.csv, line 1: the file is empty, it has no header"),
        (
            "id,a\n",
            "f.csv, line 1, column id, value \"id\": neither a Gremlin (~id) nor an openCypher (:ID) header",
        ),
        ("~id,a,a\n", "f.csv, line 1, column a, value \"a\": the property \"a\" appears twice in the header"),
    ] {
        let Err(error) = open(Cursor::new(text), "f.csv", None, &Options::default()) else {
            panic!("{text}")
        };
        assert_eq!(error.to_string(), expected);
        assert!(error.rejected().is_some());
    }
}

#[test]
fn entries_of_the_error_log() {
    let text = "~id,n:int\n1,x\n";
    let mut reader = open(Cursor::new(text), "s3://b/v.csv", None, &Options::default()).unwrap();
    let Some(Err(Problem::Row(rejected))) = reader.next() else { panic!() };
    assert_eq!(
        serde_json::to_value(&rejected).unwrap(),
        serde_json::json!({
            "errorCode": "PARSING_ERROR",
            "errorMessage": "s3://b/v.csv, line 2, column n:int, value \"x\": not a whole number, as int asks for",
            "fileName": "s3://b/v.csv",
            "recordNum": 2,
            "column": "n:int",
            "value": "x",
        })
    );
}

#[test]
fn lines_are_counted_whatever_ends_them() {
    for end in ["\n", "\r\n", "\r"] {
        let text = ["~id,n:Int", "a,1", "", "\"b", "c\",2", "d,many", "e"].join(end);
        let rows = open(Cursor::new(text), "v.csv", None, &Options::default()).unwrap();
        let lines: Vec<_> = rows
            .map(|item| match item {
                Ok(Row::Vertex(row)) => (row.line, true),
                Err(Problem::Row(rejected)) => (rejected.line, false),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(lines, [(2, true), (4, true), (6, false), (7, false)], "{end:?}");
    }
}

#[test]
fn a_file_that_is_not_compressed_as_its_name_says_is_not_called_cut_short() {
    let open = |name: &str, bytes: &[u8]| {
        let reader = Cursor::new(bytes.to_vec());
        open(reader, name, None, &Options::default()).err().expect("no rows").to_string()
    };
    for (name, format) in [("v.csv.gz", "gzip"), ("v.csv.bz2", "bzip2")] {
        for text in ["~id\na\n", "~id,~label,name:String\na,P,Ada\n", "x"] {
            let said = open(name, text.as_bytes());
            let parts = [name, "not in the format", format];
            assert!(parts.iter().all(|part| said.contains(part)) && !said.contains("cut short"), "{said}");
        }
        assert!(open(name, b"").contains("the file is empty"), "{name}");
    }
    assert!(open("v.csv.gz", b"\x1f\x8b").contains("cut short"));
    assert!(open("v.csv.bz2", b"BZh9").contains("cut short"));
}
