//! The grammar of names of graphs, which are parts of keys, topics, folders, and paths of requests.

/// Most characters of the name of a graph.
const GRAPH_NAME_CHARS: usize = 64;

/// Whether a text can be the name of a graph: 1 to 64 letters, digits, `.`, `_` and `-`, of which the first is not `.`,
/// because `.` and `..` mean another folder.
#[must_use]
pub fn is_graph_name(text: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=GRAPH_NAME_CHARS).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_in_paths() {
        for good in ["orders", "eu.orders", "A_b-9", "_a", "-", &"x".repeat(64)] {
            assert!(is_graph_name(good), "{good}");
        }
        for bad in ["", ".", "..", ".hidden", "a/b", "a%2Fb", "a b", "a:b", "größe", "a\0", &"x".repeat(65)]
        {
            assert!(!is_graph_name(bad), "{bad}");
        }
    }
}
