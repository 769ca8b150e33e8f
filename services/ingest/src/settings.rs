//! Settings of the function: its environment variables.

use tidegraph_engine::loads::Allowed;
use tidegraph_fleet::access::Access;
use tidegraph_fleet::access::environment::{Invalid, Variables, wrong};

/// Default of [`Settings::task_bytes`]. With what a task keeps of the text, this is a few times less than the memory of
/// the smallest function.
const TASK_BYTES: u64 = 32 << 20;

/// Settings of a function.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The graphs, at least one.
    pub graphs: Vec<OfGraph>,
    /// Bucket with segments and jobs; the workers use the same.
    pub bucket: String,
    /// Approximate bytes of text that one task reads.
    pub task_bytes: u64,
}

/// A graph of the function.
#[derive(Clone, Debug)]
pub struct OfGraph {
    /// Access to it.
    pub access: Access,
    /// What its loads may read.
    pub load_from: Allowed,
}

impl Settings {
    /// Reads and checks environment variables.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if a variable is missing, wrong or not known.
    pub fn read(environment: impl IntoIterator<Item = (String, String)>) -> Result<Self, Invalid> {
        let instead = "workers load by POST /loader";
        let mut found = Variables::of_function(environment, instead)?;
        let accesses = found.accesses()?;
        let Some(bucket) = found.bucket()? else {
            let reason = "segments have to be where storage nodes look for them".to_owned();
            return Err(Invalid::Missing { variable: "TIDEGRAPH_OBJECTS".into(), reason });
        };
        let task_bytes = found.number("TASK_BYTES", TASK_BYTES)?;
        let Some(places) = found.text("LOAD_FROM") else {
            let reason = "it names the bucket, or the prefix in it, where files are dropped".to_owned();
            return Err(Invalid::Missing { variable: "TIDEGRAPH_LOAD_FROM".into(), reason });
        };
        let allowed = places.split(',').map(|place| {
            let place = Some(place).filter(|place| place.starts_with("s3://"));
            place.and_then(|place| Allowed::parse([place]).ok())
        });
        let allowed: Option<Vec<Allowed>> = allowed.collect();
        let expected = "s3:// with a bucket, or with a prefix in it; with several graphs one for each, in their order, with commas between";
        let allowed = allowed.filter(|allowed| allowed.len() == accesses.len());
        let allowed = allowed.ok_or_else(|| wrong("LOAD_FROM", &places, expected))?;
        found.finish()?;
        let graphs = accesses.into_iter().zip(allowed);
        let graphs = graphs.map(|(access, load_from)| OfGraph { access, load_from }).collect();
        Ok(Self { graphs, bucket, task_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_fleet::access::environment::OF_LAMBDA;

    fn read(ours: &[(&str, &str)]) -> Result<Settings, String> {
        let lambda = OF_LAMBDA.map(|name| (name.to_owned(), "1".to_owned()));
        let ours = ours.iter().map(|(name, value)| (format!("TIDEGRAPH_{name}"), (*value).to_owned()));
        Settings::read(lambda.into_iter().chain(ours)).map_err(|error| error.to_string())
    }

    #[test]
    fn each_graph_has_a_place_of_its_own() {
        let of = |places| read(&[("OBJECTS", "s3://d"), ("GRAPH", "a,b"), ("LOAD_FROM", places)]);
        let found = of("s3://drops/drop/a/,s3://drops/drop/b/").unwrap().graphs;
        let places: Vec<_> =
            found.iter().map(|of| (of.access.graph.as_str(), of.load_from.clone())).collect();
        let place = |path| Allowed::parse([path]).unwrap();
        assert_eq!(places, [("a", place("s3://drops/drop/a")), ("b", place("s3://drops/drop/b"))]);
        for wrong in ["s3://drops/drop/a/", "s3://drops/a,s3://drops/b,s3://drops/c", "s3://drops/a,drops"] {
            assert!(of(wrong).unwrap_err().contains(wrong), "{wrong}");
        }
    }

    #[test]
    fn variables_are_checked() {
        let drops = ("LOAD_FROM", "s3://drops/drop/people/");
        let found =
            read(&[("OBJECTS", "s3://data"), ("GRAPH", "people"), ("TASK_BYTES", "1000"), drops]).unwrap();
        assert_eq!(
            (&*found.bucket, &*found.graphs[0].access.graph, found.task_bytes),
            ("data", "people", 1000)
        );
        assert!(read(&[]).unwrap_err().contains("TIDEGRAPH_OBJECTS"));
        let of_bucket = ("OBJECTS", "s3://b");
        assert_eq!(found.graphs[0].load_from, Allowed::parse(["s3://drops/drop/people"]).unwrap());
        assert!(read(&[of_bucket]).unwrap_err().contains("TIDEGRAPH_LOAD_FROM"));
        for place in ["drops", "/etc", "s3://Drops", "s3://"] {
            let error = read(&[of_bucket, ("LOAD_FROM", place)]).unwrap_err();
            assert!(error.contains("TIDEGRAPH_LOAD_FROM") && error.contains(place), "{error}");
        }
        assert!(read(&[of_bucket, ("TASK_BYTES", "0")]).unwrap_err().contains("above 0"));
        assert!(read(&[of_bucket, drops, ("TASKS", "1")]).unwrap_err().contains("TIDEGRAPH_TASKS"));
        for objects in ["b", "s3://", "s3://b/below", "file:///b"] {
            let error = read(&[("OBJECTS", objects)]).unwrap_err();
            assert!(error.contains(objects) && error.contains("s3://"), "{error}");
        }
    }
}
