//! What a role may do with the grants of the documentation, and no more.

use tokio_postgres::error::SqlState;

use crate::docs::block;
use crate::world::World;

#[tokio::test]
async fn a_role_with_the_documented_grants_can_call_the_functions_and_look_at_nothing() {
    let world = World::new().await;
    let role = format!("app_{}", std::process::id());
    world.run(&format!("CREATE ROLE {role}")).await;
    world.run(&format!("SET ROLE {role}")).await;
    let denied = async |statement: &str| {
        let error = world.sql.query(&world.text(statement), &[]).await.expect_err(statement);
        assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{statement}: {error}");
    };
    denied("SELECT redrive.enqueue('orders', '1')").await;
    world.run("RESET ROLE").await;
    let grants = block("grants").replace("SCHEMA redrive", &format!("SCHEMA \"{}\"", world.schema));
    world.run(&grants.replace("app", &role)).await;
    world.run(&format!("SET ROLE {role}")).await;
    world.run("SELECT redrive.enqueue('orders', '1', dedup_key => 'k', type => 'a')").await;
    let receipt = world.claim("'orders', 1, 'worker', 180").await.remove(0);
    assert_eq!(world.settle("nack", &receipt, ", 'boom', now()").await, "applied");
    let receipt = world.claim("'orders'").await.remove(0);
    assert_eq!(world.settle("ack", &receipt, "").await, "applied");
    world.run("SELECT redrive.requeue_expired(), redrive.retry_failed('orders')").await;
    for table in ["shared", "message", "content", "queue"] {
        denied(&format!("SELECT * FROM redrive.{table}")).await;
    }
    // Nor by way of what the functions use.
    denied("SELECT redrive.shared_value('receipt_key')").await;
    denied("SELECT redrive.epoch()").await;
    world.run("RESET ROLE").await;
    let everything =
        format!("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA \"{}\" TO {role}; SET ROLE {role}", world.schema);
    world.run(&everything).await;
    denied("SELECT redrive.shared_value('receipt_key')").await;
    denied("SELECT redrive.epoch()").await;
    world.run(&format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")).await;
    world.audit().await;
}

#[tokio::test]
async fn names_are_looked_up_where_nobody_can_put_another_thing() {
    let world = World::new().await;
    let open: i64 = world
        .one(&format!(
            "SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = '{}'
                AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false)",
            world.schema
        ))
        .await;
    assert_eq!(open, 0);
}
