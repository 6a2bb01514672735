//! The functions for applications, beside a store on the same schema.

mod claim;
mod docs;
mod enqueue;
mod grants;
mod retry;
mod settle;
mod world;
