//! signals: what one instance tells, the others hear.
//!
//! No rule waits for something not to come: it tells another thing after it, and that is what must come next.

use redrive_core::limits::{QUEUE_NAME_BYTES_MAX, REGISTRY_KEY_BYTES_MAX};
use redrive_core::queue::QueueName;
use redrive_store::{EntryKey, EntryKind, EntryName, Heard, Listener, Notice, Signal, Store};

use crate::world::World;

fn ready(name: &str) -> Signal {
    Signal::Ready(QueueName::new(name).expect("a good name"))
}

/// An instance that listens already.
async fn ear(door: &dyn Store) -> Box<dyn Listener> {
    let mut ear = door.listen().expect("a store of several instances listens");
    assert_eq!(ear.hear().await, Heard::Lost, "what was told before may have been missed");
    ear
}

async fn tell(door: &dyn Store, signals: &[Signal]) {
    door.tell(signals.to_vec()).await.expect("the store answers");
}

async fn hears(ear: &mut dyn Listener, signals: &[Signal]) {
    for signal in signals {
        assert_eq!(ear.hear().await, Heard::Signal(signal.clone()));
    }
}

async fn what_one_instance_tells_the_others_hear(w: &mut World) {
    let doors = w.doors(3).await;
    let (mut second, mut third) = (ear(doors[1].as_ref()).await, ear(doors[2].as_ref()).await);
    let told = [ready("a"), ready("b"), Signal::Queue(QueueName::new("a").expect("a good name"))];
    tell(doors[0].as_ref(), &told[..2]).await;
    tell(doors[0].as_ref(), &told[2..]).await;
    tell(doors[0].as_ref(), &[]).await;
    hears(second.as_mut(), &told).await;
    hears(third.as_mut(), &told).await;
}

async fn an_instance_does_not_hear_itself(w: &mut World) {
    let doors = w.doors(2).await;
    let (mut first, mut second) = (ear(doors[0].as_ref()).await, ear(doors[1].as_ref()).await);
    let (own, others) = ([ready("own")], [ready("others")]);
    tell(doors[0].as_ref(), &own).await;
    tell(doors[1].as_ref(), &others).await;
    hears(first.as_mut(), &others).await;
    hears(second.as_mut(), &own).await;
}

async fn whatever_may_be_told_arrives_as_it_was(w: &mut World) {
    let doors = w.doors(2).await;
    let mut second = ear(doors[1].as_ref()).await;
    let entry = |name: &str| {
        let name = EntryName::new(name).expect("a good name");
        Signal::Entry(EntryKey { kind: EntryKind::Operation, name })
    };
    let told = [
        ready("AZaz09._-"),
        ready(&"q".repeat(QUEUE_NAME_BYTES_MAX)),
        entry("it's \"quoted\" \\ $1; ümlaut 🦀 "),
        entry(&"e".repeat(REGISTRY_KEY_BYTES_MAX)),
        Signal::Notice(Notice::new(r#"{"a":"b\\c"}"#).expect("a good notice")),
        Signal::Notice(Notice::new("'".repeat(Notice::BYTES_MAX)).expect("as long as it may be")),
    ];
    tell(doors[0].as_ref(), &told).await;
    hears(second.as_mut(), &told).await;
}

async fn many_are_heard_in_order_or_the_loss_is_said(w: &mut World) {
    let doors = w.doors(2).await;
    let mut second = ear(doors[1].as_ref()).await;
    let told: Vec<Signal> = (0..3_000).map(|n| ready(&format!("q{n}"))).collect();
    for some in told.chunks(500) {
        tell(doors[0].as_ref(), some).await;
    }
    let (mut expected, mut lost) = (told.iter(), false);
    while expected.len() > 0 {
        match second.hear().await {
            Heard::Lost => lost = true,
            // Whatever was skipped was said to be lost.
            Heard::Signal(heard) if std::mem::take(&mut lost) => {
                assert!(expected.any(|later| *later == heard), "{heard:?} came out of its order");
            }
            Heard::Signal(heard) => assert_eq!(expected.next(), Some(&heard)),
        }
    }
}

rules!("signal"; shared:
    what_one_instance_tells_the_others_hear,
    an_instance_does_not_hear_itself,
    whatever_may_be_told_arrives_as_it_was,
    many_are_heard_in_order_or_the_loss_is_said,
);
