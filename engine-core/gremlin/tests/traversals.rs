//! Traversals that must compile; `plans.rs` checks some of their plans.

use tidegraph_gremlin::{Version, compile_within};
use tidegraph_plan::{Limits, Procedures};

#[test]
fn all_compile() {
    let mut count = 0;
    for text in include_str!("traversals.txt").lines() {
        let plan = |version| compile_within(text, version, Procedures::builtin(), &Limits::none());
        let older = plan(Version::V3_7).unwrap_or_else(|e| panic!("{text}\n{e}"));
        // Some are no part of 3.8, and say so.
        let plan = match plan(Version::V3_8) {
            Ok(plan) => plan,
            Err(e) if e.to_string().contains("Gremlin 3.8") => older,
            Err(e) => panic!("{text}\n{e}"),
        };
        count += 1;
        // The columns are slots of the plan, and the plan can be printed.
        assert!(plan.slots > 0 && plan.columns.iter().all(|c| c.slot.0 < plan.slots), "{text}");
        assert!(!plan.to_string().is_empty(), "{text}");
    }
    assert!(count > 200);
}
