//! Tests of files that hold a graph.

use super::*;
use std::fmt::Write as _;
use std::io::Cursor;
use tidegraph_types::ErrorCode;

/// Gives its bytes a few at a time, so that each state meets the end of a buffer.
struct Trickle {
    bytes: Cursor<Vec<u8>>,
    most: usize,
}

impl Read for Trickle {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = into.len().min(self.most);
        self.bytes.read(&mut into[..most])
    }
}

fn read_by(
    most: usize,
    text: &str,
    format: GraphFormat,
    elements: Elements,
    limit: usize,
) -> Result<Vec<FileElement>, Error> {
    let input = Trickle { bytes: Cursor::new(text.as_bytes().to_vec()), most };
    let mut reader = GraphReader::with_limit(input, "g", format, elements, limit)?;
    let mut found = vec![];
    while reader.step(&mut found)? == Step::More {}
    assert_eq!(reader.step(&mut found)?, Step::End);
    Ok(found)
}

/// Reads with buffers of several sizes, which must not make a difference; returns the elements as text.
fn read(text: &str, format: GraphFormat, elements: Elements) -> Result<String, String> {
    let results = [1, 2, 7, 1000].map(|most| {
        let found = read_by(most, text, format, elements, 1000);
        found.map(|found| found.iter().map(shown).collect::<String>()).map_err(|error| error.to_string())
    });
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    results.into_iter().next().unwrap()
}

fn shown(element: &FileElement) -> String {
    let mut text = format!("{}: {:?} {:?}", element.line, element.id, element.label);
    if let Some((source, target)) = &element.ends {
        let _ = write!(text, " {source:?} -> {target:?}");
    }
    for property in &element.properties {
        let _ = write!(text, " {}={:?}", property.key, property.value);
        for (key, value) in &property.meta {
            let _ = write!(text, "({key}={value:?})");
        }
    }
    text + "\n"
}

fn graphson(text: &str, elements: Elements) -> Result<String, String> {
    read(text, GraphFormat::GraphSon, elements)
}

fn graphml(text: &str, elements: Elements) -> Result<String, String> {
    read(text, GraphFormat::GraphMl, elements)
}

const TYPED: &str = r#"{"id":{"@type":"g:Int32","@value":1},"label":"person","outE":{"knows":[{"id":{"@type":"g:Int32","@value":7},"inV":{"@type":"g:Int32","@value":2},"properties":{"weight":{"@type":"g:Double","@value":0.5}}}]},"properties":{"name":[{"id":{"@type":"g:Int64","@value":0},"value":"marko","properties":{"since":{"@type":"g:Int32","@value":1997}}}],"age":[{"id":{"@type":"g:Int64","@value":1},"value":{"@type":"g:Int64","@value":29}}]}}
{"id":{"@type":"g:Int32","@value":2},"label":"person","inE":{"knows":[{"id":{"@type":"g:Int32","@value":7},"outV":{"@type":"g:Int32","@value":1}}]}}
"#;

#[test]
fn graphson_with_types() {
    assert_eq!(
        graphson(TYPED, Elements::Vertices).unwrap(),
        "1: Some(Int(1)) Some(\"person\") name=String(\"marko\")(since=Int(1997)) age=Long(29)\n\
         2: Some(Int(2)) Some(\"person\")\n"
    );
    assert_eq!(
        graphson(TYPED, Elements::Edges).unwrap(),
        "1: Some(Int(7)) Some(\"knows\") Int(1) -> Int(2) weight=Double(0.5)\n"
    );
}

#[test]
fn graphson_without_types() {
    let text = "\r\n{\"id\":1,\"properties\":{\"name\":[{\"id\":0,\"value\":\"a\"},{\"id\":2,\"value\":\"b\"}]}}\r\n\n\
                {\"id\":\"x\",\"label\":null,\"outE\":{\"e\":[{\"inV\":1}]}}";
    assert_eq!(
        graphson(text, Elements::Vertices).unwrap(),
        "2: Some(Int(1)) None name=String(\"a\") name=String(\"b\")\n4: Some(String(\"x\")) None\n"
    );
    assert_eq!(graphson(text, Elements::Edges).unwrap(), "4: None Some(\"e\") String(\"x\") -> Int(1)\n");
}

#[test]
fn wrong_graphson_is_refused_with_its_line() {
    for (line, message) in [
        ("{", "the line is not the JSON of a vertex: EOF while parsing an object, at column 1"),
        ("[1]", "the line is no vertex, which is an object of JSON"),
        ("{\"a\":1}", "the line is no vertex: it has no \"id\". GraphSON has a vertex on each line"),
        ("{\"id\":1,\"label\":2}", "vertex 1: \"label\" is no string"),
        ("{\"id\":1,\"properties\":{\"k\":1}}", "vertex 1: the property \"k\" is no list"),
        ("{\"id\":1,\"properties\":{\"k\":[{}]}}", "vertex 1: the property \"k\" has no \"value\""),
        (
            "{\"id\":1,\"properties\":{\"k\":[{\"value\":{\"@type\":\"g:Int32\",\"@value\":\"x\"}}]}}",
            "vertex 1: \"k\": \"x\" is not a value of the type \"g:Int32\"",
        ),
        (
            "{\"id\":1,\"properties\":{\"k\":[{\"value\":{\"@type\":\"g:Vertex\",\"@value\":{\"id\":1}}}]}}",
            "vertex 1: \"k\": values of the type \"g:Vertex\" are not supported",
        ),
        (
            "{\"@class\":\"java.util.HashMap\",\"id\":1}",
            "it names classes of Java (\"@class\"), as version 1 of GraphSON with types does: write the file without types, \
             or in version 2 or 3",
        ),
    ] {
        let refused = graphson(&format!("{{\"id\":0}}\n{line}\n"), Elements::Vertices).unwrap_err();
        assert_eq!(refused, format!("g, line 2: {message}"));
    }
    for (edges, message) in [
        ("1", "vertex 1: \"outE\" is no object"),
        ("{\"e\":1}", "vertex 1: the edges \"e\" are no list"),
        ("{\"e\":[1]}", "vertex 1, edge \"e\": it is no object"),
        ("{\"e\":[{}]}", "vertex 1, edge \"e\": it has no \"inV\""),
    ] {
        let text = format!("{{\"id\":1,\"outE\":{edges}}}");
        assert_eq!(graphson(&text, Elements::Edges).unwrap_err(), format!("g, line 1: {message}"));
    }
}

#[test]
fn a_line_that_nests_too_deep_is_refused() {
    let line = format!("{{\"id\":{}1{}}}", "[".repeat(500), "]".repeat(500));
    let error = read_by(100, &line, GraphFormat::GraphSon, Elements::Vertices, 10_000).unwrap_err();
    assert!(error.to_string().contains("recursion limit exceeded"), "{error}");
}

#[test]
fn a_line_that_is_too_long_is_refused_before_it_is_held() {
    let line = format!("{{\"id\":\"{}\"}}", "x".repeat(100_000));
    let error = read_by(100, &line, GraphFormat::GraphSon, Elements::Vertices, 1000).unwrap_err();
    assert_eq!(error.to_string(), "g, line 1: the line has more than 1000 bytes, the limit");
    assert_eq!(error.code(), ErrorCode::BadRequest);
}

#[test]
fn what_parsing_a_line_takes_is_told_before() {
    let line = format!("{{\"id\":[{}1]}}\n", "1,".repeat(10_000));
    let input = Cursor::new(line.into_bytes());
    let mut reader = GraphReader::new(input, "g", GraphFormat::GraphSon, Elements::Vertices).unwrap();
    let before = reader.held_bytes();
    let (mut most, mut found) = (0, vec![]);
    while found.is_empty() {
        reader.step(&mut found).unwrap();
        most = most.max(reader.held_bytes());
    }
    // 10,000 values of JSON in a list that has grown.
    assert!(most > before + 10_000 * 2 * size_of::<serde_json::Value>());
}

fn document(keys: &str, elements: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">{keys}\n\
         <graph id=\"G\" edgedefault=\"directed\">\n{elements}</graph></graphml>"
    )
}

const KEYS: &str = "<key id=\"labelV\" for=\"node\" attr.name=\"labelV\" attr.type=\"string\"/>\
    <key id=\"labelE\" for=\"edge\" attr.name=\"labelE\" attr.type=\"string\"/>\
    <key id=\"n\" for=\"node\" attr.name=\"name\" attr.type=\"string\"/>\
    <key id=\"a\" for=\"node\" attr.name=\"age\" attr.type=\"int\"/>\
    <key id=\"w\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"/>\
    <key id=\"y\" for=\"node\" yfiles.type=\"nodegraphics\"/>";

#[test]
fn graphml_with_labels_and_properties() {
    let text = document(
        KEYS,
        "<edge id=\"7\" source=\"1\" target=\"2\"><data key=\"labelE\">knows</data><data key=\"w\"> 0.5 </data></edge>\n\
         <node id=\"1\"><desc>a <b>bold</b> man</desc><data key=\"labelV\">person</data>\
         <data key=\"n\">a &lt;b&#x26;c&gt; <![CDATA[<d>]]></data><data key=\"a\">\n29\n</data><port name=\"p\"/></node>\n\
         <node id=\"2\"><data key=\"y\"><y:ShapeNode><y:Fill/></y:ShapeNode></data><data key=\"unknown\">x</data></node>\n\
         <edge source=\"2\" target=\"1\"/>\n",
    );
    assert_eq!(
        graphml(&text, Elements::Vertices).unwrap(),
        "5: Some(String(\"1\")) Some(\"person\") name=String(\"a <b&c> <d>\") age=Int(29)\n\
         8: Some(String(\"2\")) None\n"
    );
    assert_eq!(
        graphml(&text, Elements::Edges).unwrap(),
        "4: Some(String(\"7\")) Some(\"knows\") String(\"1\") -> String(\"2\") weight=Double(0.5)\n\
         9: None None String(\"2\") -> String(\"1\")\n"
    );
}

#[test]
fn graphml_has_all_types_and_defaults() {
    let mut keys = String::new();
    for name in ["boolean", "int", "long", "float", "double", "string", "other"] {
        let _ = write!(keys, "<key id=\"{name}\" for=\"node\" attr.name=\"{name}\" attr.type=\"{name}\"/>");
    }
    keys += "<key id=\"d\" for=\"all\" attr.name=\"d\" attr.type=\"long\"><default>3</default></key>";
    let text = document(
        &keys,
        "<node id=\"1\"><data key=\"boolean\">true</data><data key=\"int\">-1</data><data key=\"long\">2</data>\
         <data key=\"float\">1.5</data><data key=\"double\">1e3</data><data key=\"string\"/>\
         <data key=\"other\">x</data><data key=\"d\">4</data></node><node id=\"2\"/><edge source=\"1\" target=\"2\"/>",
    );
    assert_eq!(
        graphml(&text, Elements::Vertices).unwrap(),
        "4: Some(String(\"1\")) None boolean=Bool(true) int=Int(-1) long=Long(2) float=Float(1.5) double=Double(1000.0) \
         string=String(\"\") other=String(\"x\") d=Long(4)\n4: Some(String(\"2\")) None d=Long(3)\n"
    );
    assert_eq!(
        graphml(&text, Elements::Edges).unwrap(),
        "4: None None String(\"1\") -> String(\"2\") d=Long(3)\n"
    );
}

#[test]
fn wrong_graphml_is_refused_with_its_line() {
    let in_graph = |elements: &str| document(KEYS, &format!("{elements}\n"));
    for (text, message) in [
        (String::new(), "g, line 1: the file is no GraphML: it has no element"),
        ("<a/>".to_owned(), "g, line 1: the file is no GraphML: its first element is <a>, not <graphml>"),
        ("<graphml>\n<graph>".to_owned(), "g, line 2: the file ends inside of <graph>"),
        (in_graph("<node/>"), "g, line 4: <node> has no attribute \"id\""),
        (
            in_graph("<node id=\"1\"><data key=\"a\">x</data></node>"),
            "g, line 4: node \"1\", property \"age\": \"x\" is no int",
        ),
        (
            in_graph("<node id=\"1\"><data key=\"n\">&x;</data></node>"),
            "g, line 4: the entity \"x\" is not one of XML's own",
        ),
        (
            in_graph("<node id=\"1\"><data key=\"n\"><b>x</b></data></node>"),
            "g, line 4: <b> inside of <data>, whose key is that of a property",
        ),
        (
            in_graph("<node id=\"1\"><graph/></node>"),
            "g, line 4: <graph> inside of a node or an edge: graphs do not nest here",
        ),
        (in_graph("<hyperedge/>"), "g, line 4: <hyperedge>: edges have two ends here"),
    ] {
        assert_eq!(graphml(&text, Elements::Vertices).unwrap_err(), message);
    }
    let error = graphml(&in_graph("<edge source=\"1\"/>"), Elements::Edges).unwrap_err();
    assert_eq!(error, "g, line 4: <edge> has no attribute \"target\"");
    let error = graphml("<graphml></graph>", Elements::Edges).unwrap_err();
    assert!(error.starts_with("g, line 1: it is not well-formed XML: "), "{error}");
}

#[test]
fn entities_of_a_file_are_not_resolved() {
    let text = "<!DOCTYPE graphml [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;\">]><graphml><key id=\"n\" \
                attr.name=\"n\"/><graph><node id=\"1\"><data key=\"n\">&b;</data></node></graph></graphml>";
    let error = graphml(text, Elements::Vertices).unwrap_err();
    assert_eq!(error, "g, line 1: the entity \"b\" is not one of XML's own");
}

#[test]
fn long_and_deep_elements_are_refused() {
    let long = document(KEYS, &format!("<node id=\"1\"><data key=\"n\">{}</data></node>", "x".repeat(2000)));
    let error = graphml(&long, Elements::Vertices).unwrap_err();
    assert_eq!(error, "g, line 4: an element has more than 1000 bytes, the limit");
    let many = document(KEYS, &format!("<node id=\"1\">{}</node>", "<data key=\"n\">x</data>".repeat(100)));
    let error = graphml(&many, Elements::Vertices).unwrap_err();
    assert_eq!(error, "g, line 4: an element has more than 1000 bytes, the limit");
    let deep = document(KEYS, &"<desc>".repeat(200));
    let error = graphml(&deep, Elements::Vertices).unwrap_err();
    assert_eq!(error, "g, line 4: <desc> is nested deeper than 128 elements");
}

#[test]
fn addresses_are_absolute() {
    let nothing = crate::source::Allowed::nothing();
    let refused = |uri| {
        let refused = open(uri, GraphFormat::GraphSon, Elements::Vertices, &Access::to(&nothing));
        refused.map(|reader| reader.file().to_owned()).unwrap_err()
    };
    let error = refused("data/modern.json");
    assert_eq!(
        error.to_string(),
        "source data/modern.json: it is no address of a file, expected /PATH, file:///PATH or s3://BUCKET/KEY"
    );
    assert_eq!(refused("/etc/passwd").code(), ErrorCode::AccessDenied);
}
