//! The requests of the APL between processes, each defined once.
//!
//! To add a request: add the method to the trait `Apl`, the two messages to the contract, an `impl Request` to
//! a file beside this one, and its line to the table below. The crate does not compile until all of them exist.

mod counts;
mod digests;
mod elements;
mod expansions;
mod ids;
mod scans;

pub use counts::{Statistics, UniqueKeys};
pub use digests::{CountEnds, GroupVertices, TopVertices};
pub use elements::{Edges, Vertices};
pub use expansions::{Degrees, Expand, SampleEdges, TopEdges};
pub use ids::{EdgeCandidates, FindEdges, Place, ResolveEdges, ResolveVertices};
pub use scans::{CountVertices, SampleVertices, ScanEdges, ScanValues, ScanVertices};

use crate::proto::apl_answer::Kind as AnswerKind;
use crate::proto::apl_request::Kind as RequestKind;
use crate::{Error, proto};
use tidegraph_apl::{self as apl, Apl, At, Error as AplError};
use tidegraph_types::{Edge, Epoch, Gui, Token, Version};

/// One request of the APL: its fields, its answer, the messages of both, and the call that a server makes for it.
pub trait Request: Listed {
    /// The message of the request in the contract.
    type Message;
    /// The message of the answer in the contract.
    type AnswerMessage;

    /// Returns the message of the request.
    ///
    /// # Errors
    ///
    /// [`Error::NotStorable`] if a value of a predicate cannot be a property value.
    fn encode(&self) -> Result<Self::Message, Error>;

    /// Returns the request of a message.
    ///
    /// # Errors
    ///
    /// The message lacks a field, has an unknown kind, a number out of range, or columns that do not fit each other.
    fn decode(message: Self::Message) -> Result<Self, Error>;

    /// Returns the message of an answer.
    ///
    /// # Errors
    ///
    /// [`Error::NotStorable`] if a value cannot be a property value.
    fn encode_answer(answer: &Self::Answer) -> Result<Self::AnswerMessage, Error>;

    /// Returns the answer of a message.
    ///
    /// # Errors
    ///
    /// The same as [`Self::decode`].
    fn decode_answer(message: Self::AnswerMessage) -> Result<Self::Answer, Error>;

    /// Makes the call of the trait that the request represents.
    ///
    /// # Errors
    ///
    /// The errors of the call, and those of [`Allowance::check`].
    fn call(&self, apl: &dyn Apl, at: At, allowance: &Allowance<'_>) -> Result<Self::Answer, AplError>;

    /// Estimates the work of a request, as the number of rows of vertices that it reads. A server answers small
    /// requests at once. `None`: the work is large, or the request does not show it.
    fn rows(message: &Self::Message) -> Option<usize>;
}

/// A request in the table of requests. Only the table implements it.
pub trait Listed: Sized + Into<AnyRequest> {
    /// The type of the answer.
    type Answer;

    /// Returns the answer to this request, or `None` if `answer` answers another request or is an error.
    fn answer_from(answer: AnyAnswer) -> Option<Self::Answer>;
}

/// The limits that a server sets for the calls that it makes.
#[derive(Clone, Copy)]
pub struct Allowance<'a> {
    /// Maximum number of rows of one answer. A caller that wants more continues from the cursor.
    pub max_rows: u32,
    /// Rows of a frontier between two calls of `check`.
    pub piece_rows: usize,
    /// Fails if the request was cancelled or its deadline passed.
    pub check: &'a dyn Fn() -> Result<(), AplError>,
}

impl std::fmt::Debug for Allowance<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = f.debug_struct("Allowance");
        fields.field("max_rows", &self.max_rows).field("piece_rows", &self.piece_rows).finish_non_exhaustive()
    }
}

impl Allowance<'_> {
    /// Calls `ask` with a frontier in pieces, and checks before each.
    fn in_pieces<T>(
        &self,
        frontier: &[T],
        mut ask: impl FnMut(&[T]) -> Result<(), AplError>,
    ) -> Result<(), AplError> {
        for piece in frontier.chunks(self.piece_rows) {
            (self.check)()?;
            ask(piece)?;
        }
        Ok(())
    }
}

macro_rules! requests {
    ($($name:ident -> $answer:ty),* $(,)?) => {
        /// Any request.
        #[derive(Clone, PartialEq, Debug)]
        pub enum AnyRequest {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)*
        }

        /// The answer to any request, or the error of the request.
        #[derive(Debug)]
        pub enum AnyAnswer {
            /// The request failed.
            Failed(AplError),
            $(#[doc = concat!("The answer to [`", stringify!($name), "`].")] $name($answer),)*
        }

        $(
            impl From<$name> for AnyRequest {
                fn from(request: $name) -> Self {
                    Self::$name(request)
                }
            }

            impl Listed for $name {
                type Answer = $answer;

                fn answer_from(answer: AnyAnswer) -> Option<Self::Answer> {
                    match answer {
                        AnyAnswer::$name(answer) => Some(answer),
                        _ => None,
                    }
                }
            }
        )*

        impl AnyRequest {
            /// Returns the message of the request.
            ///
            /// # Errors
            ///
            /// See [`Request::encode`].
            pub fn encode(&self, at: At) -> Result<proto::AplRequest, Error> {
                let kind = match self {
                    $(Self::$name(request) => RequestKind::$name(request.encode()?),)*
                };
                Ok(proto::AplRequest { version: at.version.0, epoch: at.epoch.0, kind: Some(kind) })
            }

            /// Returns the request of a message, and the version and map epoch at which it reads.
            ///
            /// # Errors
            ///
            /// See [`Request::decode`]; [`Error::UnknownKind`] if a newer version wrote the message.
            pub fn decode(message: proto::AplRequest) -> Result<(At, Self), Error> {
                let at = At { version: Version(message.version), epoch: Epoch(message.epoch) };
                let request = match message.kind.ok_or(Error::UnknownKind { message: "AplRequest" })? {
                    $(RequestKind::$name(message) => Self::$name($name::decode(message)?),)*
                };
                Ok((at, request))
            }

            /// Makes the call of the trait that the request represents.
            ///
            /// # Errors
            ///
            /// See [`Request::call`].
            pub fn call(
                &self,
                apl: &dyn Apl,
                at: At,
                allowance: &Allowance<'_>,
            ) -> Result<AnyAnswer, AplError> {
                Ok(match self {
                    $(Self::$name(request) => AnyAnswer::$name(request.call(apl, at, allowance)?),)*
                })
            }

            /// Estimates the work of a request from its message: see [`Request::rows`].
            #[must_use]
            pub fn rows(message: &proto::AplRequest) -> Option<usize> {
                match message.kind.as_ref()? {
                    $(RequestKind::$name(message) => $name::rows(message),)*
                }
            }
        }

        impl AnyAnswer {
            /// Returns the message of the answer.
            ///
            /// # Errors
            ///
            /// See [`Request::encode_answer`].
            pub fn encode(&self) -> Result<proto::AplAnswer, Error> {
                let kind = match self {
                    Self::Failed(error) => AnswerKind::Error(super::error::encode(error)),
                    $(Self::$name(answer) => AnswerKind::$name($name::encode_answer(answer)?),)*
                };
                Ok(proto::AplAnswer { kind: Some(kind) })
            }

            /// Returns the answer of a message.
            ///
            /// # Errors
            ///
            /// See [`Request::decode_answer`]; [`Error::UnknownKind`] if a newer version wrote the message.
            pub fn decode(message: proto::AplAnswer) -> Result<Self, Error> {
                Ok(match message.kind.ok_or(Error::UnknownKind { message: "AplAnswer" })? {
                    AnswerKind::Error(message) => Self::Failed(super::error::decode(message)?),
                    $(AnswerKind::$name(message) => Self::$name($name::decode_answer(message)?),)*
                })
            }
        }
    };
}

// Names are those of the kinds in the contract.
requests! {
    ResolveVertices -> Vec<Option<Gui>>,
    ResolveEdges -> Vec<Option<Edge>>,
    Place -> Vec<(Gui, u64)>,
    EdgeCandidates -> apl::EdgeCandidates,
    FindEdges -> Vec<Option<Edge>>,
    Vertices -> apl::VertexRows,
    Edges -> apl::EdgeRows,
    Expand -> (apl::Expansion, Option<apl::Cursor>),
    Degrees -> Vec<u64>,
    SampleEdges -> apl::Expansion,
    TopEdges -> (apl::Expansion, Option<apl::Cursor>),
    ScanVertices -> (Vec<Gui>, Option<apl::ScanCursor>),
    ScanValues -> (apl::ScannedValues, Option<apl::ScanCursor>),
    ScanEdges -> (apl::EdgeRuns, Option<apl::ScanCursor>),
    CountVertices -> (u64, Option<apl::ScanCursor>),
    SampleVertices -> (apl::Reservoir<Gui>, Option<apl::ScanCursor>),
    Statistics -> apl::Statistics,
    UniqueKeys -> Vec<(Token, Token)>,
    GroupVertices -> (apl::Groups, Option<apl::ScanCursor>),
    CountEnds -> (apl::EndCounts, Option<apl::ScanCursor>),
    TopVertices -> (apl::ScannedValues, Option<apl::ScanCursor>),
}
