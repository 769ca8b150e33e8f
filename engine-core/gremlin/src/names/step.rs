//! The steps of Gremlin, with the properties that the compiler needs besides the function that translates a step.

use tidegraph_plan::{AggregateKind, Function};
use tidegraph_types::Direction;

/// When a step makes a new current object. All other steps test it, name it or act on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NewObject {
    Never,
    Always,
    /// With `local` as its first argument.
    WithLocalScope,
    /// Without arguments; with a key, it is a side effect.
    WithoutKey,
    /// With a direction as its first argument.
    WithDirection,
}

/// The action of a step on the items of a collection, if its first argument is `local`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Local {
    Count,
    /// Computes one value; an empty collection has none.
    Value(Function),
    Dedup,
    Limit,
    Order,
    Range,
    Sample,
    Skip,
    Tail,
}

/// An end of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The source for `Out`, the target for `In`, both for `Both`.
    At(Direction),
    /// The end that the edge step did not come from.
    Other,
}

/// The result of a step that reduces all traversers to one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reduction {
    Count,
    Fold,
    /// One value; no traverser leaves if none came.
    Value(AggregateKind),
    /// A map; with a key the step is a side effect instead.
    Group,
}

/// The relation between the child traversals of a step and the stream around them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Children {
    /// Nothing: labels and reductions inside a child end with it.
    Isolated,
    /// A child runs for each traverser by itself, and its labels and reductions last.
    PerTraverser,
    /// A child is part of the stream: it sees all traversers, and its labels and reductions last.
    Streamed,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    pub(crate) object: NewObject,
    /// Whether the new object is always a vertex.
    pub(crate) to_vertex: bool,
    /// The step goes from an edge to this end of it.
    pub(crate) end: Option<End>,
    /// Whether the step may follow `g` directly.
    pub(crate) after_g: bool,
    /// Whether the step starts a stream. Such a step is never part of the operands of an infix `and()` or `or()`.
    pub(crate) starts: bool,
    /// Whether the step may come between an edge step and the step to the other end: one expand then binds both.
    pub(crate) between_ends: bool,
    /// Whether the step keeps state over several traversers, without reducing them (unless its scope is local).
    pub(crate) stateful: bool,
    /// Whether the step may stop before it has seen every traverser.
    pub(crate) stops_early: bool,
    /// The step applies this function to the current object, and takes no arguments.
    pub(crate) function: Option<Function>,
    pub(crate) local: Option<Local>,
    pub(crate) reduction: Option<Reduction>,
    pub(crate) children: Children,
    /// Whether the step belongs to the `has` family, which tests labels, ids and properties.
    pub(crate) has: bool,
    /// Whether the step joins conditions: `and`, `or`, `not`.
    pub(crate) connective: bool,
    /// Whether the step reads paths.
    pub(crate) needs_path: bool,
}

/// A step that leaves the current object as it is.
const KEEPS: Properties = Properties {
    object: NewObject::Never,
    to_vertex: false,
    end: None,
    after_g: false,
    starts: false,
    between_ends: false,
    stateful: false,
    stops_early: false,
    function: None,
    local: None,
    reduction: None,
    children: Children::Isolated,
    has: false,
    connective: false,
    needs_path: false,
};

/// A step that makes a new object.
const MAKES: Properties = Properties { object: NewObject::Always, ..KEEPS };

/// A step from an edge to an end.
const fn goes_to(end: End) -> Properties {
    Properties { end: Some(end), ..MAKES }.to_vertex()
}

/// A step that applies a function to the current object.
const fn applies(function: Function) -> Properties {
    Properties { function: Some(function), ..MAKES }
}

/// A step that makes a new object of one collection, or looks at several traversers if its scope is global.
const fn scoped(local: Local) -> Properties {
    Properties { object: NewObject::WithLocalScope, local: Some(local), stateful: true, ..KEEPS }
}

/// A step that makes one value of a collection, or of all traversers if its scope is global.
const fn reduces(local: Local, reduction: Reduction) -> Properties {
    Properties { local: Some(local), reduction: Some(reduction), ..MAKES }
}

const GROUP: Properties =
    Properties { object: NewObject::WithoutKey, reduction: Some(Reduction::Group), ..KEEPS };
const HAS: Properties = Properties { has: true, ..KEEPS };

impl Properties {
    const fn to_vertex(self) -> Self {
        Self { to_vertex: true, ..self }
    }

    const fn after_g(self) -> Self {
        Self { after_g: true, ..self }
    }

    const fn starts(self) -> Self {
        Self { starts: true, ..self }
    }

    const fn between_ends(self) -> Self {
        Self { between_ends: true, ..self }
    }

    const fn stateful(self) -> Self {
        Self { stateful: true, ..self }
    }

    const fn stops_early(self) -> Self {
        Self { stops_early: true, ..self }
    }

    const fn children(self, children: Children) -> Self {
        Self { children, ..self }
    }

    const fn connective(self) -> Self {
        Self { connective: true, ..self }
    }

    const fn needs_path(self) -> Self {
        Self { needs_path: true, ..self }
    }
}

super::words! {
    /// Every step of TinkerPop 3.7 and 3.8.
    pub enum StepName: Properties {
        E = "E" => MAKES.after_g().starts(),
        V = "V" => MAKES.after_g().starts().to_vertex(),
        AddE = "addE" => MAKES.after_g(),
        AddV = "addV" => MAKES.after_g(),
        Aggregate = "aggregate" => KEEPS.stateful(),
        All = "all" => KEEPS,
        And = "and" => KEEPS.connective().between_ends(),
        Any = "any" => KEEPS,
        As = "as" => KEEPS.between_ends(),
        AsBool = "asBool" => applies(Function::AsBool),
        AsDate = "asDate" => applies(Function::AsDate),
        AsNumber = "asNumber" => applies(Function::AsNumber(None)),
        AsString = "asString" => applies(Function::AsText),
        Barrier = "barrier" => KEEPS.between_ends(),
        Both = "both" => MAKES.to_vertex(),
        BothE = "bothE" => MAKES,
        BothV = "bothV" => goes_to(End::At(Direction::Both)),
        Branch = "branch" => MAKES.children(Children::Streamed),
        By = "by" => KEEPS.between_ends(),
        Call = "call" => MAKES.after_g(),
        Cap = "cap" => MAKES,
        Choose = "choose" => MAKES.children(Children::Streamed),
        Coalesce = "coalesce" => MAKES,
        Coin = "coin" => KEEPS.between_ends(),
        Combine = "combine" => MAKES,
        Concat = "concat" => MAKES,
        Conjoin = "conjoin" => MAKES,
        ConnectedComponent = "connectedComponent" => KEEPS,
        Constant = "constant" => MAKES,
        Count = "count" => reduces(Local::Count, Reduction::Count),
        CyclicPath = "cyclicPath" => KEEPS.needs_path(),
        DateAdd = "dateAdd" => MAKES,
        DateDiff = "dateDiff" => MAKES,
        Dedup = "dedup" => scoped(Local::Dedup).between_ends(),
        Difference = "difference" => MAKES,
        Discard = "discard" => KEEPS,
        Disjunct = "disjunct" => MAKES,
        Drop = "drop" => KEEPS,
        Element = "element" => applies(Function::PropertyOwner),
        ElementMap = "elementMap" => MAKES,
        Emit = "emit" => KEEPS,
        Fail = "fail" => KEEPS,
        Filter = "filter" => KEEPS.between_ends(),
        FlatMap = "flatMap" => MAKES,
        Fold = "fold" => Properties { reduction: Some(Reduction::Fold), ..MAKES },
        Format = "format" => MAKES,
        From = "from" => KEEPS,
        Group = "group" => GROUP,
        GroupCount = "groupCount" => GROUP,
        Has = "has" => HAS.between_ends(),
        HasId = "hasId" => HAS.between_ends(),
        HasKey = "hasKey" => HAS,
        HasLabel = "hasLabel" => HAS.between_ends(),
        HasNot = "hasNot" => HAS.between_ends(),
        HasValue = "hasValue" => HAS,
        Id = "id" => applies(Function::Id),
        Identity = "identity" => KEEPS.between_ends(),
        In = "in" => MAKES.to_vertex(),
        InE = "inE" => MAKES,
        InV = "inV" => goes_to(End::At(Direction::In)),
        Index = "index" => MAKES,
        Inject = "inject" => MAKES.after_g().starts().stateful(),
        Intersect = "intersect" => MAKES,
        Io = "io" => KEEPS.after_g(),
        Is = "is" => KEEPS.between_ends(),
        Key = "key" => applies(Function::PropertyKey),
        LTrim = "lTrim" => applies(Function::LTrim),
        Label = "label" => applies(Function::Label),
        Length = "length" => applies(Function::TextLength),
        Limit = "limit" => scoped(Local::Limit).stops_early().between_ends(),
        Local = "local" => MAKES.children(Children::PerTraverser),
        Loops = "loops" => MAKES,
        Map = "map" => MAKES,
        Match = "match" => MAKES,
        Math = "math" => MAKES,
        Max = "max" => reduces(Local::Value(Function::MaxLocal), Reduction::Value(AggregateKind::Max)),
        Mean = "mean" => reduces(Local::Value(Function::MeanLocal), Reduction::Value(AggregateKind::Average)),
        Merge = "merge" => MAKES,
        MergeE = "mergeE" => MAKES.after_g(),
        MergeV = "mergeV" => MAKES.after_g(),
        Min = "min" => reduces(Local::Value(Function::MinLocal), Reduction::Value(AggregateKind::Min)),
        None = "none" => KEEPS,
        Not = "not" => KEEPS.connective().between_ends(),
        Option = "option" => KEEPS.children(Children::Streamed),
        Optional = "optional" => MAKES.children(Children::Streamed),
        Or = "or" => KEEPS.connective().between_ends(),
        Order = "order" => scoped(Local::Order).between_ends(),
        OtherV = "otherV" => goes_to(End::Other),
        Out = "out" => MAKES.to_vertex(),
        OutE = "outE" => MAKES,
        OutV = "outV" => goes_to(End::At(Direction::Out)),
        PageRank = "pageRank" => KEEPS,
        Path = "path" => MAKES.needs_path(),
        PeerPressure = "peerPressure" => KEEPS,
        Product = "product" => MAKES,
        Profile = "profile" => KEEPS,
        Project = "project" => MAKES,
        Properties = "properties" => MAKES,
        Property = "property" => KEEPS,
        PropertyMap = "propertyMap" => MAKES,
        RTrim = "rTrim" => applies(Function::RTrim),
        Range = "range" => scoped(Local::Range).stops_early().between_ends(),
        Read = "read" => KEEPS,
        Repeat = "repeat" => MAKES.children(Children::Streamed),
        Replace = "replace" => MAKES,
        Reverse = "reverse" => applies(Function::ReverseItems),
        Sack = "sack" => Properties { object: NewObject::WithoutKey, ..KEEPS },
        Sample = "sample" => scoped(Local::Sample).stops_early().between_ends(),
        Select = "select" => MAKES,
        ShortestPath = "shortestPath" => MAKES,
        SideEffect = "sideEffect" => KEEPS,
        SimplePath = "simplePath" => KEEPS.needs_path(),
        Skip = "skip" => scoped(Local::Skip).between_ends(),
        Split = "split" => MAKES,
        Store = "store" => KEEPS,
        Subgraph = "subgraph" => KEEPS,
        Substring = "substring" => MAKES,
        Sum = "sum" => reduces(Local::Value(Function::SumLocal), Reduction::Value(AggregateKind::Sum)),
        Tail = "tail" => scoped(Local::Tail).between_ends(),
        TimeLimit = "timeLimit" => KEEPS.stops_early(),
        Times = "times" => KEEPS,
        To = "to" => Properties { object: NewObject::WithDirection, ..KEEPS }.to_vertex(),
        ToE = "toE" => MAKES,
        ToLower = "toLower" => applies(Function::ToLower),
        ToUpper = "toUpper" => applies(Function::ToUpper),
        ToV = "toV" => MAKES.to_vertex(),
        Tree = "tree" => Properties { object: NewObject::WithoutKey, ..KEEPS }.needs_path(),
        Trim = "trim" => applies(Function::Trim),
        Unfold = "unfold" => MAKES,
        Union = "union" => MAKES.after_g().children(Children::Streamed),
        Until = "until" => KEEPS,
        Value = "value" => applies(Function::PropertyValue),
        ValueMap = "valueMap" => MAKES,
        Values = "values" => MAKES,
        Where = "where" => KEEPS.between_ends(),
        With = "with" => KEEPS,
        Write = "write" => KEEPS,
    }
}
