//! The roles of a caller in each graph of a service, as a file lists them: `write` is a role in all graphs, `orders:write`
//! one in the graph `orders`.

use std::str::FromStr;
use tidegraph_engine::{Role, Roles};
use tidegraph_types::is_graph_name;

/// A role in all graphs, or in one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The graph; `None`: all of the service.
    graph: Option<String>,
    role: Role,
}

impl FromStr for Grant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (graph, role) = match text.split_once(':') {
            None => (None, text),
            Some((graph, role)) => (Some(graph), role),
        };
        if let Some(graph) = graph
            && !is_graph_name(graph)
        {
            return Err(format!("{text:?} is no role: {graph:?} cannot be the name of a graph"));
        }
        let role = role.parse::<Role>().map_err(|error| match graph {
            None => error.to_string(),
            Some(_) => format!("{text:?} is no role in a graph: {error}"),
        })?;
        Ok(Self { graph: graph.map(str::to_owned), role })
    }
}

impl std::fmt::Display for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.graph {
            None => write!(f, "{}", self.role),
            Some(graph) => write!(f, "{graph}:{}", self.role),
        }
    }
}

/// The roles of a caller.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Grants(Vec<Grant>);

impl Grants {
    /// Reads the roles of a file.
    ///
    /// # Errors
    ///
    /// The first text that is none.
    pub fn parse(texts: &[String]) -> Result<Self, String> {
        texts.iter().map(|text| text.parse()).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the roles in a graph.
    pub fn within(&self, graph: &str) -> Roles {
        let holds = |grant: &&Grant| grant.graph.as_deref().is_none_or(|of| of == graph);
        self.0.iter().filter(holds).map(|grant| grant.role).collect()
    }

    /// Returns the roles that hold in all graphs.
    pub fn everywhere(&self) -> Roles {
        self.0.iter().filter(|grant| grant.graph.is_none()).map(|grant| grant.role).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(texts: &[&str]) -> Result<Grants, String> {
        Grants::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_role_is_one_in_all_graphs_or_in_one() {
        let found = grants(&["read", "orders:write", "eu.people:load"]).unwrap();
        let may = |roles: Roles| Role::ALL.map(|role| roles.has(role));
        assert_eq!(may(found.within("orders")), [true, true, false, false]);
        assert_eq!(may(found.within("eu.people")), [true, false, true, false]);
        assert_eq!(may(found.within("orders2")), [true, false, false, false]);
        assert_eq!(may(found.everywhere()), [true, false, false, false]);
        assert_eq!(may(grants(&["orders:admin"]).unwrap().within("people")), [false; 4]);
        assert_eq!("orders:write".parse::<Grant>().unwrap().to_string(), "orders:write");
    }

    #[test]
    fn what_is_no_role_is_refused_by_its_name() {
        let long = format!("{}:read", "x".repeat(65));
        for wrong in ["reed", "orders:reed", ":read", "orders:", "a/b:read", "..:read", "größe:read", &long]
        {
            let error = grants(&["read", wrong]).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
