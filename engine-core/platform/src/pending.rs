//! A request to an object store that was started and whose answer nobody has waited for yet.

use crate::objects::{Error, Objects};
use std::fmt::{self, Debug};
use std::sync::mpsc;
use tokio::task::AbortHandle;

/// The answer of a started request. If it is dropped, the request is cancelled.
pub struct Pending<T> {
    pub(crate) answer: mpsc::Receiver<object_store::Result<T>>,
    pub(crate) task: Option<AbortHandle>,
    pub(crate) objects: Objects,
    pub(crate) operation: &'static str,
    pub(crate) path: String,
}

impl<T> Pending<T> {
    /// Blocks until the answer is there.
    ///
    /// # Errors
    ///
    /// Those of the method of [`Objects`] that started the request.
    pub fn wait(self) -> Result<T, Error> {
        match self.answer.recv() {
            Ok(answer) => answer.map_err(|source| self.objects.error(self.operation, &self.path, source)),
            Err(_) => {
                Err(Error::Dropped { operation: self.operation, object: self.objects.object(&self.path) })
            }
        }
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl<T> Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending({} {})", self.operation, self.objects.object(&self.path))
    }
}
