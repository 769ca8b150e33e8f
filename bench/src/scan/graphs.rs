//! The graphs of the scan workload. They are written to files and loaded by the loader, as files of users are.

use super::super::Flags;
use super::super::identity::source_of;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegraph_engine::loads::{Dialect, LoadSpec};
use tidegraph_engine::{Database, Options};
use tidegraph_types::{Gui, Str};

/// Bytes of a vertex in the fixed-width columns `whole`, `long`, `real` and `yes`.
pub const COLUMN_BYTES: usize = 4 + 8 + 8 + 1;

/// A graph in memory, and the GUIs of its vertices by number.
pub struct Graph {
    pub database: Arc<Database>,
    pub guis: Vec<Gui>,
    pub edges: usize,
}

impl Graph {
    /// Loads vertices 0 to `vertices`, with or without properties, and edges between them.
    pub fn load(
        flags: &Flags,
        vertices: usize,
        edges: &[(u32, u32)],
        properties: bool,
    ) -> anyhow::Result<Self> {
        let files = tempfile::tempdir()?;
        write_vertices(&files.path().join("1-vertices.csv"), vertices, properties)?;
        if !edges.is_empty() {
            let mut file = BufWriter::new(std::fs::File::create(files.path().join("2-edges.csv"))?);
            writeln!(file, ":START_ID,:END_ID,:TYPE")?;
            edges.iter().try_for_each(|(from, to)| writeln!(file, "v{from},v{to},TO"))?;
            file.flush()?;
        }
        let database = Database::open(Options::default())?;
        let spec = LoadSpec {
            user_provided_edge_ids: false,
            ..LoadSpec::new(vec![source_of(files.path())], Some(Dialect::OPENCYPHER))
        };
        let id = database.loads().submit(spec)?;
        let status = database.loads().wait(&id)?;
        let state = status.overall.state.as_str();
        anyhow::ensure!(state == "LOAD_COMPLETED", "the load ended as {state}: {:?}", status.overall.message);
        let guis = (0..vertices).map(|n| database.plain_gui(&Str::from(format!("v{n}")))).collect();
        let graph = Self { database, guis, edges: edges.len() };
        if !flags.quick {
            graph.settle()?;
        }
        Ok(graph)
    }

    /// Waits until the store keeps no older version, which is a minute after the load. Until then lists of edges
    /// carry versions, and pages are read row by row.
    #[allow(clippy::disallowed_methods, reason = "this measures the world")]
    fn settle(&self) -> anyhow::Result<()> {
        const MOST: Duration = Duration::from_secs(180);
        let start = Instant::now();
        while self.database.memory().versions > self.guis.len() {
            let versions = self.database.memory().versions;
            anyhow::ensure!(start.elapsed() < MOST, "{versions} bytes of older versions stay");
            std::thread::sleep(Duration::from_millis(500));
        }
        Ok(())
    }
}

fn write_vertices(path: &Path, vertices: usize, properties: bool) -> anyhow::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    if !properties {
        writeln!(file, ":ID,:LABEL")?;
        (0..vertices).try_for_each(|n| writeln!(file, "v{n},Thing"))?;
    } else {
        writeln!(file, ":ID,:LABEL,whole:Int,long:Long,real:Double,yes:Bool")?;
        for n in 0..vertices {
            let number = n.wrapping_mul(0x9e37_79b9) % 1_000_000;
            let (real, yes) = (number as f64 / 7.0, number % 2 == 0);
            writeln!(file, "v{n},Thing,{number},{number},{real},{yes}")?;
        }
    }
    file.flush()?;
    Ok(())
}

/// Returns edges so that each vertex has `degree` outgoing ones; the fractional part is distributed at random.
pub fn regular(flags: &Flags, vertices: usize, degree: f64) -> Vec<(u32, u32)> {
    let mut random = ChaCha8Rng::seed_from_u64(flags.seed);
    let edges = (vertices as f64 * degree) as usize;
    let whole = degree as usize * vertices;
    let mut any = || random.random_range(0..vertices as u32);
    (0..edges).map(|n| if n < whole { ((n % vertices) as u32, any()) } else { (any(), any()) }).collect()
}
