//! What two instances bring that came upon the same message on its way: what the first of them was told is said to the other as well.

use redrive_core::message::State;
use redrive_test_servers::{Redis, RedisSettings};

use crate::world::{World, options};

/// `scripts/arrive.lua`, made of its parts as the store does it.
const ARRIVE: &str = concat!(
    include_str!("../../scripts/base.lua"),
    include_str!("../../scripts/lines.lua"),
    include_str!("../../scripts/keep.lua"),
    include_str!("../../scripts/death.lua"),
    include_str!("../../scripts/arrive.lua"),
);

const ID: &str = "01a3185c-5001-701d-8b14-e4db018fed00";

/// Brings the message on its nth way to a queue that takes so many classes.
fn arrive(server: &Redis, classes: &str, way: &str) -> String {
    let line =
        "X 1800000000000 7 5 - 1 1 0 0 - - 1 4 1800000000000 - : buried 1800000000000 00000000000000aa";
    let arguments = ["", ID, "9", classes, way, line, " ", "3", "source", "{}\nbody"];
    let keys = ["redrive:{1}:q", "redrive:{1}:!"];
    let words = [&["EVAL", ARRIVE, "2"][..], &keys, &arguments].concat();
    server.command(&words).expect("it answers")
}

/// Whoever heard of the refusal puts it back where it was, from where it may go anywhere. If the other could still bring it, it would be in
/// two queues.
#[tokio::test]
async fn a_way_that_was_refused_stays_refused() {
    let server = Redis::start(RedisSettings::default().appendonly(false)).expect("it starts");
    let world = World::open(options(&server.url())).await;
    assert_eq!(arrive(&server, "0", "5"), "c", "there is no room for its type");
    assert_eq!(arrive(&server, "1000", "5"), "c", "now there is, and this way is over");
    assert_eq!(world.stats().await.states.all(), 0);
    assert_eq!(arrive(&server, "1000", "6"), "e", "it sets out anew");
    assert_eq!(arrive(&server, "1000", "6"), "e", "what was brought is brought once");
    assert_eq!(arrive(&server, "1000", "7"), "d", "it is there already");
    let message = world.lease(10).await.remove(0);
    world.ack(&[message]).await.unwrap();
    assert_eq!(arrive(&server, "1000", "7"), "d", "it was then");
    assert_eq!(arrive(&server, "1000", "6"), "e", "and has been since");
    let states = world.stats().await.states;
    assert_eq!((states.of(State::Ready), states.all()), (0, 0));
}
