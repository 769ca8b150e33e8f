//! Queries over the whole grammar, which must compile.

#[test]
fn all_compile() {
    let failures: Vec<String> = include_str!("accepts.cypher")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .filter_map(|query| {
            tidegraph_opencypher::compile(query).err().map(|error| format!("{query}\n    {error}"))
        })
        .collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn slots_are_below_the_number_of_slots() {
    for query in include_str!("accepts.cypher").lines() {
        let Ok(plan) = tidegraph_opencypher::compile(query) else { continue };
        for column in &plan.columns {
            assert!(column.slot.0 < plan.slots, "{query}");
        }
    }
}
