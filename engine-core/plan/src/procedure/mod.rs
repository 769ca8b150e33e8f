//! The registry of procedures: what `CALL` may name.
//!
//! Every database has the [`Builtin`] ones. A program that embeds the engine adds its own [`Procedure`]s to the
//! [`Procedures`] of a database's options. Front ends look names up here and check calls against the [`Signature`];
//! `exec` runs what they find.

mod builtin;
mod signature;

pub use builtin::Builtin;
pub use signature::{Argument, Field, Signature};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};
use tidegraph_types::Value;

/// What a call of a [`Function`] yields to.
pub trait CallRows {
    /// Adds a row with a value for each column of the signature.
    ///
    /// # Errors
    /// [`CallError::Stopped`] if the query must end: it was cancelled, reached a limit, or the row does not fit the
    /// signature. The function then returns this error; the client sees the reason.
    fn add(&mut self, row: Vec<Value>) -> Result<(), CallError>;

    /// Checks whether the query may go on. A function that works long without a row calls this.
    ///
    /// # Errors
    /// [`CallError::Stopped`] if not.
    fn check(&mut self) -> Result<(), CallError>;
}

/// Why a call ended without its rows.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// [`CallRows`] asked it to end.
    #[error("the query was stopped")]
    Stopped,
    /// The arguments are not good, or the function cannot do its work. The text tells the client why.
    #[error("{0}")]
    Failed(String),
}

/// The work of a procedure: takes the arguments, as the signature says, and adds rows. It runs on the thread of the query,
/// once for each row before the call, or once for all of them if it takes no arguments.
pub type Function = dyn Fn(&[Value], &mut dyn CallRows) -> Result<(), CallError> + Send + Sync;

/// A procedure.
///
/// ```
/// use tidegraph_plan::{Procedure, Procedures, Signature, TypeTest, ValueType};
///
/// let integer = || TypeTest::or_null(ValueType::Integer);
/// let signature = Signature::new("list.countdown").argument("from", integer()).column("n", integer());
/// let procedure = Procedure::new(signature, |arguments, rows| {
///     let from = arguments[0].as_i64().unwrap_or(0);
///     (1..=from).rev().try_for_each(|n| rows.add(vec![n.into()]))
/// });
/// let procedures = Procedures::default().with(procedure)?;
/// assert!(procedures.find("List.Countdown").is_some());
/// assert!(procedures.find("db.labels").is_some());
/// # Ok::<(), tidegraph_plan::BadProcedure>(())
/// ```
pub struct Procedure {
    signature: Signature,
    body: Body,
}

/// What runs a procedure.
pub enum Body {
    /// A function of `exec`.
    Builtin(Builtin),
    /// A function of the program that embeds the engine.
    Function(Box<Function>),
}

/// A procedure that cannot be added to a registry.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("procedure {name:?}: {reason}")]
pub struct BadProcedure {
    /// The name.
    pub name: String,
    /// Why not.
    pub reason: String,
}

impl Procedure {
    /// Makes a procedure of a function.
    pub fn new(
        signature: Signature,
        function: impl Fn(&[Value], &mut dyn CallRows) -> Result<(), CallError> + Send + Sync + 'static,
    ) -> Self {
        Self { signature, body: Body::Function(Box::new(function)) }
    }

    /// Returns the signature.
    #[must_use]
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Returns what runs it.
    #[must_use]
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Checks the signature of a procedure that is to be added.
    fn validate(&self) -> Result<(), String> {
        let Signature { name, arguments, columns, .. } = &self.signature;
        let is_word = |part: &str| {
            part.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && part.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        if !name.split('.').all(is_word) {
            return Err("its name consists of words with dots between them".to_owned());
        }
        let first_optional = arguments.iter().position(|argument| argument.default.is_some());
        let last_required = arguments.iter().rposition(|argument| argument.default.is_none());
        if let (Some(optional), Some(required)) = (first_optional, last_required)
            && optional < required
        {
            let name = arguments.get(required).map(|argument| &*argument.field.name).unwrap_or_default();
            return Err(format!("argument {name:?} needs a default value, as one before it has"));
        }
        let arguments: Vec<&Field> = arguments.iter().map(|argument| &argument.field).collect();
        for (what, fields) in [("argument", arguments), ("column", columns.iter().collect())] {
            for (at, field) in fields.iter().enumerate() {
                if field.name.is_empty() {
                    return Err(format!("{what} {} has no name", at + 1));
                }
                if fields.iter().take(at).any(|before| before.name == field.name) {
                    return Err(format!("two {what}s are called {:?}", field.name));
                }
            }
        }
        Ok(())
    }
}

impl PartialEq for Procedure {
    /// Compares what they are called, take and yield: no registry has two of one name.
    fn eq(&self, other: &Self) -> bool {
        self.signature == other.signature
    }
}

impl fmt::Debug for Procedure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.signature)
    }
}

/// A registry of procedures. The default one has the procedures of the engine.
#[derive(Clone, PartialEq, Debug)]
pub struct Procedures {
    /// By name in lower case.
    by_name: Arc<BTreeMap<String, Arc<Procedure>>>,
}

impl Procedures {
    /// Adds a procedure.
    ///
    /// # Errors
    /// [`BadProcedure`] if the registry has one of this name, in upper or lower case, or if its signature is wrong: a name
    /// that a query cannot write, two arguments or columns of one name, or a required argument after an optional one.
    pub fn with(mut self, procedure: Procedure) -> Result<Self, BadProcedure> {
        let name = procedure.signature.name.to_string();
        let bad = |reason: String| BadProcedure { name: name.clone(), reason };
        procedure.validate().map_err(bad)?;
        let by_name = Arc::make_mut(&mut self.by_name);
        if by_name.contains_key(&name.to_lowercase()) {
            return Err(bad("there is one of this name already".to_owned()));
        }
        by_name.insert(name.to_lowercase(), Arc::new(procedure));
        Ok(self)
    }

    /// Finds a procedure by its name, in upper or lower case.
    ///
    /// ```
    /// use tidegraph_plan::Procedures;
    ///
    /// assert!(Procedures::builtin().find("Neptune.Graph.PG_Schema").is_some());
    /// assert!(Procedures::builtin().find("neptune.algo.bfs").is_none());
    /// ```
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<Procedure>> {
        self.by_name.get(&name.to_lowercase())
    }

    /// Returns all procedures, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Procedure> {
        self.by_name.values().map(|procedure| &**procedure)
    }

    /// Returns the registry of the engine's own procedures.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<Procedures> = LazyLock::new(|| {
            let procedure =
                |builtin: Builtin| Procedure { signature: builtin.signature(), body: Body::Builtin(builtin) };
            let named = Builtin::ALL.into_iter().map(procedure);
            let by_name = named.map(|one| (one.signature.name.to_lowercase(), Arc::new(one))).collect();
            Procedures { by_name: Arc::new(by_name) }
        });
        &BUILTIN
    }
}

impl Default for Procedures {
    fn default() -> Self {
        Self::builtin().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TypeTest, ValueType};

    fn refused(signature: Signature) -> String {
        let procedure = Procedure::new(signature, |_, _| Ok(()));
        Procedures::default().with(procedure).expect_err("a wrong signature").to_string()
    }

    #[test]
    fn wrong_signatures_are_refused() {
        let any = || TypeTest::or_null(ValueType::Any);
        for (signature, expected) in [
            (Signature::new("DB.Labels"), r#"procedure "DB.Labels": there is one of this name already"#),
            (
                Signature::new("a..b"),
                r#"procedure "a..b": its name consists of words with dots between them"#,
            ),
            (Signature::new(""), r#"procedure "": its name consists of words with dots between them"#),
            (
                Signature::new("x").argument("a", any()).argument("a", any()),
                r#"procedure "x": two arguments are called "a""#,
            ),
            (
                Signature::new("x").column("a", any()).column("", any()),
                r#"procedure "x": column 2 has no name"#,
            ),
            (
                Signature::new("x").optional("a", any(), 1).argument("b", any()),
                r#"procedure "x": argument "b" needs a default value, as one before it has"#,
            ),
        ] {
            assert_eq!(refused(signature), expected);
        }
    }

    #[test]
    fn builtin_procedures_have_right_signatures() {
        assert_eq!(Procedures::builtin().iter().count(), Builtin::ALL.len());
        for procedure in Procedures::builtin().iter() {
            assert_eq!(procedure.validate(), Ok(()), "{procedure:?}");
        }
        let labels = Procedures::builtin().find("db.labels").expect("a procedure");
        assert_eq!(labels.signature().to_string(), "db.labels() :: (label :: STRING)");
    }
}
