//! Plans as text: an operator a line, its input below it, subplans indented under a name.
