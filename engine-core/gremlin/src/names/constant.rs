//! The constants of gremlin-lang's enums.

use tidegraph_types::{Cardinality, Direction, Symbol};

/// Which objects of a label `select` takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pop {
    /// The first one.
    First,
    /// The last one.
    Last,
    /// A list of all.
    All,
    /// The object if there is only one, otherwise a list of all.
    Mixed,
}

/// The properties of a constant in the grammar and in plans.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    /// Whether the constant may be written without its enum. No request can bind a variable of that name.
    pub(crate) bare: bool,
    /// Whether the constant is an option of `WithOptions`.
    pub(crate) with_option: bool,
    /// Whether the constant may be the key of a map without parentheses around it.
    pub(crate) map_key: bool,
    /// The value of the constant in a plan; `None` if it has none.
    pub(crate) symbol: Option<Symbol>,
    pub(crate) cardinality: Option<Cardinality>,
    pub(crate) direction: Option<Direction>,
    pub(crate) pop: Option<Pop>,
}

/// A constant that may be written without its enum.
const BARE: Meaning = Meaning {
    bare: true,
    with_option: false,
    map_key: false,
    symbol: None,
    cardinality: None,
    direction: None,
    pop: None,
};

/// A constant of `WithOptions` only.
const OPTION: Meaning = Meaning { bare: false, with_option: true, ..BARE };

impl Meaning {
    const fn option(self) -> Self {
        Self { with_option: true, ..self }
    }

    const fn map_key(self) -> Self {
        Self { map_key: true, ..self }
    }

    const fn symbol(self, symbol: Symbol) -> Self {
        Self { symbol: Some(symbol), ..self }
    }

    const fn cardinality(self, cardinality: Cardinality) -> Self {
        Self { cardinality: Some(cardinality), ..self }
    }

    const fn direction(self, direction: Direction) -> Self {
        Self { direction: Some(direction), ..self }
    }

    const fn pop(self, pop: Pop) -> Self {
        Self { pop: Some(pop), ..self }
    }
}

super::words! {
    /// Constants of all enums.
    pub enum Constant: Meaning {
        BothDirections = "BOTH" => BARE.map_key().direction(Direction::Both),
        InDirection = "IN" => BARE.map_key().direction(Direction::In).symbol(Symbol::In),
        OutDirection = "OUT" => BARE.map_key().direction(Direction::Out).symbol(Symbol::Out),
        AddAll = "addAll" => BARE,
        All = "all" => BARE.option().pop(Pop::All),
        And = "and" => BARE,
        Any = "any" => BARE,
        Asc = "asc" => BARE,
        Assign = "assign" => BARE,
        Day = "day" => BARE,
        Decr = "decr" => BARE,
        Desc = "desc" => BARE,
        Div = "div" => BARE,
        First = "first" => BARE.pop(Pop::First),
        From = "from" => BARE.map_key().direction(Direction::Out),
        Global = "global" => BARE,
        Hour = "hour" => BARE,
        Id = "id" => BARE.map_key().symbol(Symbol::Id),
        Ids = "ids" => OPTION,
        InV = "inV" => BARE,
        Incr = "incr" => BARE,
        Indexer = "indexer" => OPTION,
        Key = "key" => BARE.map_key().symbol(Symbol::Key),
        Keys = "keys" => BARE.option(),
        Label = "label" => BARE.map_key().symbol(Symbol::Label),
        Labels = "labels" => OPTION,
        Last = "last" => BARE.pop(Pop::Last),
        List = "list" => BARE.option().cardinality(Cardinality::List),
        Local = "local" => BARE,
        Map = "map" => OPTION,
        Max = "max" => BARE,
        Min = "min" => BARE,
        Minus = "minus" => BARE,
        Minute = "minute" => BARE,
        Mixed = "mixed" => BARE.pop(Pop::Mixed),
        Mult = "mult" => BARE,
        None = "none" => BARE.option(),
        NormSack = "normSack" => BARE,
        OnCreate = "onCreate" => BARE.map_key(),
        OnMatch = "onMatch" => BARE.map_key(),
        Or = "or" => BARE,
        OutV = "outV" => BARE,
        Second = "second" => BARE,
        Set = "set" => BARE.cardinality(Cardinality::Set),
        Shuffle = "shuffle" => BARE,
        Single = "single" => BARE.cardinality(Cardinality::Single),
        Sum = "sum" => BARE,
        SumLong = "sumLong" => BARE,
        To = "to" => BARE.map_key().direction(Direction::In),
        Tokens = "tokens" => OPTION,
        Unproductive = "unproductive" => BARE,
        Value = "value" => BARE.map_key().symbol(Symbol::Value),
        Values = "values" => BARE.option(),
    }
}
