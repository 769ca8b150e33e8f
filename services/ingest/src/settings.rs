//! Settings of the function: its environment variables.

use tidegraph_fleet::access::Access;
use tidegraph_fleet::access::environment::{Invalid, Variables};

/// Default of [`Settings::task_bytes`]. With what a task keeps of the text, this is a few times less than the memory of
/// the smallest function.
const TASK_BYTES: u64 = 32 << 20;

/// Settings of a function.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Access to the fleet.
    pub access: Access,
    /// Bucket with segments and jobs; the workers use the same.
    pub bucket: String,
    /// Approximate bytes of text that one task reads.
    pub task_bytes: u64,
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
        let access = found.access()?;
        let Some(bucket) = found.bucket()? else {
            let reason = "segments have to be where storage nodes look for them".to_owned();
            return Err(Invalid::Missing { variable: "TIDEGRAPH_OBJECTS".into(), reason });
        };
        let task_bytes = found.number("TASK_BYTES", TASK_BYTES)?;
        found.finish()?;
        Ok(Self { access, bucket, task_bytes })
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
    fn variables_are_checked() {
        let found = read(&[("OBJECTS", "s3://data"), ("GRAPH", "people"), ("TASK_BYTES", "1000")]).unwrap();
        assert_eq!((&*found.bucket, &*found.access.graph, found.task_bytes), ("data", "people", 1000));
        assert!(read(&[]).unwrap_err().contains("TIDEGRAPH_OBJECTS"));
        let of_bucket = ("OBJECTS", "s3://b");
        assert!(read(&[of_bucket, ("TASK_BYTES", "0")]).unwrap_err().contains("above 0"));
        assert!(read(&[of_bucket, ("TASKS", "1")]).unwrap_err().contains("TIDEGRAPH_TASKS"));
        for objects in ["b", "s3://", "s3://b/below", "file:///b"] {
            let error = read(&[("OBJECTS", objects)]).unwrap_err();
            assert!(error.contains(objects) && error.contains("s3://"), "{error}");
        }
    }
}
