//! Writes the first inputs of every target: texts of the languages' scenarios, golden files, and encoded requests.
//!
//! Writes to `TARGET/` in the folder that `TIDEGRAPH_SEEDS` names. Runs in the root of the repository. It is a target
//! itself, because programs that are instrumented need the fuzzer's symbols.
#![no_main]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use tidegraph_platform::Objects;
use tidegraph_storage::CheckpointMeta;
use tidegraph_types::Token;
use tidegraph_wire::Message;
use tidegraph_wire::proto::{AplRequest, Call, PartitionCall, PartitionsCall, call};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

libfuzzer_sys::fuzz_target!(
    init: end(std::env::var("TIDEGRAPH_SEEDS").map_err(Into::into).and_then(|to| write_all(Path::new(&to)))),
    |_input: &[u8]| {}
);

/// Ends the process before the fuzzer starts.
fn end(written: Result<()>) {
    if let Err(error) = &written {
        eprintln!("cannot write the first inputs: {error}");
    }
    std::process::exit(written.is_err().into());
}

fn write_all(folder: &Path) -> Result<()> {
    let opencypher = texts(Path::new("engine-core/engine/tests/scenarios/opencypher"))?;
    let gremlin = texts(Path::new("engine-core/engine/tests/scenarios/gremlin"))?;
    write(folder, "http", bodies(&opencypher, &gremlin))?;
    write(folder, "opencypher", opencypher.into_iter().map(String::into_bytes))?;
    write(folder, "gremlin", gremlin.into_iter().map(String::into_bytes))?;
    write(folder, "csv", tables()?)?;
    write(folder, "graph_file", graph_files())?;
    write(folder, "log", golden(|name| name.starts_with("log-") && name.ends_with(".bin"))?)?;
    write(folder, "segment", golden(|name| name.starts_with("segment-") && name.ends_with(".bin"))?)?;
    write(folder, "checkpoint", [checkpoint()?])?;
    write(folder, "bolt", sessions())?;
    write(folder, "gremlin_io", driver_requests())?;
    let requests = requests()?;
    write(folder, "call", requests.iter().filter_map(|request| call_of(request)))?;
    write(folder, "apl", requests)
}

/// Returns files that hold graphs, behind the byte that chooses the format.
fn graph_files() -> Vec<Vec<u8>> {
    let graphson = concat!(
        r#"{"id":{"@type":"g:Int32","@value":1},"label":"person","outE":{"knows":[{"id":7,"inV":2,"properties":"#,
        r#"{"weight":{"@type":"g:Double","@value":0.5}}}]},"properties":{"name":[{"id":0,"value":"marko","#,
        r#""properties":{"since":1997}}]}}"#,
        "\n",
        r#"{"id":2,"label":"person","inE":{"knows":[{"id":7,"outV":1}]}}"#,
        "\n"
    );
    let graphml = concat!(
        r#"<?xml version="1.0" ?><graphml><key id="labelV" for="node" attr.name="labelV" attr.type="string"/>"#,
        r#"<key id="a" for="node" attr.name="age" attr.type="int"><default>3</default></key>"#,
        r#"<graph id="G" edgedefault="directed"><node id="1"><data key="labelV">p&amp;q</data></node>"#,
        r#"<node id="2"><data key="a">29</data><![CDATA[x]]></node><edge id="7" source="1" target="2"/></graph></graphml>"#
    );
    let of = |choice: u8, text: &str| [&[choice], text.as_bytes()].concat();
    vec![of(0, graphson), of(1, graphson), of(2, graphml), of(3, graphml)]
}

fn write(folder: &Path, target: &str, inputs: impl IntoIterator<Item = Vec<u8>>) -> Result<()> {
    let folder = folder.join(target);
    fs::create_dir_all(&folder)?;
    for (number, input) in inputs.into_iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:04}")), input)?;
    }
    Ok(())
}

/// Returns requests of Gremlin's drivers, behind the byte that chooses the format.
fn driver_requests() -> Vec<Vec<u8>> {
    let text = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    let typed = |value: &str| [&[3, 0][..], &text(value)].concat();
    let count = |count: u32| count.to_be_bytes().to_vec();
    let step = |name: &str, arguments: &[Vec<u8>]| {
        [text(name), count(arguments.len() as u32), arguments.concat()].concat()
    };
    let predicate = |name: &str, operand: Vec<u8>| [vec![0x1E, 0], text(name), count(1), operand].concat();
    let list = |items: &[Vec<u8>]| [vec![9, 0], count(items.len() as u32), items.concat()].concat();
    let constant = |code: u8, name: &str| [vec![code, 0], typed(name)].concat();
    let map = [vec![0x0A, 0], count(1), constant(0x20, "id"), typed("a")].concat();
    let options = [vec![0x29, 0], text("a.b.OptionsStrategy"), count(1), typed("batchSize"), vec![1, 0, 0, 0, 0, 9]];
    let anonymous = [vec![0x15, 0], count(1), step("out", &[]), count(0)].concat();
    let steps = [
        step("V", &[typed("a"), vec![2, 0, 0, 0, 0, 0, 0, 0, 0, 1]]),
        step("has", &[typed("n"), predicate("gt", vec![7, 0, 0x3F, 0xF8, 0, 0, 0, 0, 0, 0])]),
        step("has", &[typed("n"), predicate("within", list(&[typed("x"), vec![0xFE, 1]]))]),
        step("order", &[]),
        step("by", &[typed("n"), constant(0x1A, "desc")]),
        step("repeat", &[anonymous]),
        step("mergeV", &[map]),
    ];
    let source = step("withStrategies", &[options.concat()]);
    let bytecode =
        [vec![0x15, 0], count(steps.len() as u32), steps.concat(), count(1), source].concat();
    let head = [vec![0, 0x81], vec![7; 16], text("bytecode"), text("traversal"), count(1), typed("gremlin")];
    let graphson = [
        r#"{"requestId":{"@type":"g:UUID","@value":"00000000-0000-0000-0000-000000000001"},"op":"bytecode","processor":
        "traversal","args":{"@type":"g:Map","@value":["gremlin",{"@type":"g:Bytecode","@value":{"step":[["V",{"@type":
        "g:Int64","@value":1}],["has","n",{"@type":"g:P","@value":{"predicate":"gt","value":{"@type":"g:Double",
        "@value":1.5}}}],["where",{"@type":"g:Bytecode","@value":{"step":[["out"]]}}]],"source":[["withStrategies",
        {"@type":"g:OptionsStrategy","@value":{"fqcn":"a.b","conf":{"batchSize":9}}}]]}},"aliases",{"@type":"g:Map",
        "@value":["g","g"]}]}}"#,
        r#"{"requestId":"00000000-0000-0000-0000-000000000001","op":"eval","args":{"gremlin":"g.V(x)","bindings":
        {"x":{"@type":"g:Set","@value":[{"@type":"g:Date","@value":7},{"@type":"gx:BigInteger","@value":"7"}]}}}}"#,
    ];
    let graphson = graphson.iter().map(|text| [&[1][..], text.as_bytes()].concat());
    std::iter::once([head.concat(), bytecode].concat()).chain(graphson).collect()
}

/// Returns what clients of Bolt send, behind the byte that chooses the version.
fn sessions() -> impl Iterator<Item = Vec<u8>> {
    let text = |text: &str| [&[0x80 | text.len() as u8][..], text.as_bytes()].concat();
    let entry = |key: &str, value: &[u8]| [&text(key)[..], value].concat();
    let map = |entries: &[Vec<u8>]| [&[0xA0 | entries.len() as u8][..], &entries.concat()].concat();
    let message = |tag: u8, fields: &[Vec<u8>]| {
        let bytes = [&[0xB0 | fields.len() as u8, tag][..], &fields.concat()].concat();
        [&(bytes.len() as u16).to_be_bytes()[..], &bytes, &[0, 0]].concat()
    };
    let time = [&[0xB3, b'I', 0xCA, 0x66, 0x38, 0x81, 0x99, 5, 0][..]].concat();
    let values = map(&[
        entry("list", &[0x93, 0xC0, 0xC3, 0xC1, 0x3F, 0xF8, 0, 0, 0, 0, 0, 0]),
        entry("number", &[0xCB, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        entry("time", &time),
        entry("map", &map(&[entry("key", &text("value"))])),
    ]);
    let hello = message(0x01, &[map(&[entry("user_agent", &text("a client"))])]);
    let logon = message(0x6A, &[map(&[entry("scheme", &text("none"))])]);
    let run = message(0x10, &[text("RETURN $map"), values, map(&[entry("mode", &text("r"))])]);
    let pull = message(0x3F, &[map(&[entry("n", &[0xFF])])]);
    let transaction = [message(0x11, &[map(&[])]), message(0x12, &[]), message(0x13, &[]), message(0x0F, &[])];
    let route = message(0x66, &[map(&[]), vec![0x90], map(&[])]);
    let session = [hello.clone(), logon.clone(), run.clone(), pull.clone(), route.clone()].concat();
    [hello, logon, run, pull, transaction.concat(), route, session]
        .into_iter()
        .map(|sent| [&[8][..], &sent].concat())
}

/// Returns the files below a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() { all.extend(files(&path)?) } else { all.push(path) }
    }
    all.sort();
    Ok(all)
}

/// Returns the texts of scenarios: what stands between `"""`, and the first column of examples.
fn texts(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for file in files(folder)? {
        let content = fs::read_to_string(file)?;
        texts.extend(content.split("\"\"\"").skip(1).step_by(2).map(|text| text.trim().to_owned()));
        let mut in_examples = false;
        for line in content.lines().map(str::trim) {
            in_examples =
                line.starts_with("Examples:") || in_examples && (line.is_empty() || line.starts_with('|'));
            if let Some(row) = line.strip_prefix('|').filter(|_| in_examples) {
                let cell = row.replace("\\|", "\u{0}");
                let first = cell.split('|').next().unwrap_or_default().replace('\u{0}', "|");
                texts.push(first.trim().to_owned());
            }
        }
    }
    texts.retain(|text| !text.is_empty());
    texts.sort();
    texts.dedup();
    Ok(texts)
}

/// Returns bodies of requests. Their first byte chooses path and content type: see the target `http`.
fn bodies(opencypher: &[String], gremlin: &[String]) -> Vec<Vec<u8>> {
    const STEP: usize = 20;
    let body = |choice: u8, json: serde_json::Value| [vec![choice], json.to_string().into_bytes()].concat();
    let parameters = serde_json::json!({"n": 1, "s": "x", "l": [1.5, null, true], "m": {"k": [{}]}});
    let queries = opencypher.iter().step_by(STEP);
    let steps = gremlin.iter().step_by(STEP);
    let mut bodies: Vec<Vec<u8>> = queries
        .map(|text| body(0, serde_json::json!({"query": text, "parameters": parameters.to_string()})))
        .chain(steps.map(|text| body(1, serde_json::json!({"gremlin": text}))))
        .collect();
    bodies.push(b"\x04query=RETURN%20%24n%20AS%20n&parameters=%7B%22n%22%3A1%7D".to_vec());
    bodies.push(b"\x05gremlin=g.V%28%29.count%28%29".to_vec());
    bodies.push(b"\x07cancelQuery=true&queryId=x&silent=true".to_vec());
    let load = serde_json::json!({
        "source": "s3://bucket/prefix/", "format": "csv", "region": "eu-west-1", "iamRoleArn": "arn:aws:iam::1:role/x",
        "mode": "AUTO", "failOnError": "TRUE", "parallelism": "HIGH", "queueRequest": true, "dependencies": ["x"],
        "parserConfiguration": {"allowEmptyStrings": true}, "userProvidedEdgeIds": false,
    });
    bodies.push(body(2, load));
    bodies
}

/// Returns files for the target `csv`, behind the byte that chooses their name and the options.
fn tables() -> Result<Vec<Vec<u8>>> {
    let mut tables = Vec::new();
    for file in files(Path::new("integration-tests/data"))? {
        let choice = match file.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => 0,
            Some("gz") => 1,
            Some("bz2") => 2,
            _ => continue,
        };
        for options in [0, 4, 8, 12] {
            // The low bits choose the name by their remainder.
            let first = (0..3).map(|more| options + more).find(|byte| byte % 3 == choice).unwrap_or(choice);
            tables.push([vec![first], fs::read(&file)?].concat());
        }
    }
    tables.push(b"\x03~id,~label,a:Int,b:Date(single),c:String[],d:Double(set),e\\:x:Bool\n1,A;B,1,2024-01-01,x;y\\;z,1e3,true\n".to_vec());
    tables.push(
        b"\x09:ID(s),:LABEL,p:ID,n:int,t:DateTime,l:string[]\n\"1\",A;B,7,2,2024-01-01T00:00:00Z,a;b\n"
            .to_vec(),
    );
    tables.push(b"\x09:ID,:START_ID,:END_ID,:TYPE,w:float\n1,a,b,T,1.5\n".to_vec());
    Ok(tables)
}

/// Returns golden files.
fn golden(wanted: impl Fn(&str) -> bool) -> Result<Vec<Vec<u8>>> {
    let all = files(Path::new("contracts/golden"))?;
    let named = |path: &&PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(&wanted);
    Ok(all.iter().filter(named).map(fs::read).collect::<std::result::Result<_, _>>()?)
}

/// Returns the requests of the golden file.
fn requests() -> Result<Vec<Vec<u8>>> {
    let file: serde_json::Value = serde_json::from_slice(&fs::read("contracts/golden/apl-v1.json")?)?;
    let mut all = Vec::new();
    for kind in ["requests", "answers"] {
        for one in file[kind].as_array().into_iter().flatten() {
            let text = one["bytes"].as_str().ok_or("a request without bytes")?;
            let bytes: std::result::Result<Vec<u8>, _> =
                (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16)).collect();
            all.push(bytes?);
        }
    }
    Ok(all)
}

/// Returns a request as a call of another process, if it is a request.
fn call_of(request: &[u8]) -> Option<Vec<u8>> {
    let request = AplRequest::decode(request).ok().filter(|request| request.kind.is_some())?;
    let part = PartitionCall { partition: 0, request: Some(request), ..PartitionCall::default() };
    let parts = PartitionsCall { parts: vec![part], ..PartitionsCall::default() };
    Some(Call { kind: Some(call::Kind::Apl(parts)), ..Call::default() }.encode_to_vec())
}

/// Returns a checkpoint as the target of this name reads it.
fn checkpoint() -> Result<Vec<u8>> {
    let objects = Objects::memory()?;
    let meta = CheckpointMeta {
        graph: "people".into(),
        next_sid: 900,
        tokens: (1..).map(Token).zip(["A", "B", "T", "p", "q", "w"].map(Into::into)).collect(),
        ..CheckpointMeta::default()
    };
    let manifest = tidegraph_fuzz::store().checkpoint(tidegraph_fuzz::VERSION, &objects, "c", meta)?;
    let bytes = objects.get(&manifest.object)?;
    let partition = objects.get(&manifest.partitions[0].objects[0].path)?;
    let length = u16::try_from(bytes.len())?.to_le_bytes();
    Ok([&length[..], &bytes[..], &partition[..]].concat())
}
