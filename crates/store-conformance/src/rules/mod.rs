//! The rules: one file per verb, and one for each promise that spans verbs.
//!
//! A rule is an `async fn(&mut World)` that panics where it is broken. After each, the world is audited: every
//! queue must add up, whatever the rule was about.

/// Lists the rules of a file, in its order. A rule that is not listed is dead code, which the compiler reports.
macro_rules! rules {
    ($file:literal; $($rule:ident),+ $(,)? $(; across queues: $($across:ident),+ $(,)?)?) => {
        pub(super) fn rules() -> Vec<$crate::suite::Rule> {
            vec![
                $(rules!(@one $file, $rule, Nothing),)+
                $($(rules!(@one $file, $across, AtomicAcrossQueues),)+)?
            ]
        }
    };
    ($file:literal; shared: $($shared:ident),+ $(,)?) => {
        pub(super) fn rules() -> Vec<$crate::suite::Rule> {
            vec![$(rules!(@one $file, $shared, Shared),)+]
        }
    };
    (@one $file:literal, $rule:ident, $needs:ident) => {
        $crate::suite::Rule {
            name: concat!($file, "::", stringify!($rule)),
            needs: $crate::suite::Needs::$needs,
            test: |mut world| {
                Box::pin(async move {
                    $rule(&mut world).await;
                    world.audit().await;
                })
            },
        }
    };
}

mod ack;
mod arrows;
mod batch;
mod breaker;
mod bury;
mod conservation;
mod count;
mod dedup;
mod discard;
mod enqueue;
mod expire;
mod extend;
mod fairness;
mod fencing;
mod filter;
mod instances;
mod lanes;
mod lapse;
mod lease;
mod limits;
mod list;
mod lock;
mod log;
mod r#move;
mod nack;
mod ordering;
mod queue;
mod recovery;
mod redrive;
mod registry;
mod release;
mod reschedule;
mod retain;
mod signal;
mod time;

use crate::suite::Rule;

pub(crate) fn all() -> Vec<Rule> {
    [
        enqueue::rules(),
        lease::rules(),
        extend::rules(),
        ack::rules(),
        nack::rules(),
        release::rules(),
        expire::rules(),
        bury::rules(),
        lapse::rules(),
        retain::rules(),
        reschedule::rules(),
        r#move::rules(),
        redrive::rules(),
        discard::rules(),
        batch::rules(),
        queue::rules(),
        ordering::rules(),
        fencing::rules(),
        instances::rules(),
        lanes::rules(),
        fairness::rules(),
        dedup::rules(),
        filter::rules(),
        list::rules(),
        count::rules(),
        limits::rules(),
        time::rules(),
        recovery::rules(),
        conservation::rules(),
        arrows::rules(),
        breaker::rules(),
        registry::rules(),
        lock::rules(),
        log::rules(),
        signal::rules(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
