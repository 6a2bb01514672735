//! Locks: one holds each, for as long as it is heard of.

use std::collections::BTreeSet;

use futures::future::join_all;
use redrive_core::time::Millis;
use redrive_store::{EntryName, LockClaim, LockToken, Store};

use crate::world::World;

const LIFETIME: Millis = Millis::from_secs(30);
/// Over within the next look, by whichever clock.
const BLINK: Millis = Millis::new(1);
/// Looks within which a lock ends that lives for so short a time, on a machine that is slow.
const LOOKS: usize = 100_000;

fn claim(name: &str, token: u128) -> LockClaim {
    LockClaim { name: EntryName::new(name).expect("a good name"), token: LockToken::new(token) }
}

async fn holds(w: &World, store: &dyn Store, token: u128) -> bool {
    store.hold_lock(w.now(), &claim("sweep", token), LIFETIME).await.expect("answers")
}

async fn releases(store: &dyn Store, token: u128) -> bool {
    store.release_lock(&claim("sweep", token)).await.expect("answers")
}

async fn a_lock_has_one_owner_who_keeps_it_by_asking_again(w: &mut World) {
    let doors = w.doors(2).await;
    assert!(holds(w, &*doors[0], 1).await);
    assert!(!holds(w, &*doors[1], 2).await);
    for _ in 0..5 {
        w.advance(20_000);
        assert!(holds(w, &*doors[0], 1).await, "it is renewed");
        assert!(!holds(w, &*doors[1], 2).await, "and is nobody else's");
    }
    let other = claim("another", 2);
    assert!(
        doors[1].hold_lock(w.now(), &other, LIFETIME).await.expect("answers"),
        "each has a name of its own"
    );
}

async fn only_its_owner_lets_go_of_a_lock(w: &mut World) {
    let doors = w.doors(2).await;
    assert!(!releases(&*doors[0], 1).await, "nobody has it");
    assert!(holds(w, &*doors[0], 1).await);
    assert!(!releases(&*doors[1], 2).await);
    assert!(!holds(w, &*doors[1], 2).await, "it was not let go of");
    assert!(releases(&*doors[0], 1).await);
    assert!(!releases(&*doors[0], 1).await, "once");
    assert!(holds(w, &*doors[1], 2).await);
    assert!(!releases(&*doors[0], 1).await, "what was its own is somebody else's");
    assert!(!holds(w, &*doors[0], 1).await);
}

async fn a_lock_whose_owner_is_silent_goes_to_another(w: &mut World) {
    let doors = w.doors(2).await;
    assert!(doors[0].hold_lock(w.now(), &claim("sweep", 1), BLINK).await.expect("answers"));
    let mut looks = 0;
    // Time passes by the test's clock and by that of a server.
    while !holds(w, &*doors[1], 2).await {
        w.advance(1);
        looks += 1;
        assert!(looks < LOOKS, "it never ends");
    }
    assert!(!holds(w, &*doors[0], 1).await, "it does not come back");
    assert!(!releases(&*doors[0], 1).await);
}

async fn one_of_many_gets_a_lock(w: &mut World) {
    let doors = w.doors(8).await;
    let asked = doors.iter().zip(0u128..).map(|(door, token)| holds(w, &**door, token));
    let winners: BTreeSet<usize> =
        join_all(asked).await.into_iter().enumerate().filter_map(|(n, won)| won.then_some(n)).collect();
    assert_eq!(winners.len(), 1, "{winners:?}");
}

rules!("lock";
    a_lock_has_one_owner_who_keeps_it_by_asking_again,
    only_its_owner_lets_go_of_a_lock,
    a_lock_whose_owner_is_silent_goes_to_another,
    one_of_many_gets_a_lock,
);
