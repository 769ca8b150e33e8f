//! Traversals that must compile; `plans.rs` checks some of their plans.

use tidegraph_gremlin::compile;

#[test]
fn all_compile() {
    let mut count = 0;
    for text in include_str!("traversals.txt").lines() {
        let plan = compile(text).unwrap_or_else(|e| panic!("{text}\n{e}"));
        count += 1;
        // The columns are slots of the plan, and the plan can be printed.
        assert!(plan.slots > 0 && plan.columns.iter().all(|c| c.slot.0 < plan.slots), "{text}");
        assert!(!plan.to_string().is_empty(), "{text}");
    }
    assert!(count > 200);
}
