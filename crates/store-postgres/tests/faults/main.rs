//! What the store does when the database fails: nothing acknowledged is lost, nothing that failed happens, nobody is told
//! what is not so, and the service goes on by itself.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod commit;
mod crash;
mod failover;
mod ledger;
mod limits;
mod load;
mod world;
