//! The examples of the documentation run.

use crate::world::World;

const PAGE: &str = include_str!("../../../../docs/postgres-functions.md");

/// The SQL of the page under a heading of that name, in lower case.
pub(crate) fn block(heading: &str) -> String {
    let (_, section) =
        PAGE.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no heading {heading}"));
    let (section, _) = section.split_once("\n## ").unwrap_or((section, ""));
    let blocks: Vec<&str> = section
        .split("```sql\n")
        .skip(1)
        .map(|rest| rest.split_once("```").expect("a block ends").0)
        .collect();
    assert!(!blocks.is_empty(), "{heading}");
    blocks.concat()
}

#[tokio::test]
async fn every_example_runs() {
    let world = World::new().await;
    world.run("CREATE TEMPORARY TABLE purchase (id bigint PRIMARY KEY, total numeric)").await;
    for heading in ["enqueue", "claim, ack, nack", "workflows by night"] {
        for statement in block(heading).split_inclusive(";\n") {
            world
                .sql
                .batch_execute(&world.text(statement))
                .await
                .unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        world.audit().await;
    }
}
