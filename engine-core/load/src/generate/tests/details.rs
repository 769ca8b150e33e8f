//! Tests of the network with properties.

use super::*;

/// The values of vertices and edges by their keys, and the ends of edges.
#[derive(Default)]
struct Detailed {
    vertices: BTreeMap<String, BTreeMap<&'static str, Value>>,
    edges: Vec<(&'static str, String, String, BTreeMap<&'static str, Value>)>,
}

impl Detailed {
    fn new(persons: u64, seed: u64) -> Self {
        let (spec, mut this) = (spec(Graph::Snb, persons, seed), Self::default());
        let named = |table: &Table, values: &[Option<Value>]| {
            let keys = table.keys.iter().map(|(key, _)| *key);
            keys.zip(values.iter().cloned()).filter_map(|(key, value)| Some((key, value?))).collect()
        };
        each::<Error>(&spec, |element| {
            match element {
                Element::Vertex { table, id, values } => {
                    this.vertices.insert(id.to_owned(), named(table, values));
                }
                Element::Edge { table, from, to, values, .. } => {
                    this.edges.push((table.label, from.to_owned(), to.to_owned(), named(table, values)));
                }
            }
            Ok(())
        })
        .unwrap();
        this
    }

    fn number(&self, vertex: &str, key: &str) -> i64 {
        self.vertices[vertex][key].as_i64().unwrap()
    }

    /// Returns the edges of a label.
    fn edges(&self, label: &str) -> impl Iterator<Item = (&str, &str, &BTreeMap<&'static str, Value>)> {
        let of = self.edges.iter().filter(move |(l, ..)| *l == label);
        of.map(|(_, from, to, values)| (from.as_str(), to.as_str(), values))
    }
}

#[test]
fn properties_leave_the_network_as_it_is() {
    let (plain_vertices, plain) = network(100, 5);
    let (vertices, detailed) = ends(&spec(Graph::Snb, 100, 5));
    for (table, count) in plain_vertices {
        assert_eq!(vertices[table], count, "{table}");
    }
    for (table, pairs) in plain {
        if table.ends_with("_is_located_in_country") {
            // Some messages are written on a journey.
            let home = detailed[table].iter().zip(&pairs).filter(|(a, b)| a == b).count();
            near(home as f64 / pairs.len() as f64, 7.0 / 8.0, 0.05);
        } else {
            assert_eq!(detailed[table], pairs, "{table}");
        }
    }
    assert_eq!((vertices["company"], vertices["university"]), (1_540, 1_320));
    assert!(
        detailed["person_work_at_company"].len() > 80 && detailed["person_study_at_university"].len() > 60
    );
    count(&spec(Graph::Snb, 20, 5));
}

#[test]
fn dates_of_the_network_follow_each_other() {
    let graph = Detailed::new(100, 2);
    let created = |vertex: &str| graph.number(vertex, "creationDate");
    let mut since = BTreeMap::new();
    for (forum, member, values) in graph.edges("HAS_MEMBER") {
        let joined = values["joinDate"].as_i64().unwrap();
        assert!(joined > created(forum) && joined > created(member));
        since.insert((forum, member), joined);
    }
    for (forum, moderator, _) in graph.edges("HAS_MODERATOR") {
        assert!(created(forum) > created(moderator));
    }
    let authors: BTreeMap<_, _> = graph.edges("HAS_CREATOR").map(|(m, person, _)| (m, person)).collect();
    for (forum, post, _) in graph.edges("CONTAINER_OF") {
        assert!(created(post) > since[&(forum, authors[post])], "{post}");
    }
    for (comment, replied, _) in graph.edges("REPLY_OF") {
        assert!(created(comment) > created(replied));
    }
    for label in ["LIKES", "KNOWS"] {
        for (from, to, values) in graph.edges(label) {
            let date = values["creationDate"].as_i64().unwrap();
            assert!(date > created(from) && date > created(to), "{label}");
        }
    }
}

#[test]
fn persons_and_messages_have_plausible_properties() {
    let graph = Detailed::new(300, 2);
    let of = |prefix: &str| {
        let digits =
            |id: &str| id.strip_prefix(prefix).is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
        let vertices = graph.vertices.iter().filter(move |(id, _)| digits(id));
        vertices.map(|(_, values)| values).collect::<Vec<_>>()
    };
    let persons = of("person");
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    for person in &persons {
        *names.entry(person["firstName"].as_str().unwrap()).or_default() += 1;
        for list in ["speaks", "email"] {
            let Value::List(values) = &person[list] else { panic!("{list} is a list") };
            let distinct: BTreeSet<&str> = values.iter().filter_map(Value::as_str).collect();
            assert!(distinct.len() >= 2 && distinct.len() == values.len(), "{values:?}");
        }
    }
    let most = *names.values().max().unwrap();
    assert!(names.len() > 50 && most > 5 && most < 40, "{} names, {most} persons have one", names.len());
    let (posts, comments) = (of("post"), of("comment"));
    let ids: BTreeSet<i64> = posts.iter().chain(&comments).map(|m| m["id"].as_i64().unwrap()).collect();
    assert_eq!(ids.len(), posts.len() + comments.len(), "posts and comments share their ids");
    assert_eq!(ids.last(), Some(&(ids.len() as i64 - 1)));
    for message in posts.iter().chain(&comments) {
        let content = message.get("content").and_then(Value::as_str);
        assert_eq!(message["length"].as_i64().unwrap(), content.map_or(0, |c| c.len() as i64));
        assert_eq!(content.is_some(), !message.contains_key("imageFile"));
    }
    let photos = posts.iter().filter(|post| post.contains_key("imageFile")).count();
    near(photos as f64 / posts.len() as f64, 1.0 / 8.0, 0.1);
}
