//! What a check says.

use serde_json::{Value, json};
use std::fmt;

/// How a check ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// It holds.
    Ok,
    /// It works now, and somebody should look.
    Warning,
    /// It does not work.
    Failed,
    /// It could not be looked at.
    Unknown,
    /// There is no such part here.
    Absent,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Absent => "absent",
        }
    }
}

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Identifier of the check, such as `machine.disk`.
    pub id: &'static str,
    pub status: Status,
    /// What was found, in words.
    pub seen: String,
    /// What should be, in words; empty if nothing else is wanted.
    pub wanted: String,
    /// What to do; empty if nothing is to be done.
    pub remedy: &'static str,
}

impl Finding {
    pub fn ok(id: &'static str, seen: impl Into<String>) -> Self {
        Self { id, status: Status::Ok, seen: seen.into(), wanted: String::new(), remedy: "" }
    }

    pub fn absent(id: &'static str, seen: impl Into<String>) -> Self {
        Self { status: Status::Absent, ..Self::ok(id, seen) }
    }

    pub fn unknown(id: &'static str, seen: impl Into<String>, remedy: &'static str) -> Self {
        Self { status: Status::Unknown, remedy, ..Self::ok(id, seen) }
    }

    /// A finding that asks for something.
    pub fn wrong(
        status: Status,
        id: &'static str,
        seen: impl Into<String>,
        wanted: impl Into<String>,
        remedy: &'static str,
    ) -> Self {
        Self { id, status, seen: seen.into(), wanted: wanted.into(), remedy }
    }

    pub fn as_json(&self) -> Value {
        let mut value = json!({ "id": self.id, "status": self.status.name(), "seen": self.seen });
        for (name, text) in [("wanted", self.wanted.as_str()), ("remedy", self.remedy)] {
            if !text.is_empty() {
                value[name] = text.into();
            }
        }
        value
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = match self.status {
            Status::Ok => "ok",
            Status::Warning => "WARNING",
            Status::Failed => "FAILED",
            Status::Unknown => "unknown",
            Status::Absent => "-",
        };
        write!(f, "{label:8} {:15}  {}", self.id, self.seen)?;
        if matches!(self.status, Status::Ok | Status::Absent) {
            return Ok(());
        }
        for (name, text) in [("wanted", self.wanted.as_str()), ("do", self.remedy)] {
            if !text.is_empty() {
                write!(f, "\n{:26}{name}: {text}", "")?;
            }
        }
        Ok(())
    }
}
