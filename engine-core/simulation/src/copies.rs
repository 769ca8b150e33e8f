//! The copies of checkpoints on the disk of a node: they outlive its process, and a crash damages some of them.

use crate::objects::ProcessObjects;
use crate::process::Process;
use crate::start::SetupError;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_platform::{Objects, Random, SeededRandom};
use tidegraph_storage::checkpoint::LocalCopies;

/// Chosen so that the other settings of a world do not depend on copies.
const APART: u64 = 0xc09_1e5d;

/// The disk of a node.
pub(crate) struct NodeDisk {
    store: Arc<dyn ObjectStore>,
    objects: Objects,
    random: SeededRandom,
    reads: Arc<AtomicU64>,
}

impl NodeDisk {
    pub fn new(node: usize, seed: u64) -> Result<Self, SetupError> {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        Ok(Self {
            objects: Objects::new(store.clone(), "disk:/")?,
            store,
            random: SeededRandom::new(seed ^ APART.rotate_left(8 * node as u32)),
            reads: Arc::default(),
        })
    }

    /// Opens the copies as a process does when it starts.
    pub fn open(&self, process: &Arc<Process>) -> Result<Arc<LocalCopies>, SetupError> {
        let store = ProcessObjects::new(self.store.clone(), process.clone()).counting(self.reads.clone());
        Ok(Arc::new(LocalCopies::open(Objects::new(Arc::new(store), "disk:/")?)?))
    }

    /// Damages copies as a crash of the machine does, for they are not synced. One time in six the process starts on
    /// another machine, and all are gone. Returns how many were damaged.
    pub fn crash(&self) -> Result<u64, SetupError> {
        let is_replaced = self.random.one_in(6);
        let mut damaged = 0;
        let mut before: Option<Vec<u8>> = None;
        for object in self.objects.list("")? {
            if is_replaced {
                self.objects.delete(&object.path)?;
                continue;
            }
            let is_damaged = self.random.one_in(8);
            let mut bytes = self.objects.get(&object.path)?.to_vec();
            let whole = bytes.clone();
            if is_damaged && !bytes.is_empty() {
                let at = self.random.below(bytes.len() as u64) as usize;
                match self.random.below(4) {
                    0 => bytes.truncate(at),
                    1 => bytes[at] ^= 1 << self.random.below(8),
                    2 => bytes[at..].fill(0),
                    // The content of another object.
                    _ => bytes.clone_from(before.as_ref().unwrap_or(&whole)),
                }
                if bytes != whole {
                    damaged += 1;
                    self.objects.put(&object.path, bytes)?;
                }
            }
            before = Some(whole);
        }
        Ok(damaged)
    }

    /// Number of reads of copies.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}
