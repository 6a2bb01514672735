//! A look at a store that was opened again: does everything that was told hold?

use futures::executor::block_on;
use redrive_core::lifecycle::Verb as Transition;
use redrive_core::message::{Message, State};
use redrive_core::queue::QueueName;
use redrive_store::{Filter, ListRequest, Now, QueueError, Store};

use crate::caller::QUEUES;
use crate::history::{History, Looked};

/// Compares everything in the store with the history, and its counters with both.
pub(crate) fn look(store: &dyn Store, history: &mut History) -> Looked {
    block_on(async {
        let mut present = Vec::new();
        let mut problems = Vec::new();
        for name in QUEUES {
            let queue = QueueName::new(name).expect("a good name");
            match list(store, &queue).await {
                Ok(messages) => present.extend(messages),
                // The process was killed before it had created its queues: whatever it was told shows as lost.
                Err(QueueError::NotFound(_)) => {}
                Err(error) => problems.push(error.to_string()),
            }
        }
        let mut looked = history.look(&present);
        for name in QUEUES {
            let queue = QueueName::new(name).expect("a good name");
            if let Err(error) = conserve(store, &queue, &present, history, &mut problems).await {
                problems.extend((!matches!(error, QueueError::NotFound(_))).then(|| error.to_string()));
            }
        }
        looked.problems.extend(problems);
        looked
    })
}

/// Panics with what contradicts the history.
pub(crate) fn hold(what: &str, looked: &Looked) {
    let problems = &looked.problems;
    let first: Vec<_> = problems.iter().take(10).map(String::as_str).collect();
    assert!(problems.is_empty(), "{what}: {} problems, the first are\n{}", problems.len(), first.join("\n"));
}

/// P7: recount, counters and history agree.
async fn conserve(
    store: &dyn Store,
    queue: &QueueName,
    present: &[Message],
    history: &History,
    problems: &mut Vec<String>,
) -> Result<(), QueueError> {
    let stats = store.stats(Now::Store, queue).await?;
    let here: Vec<_> = present.iter().filter(|message| message.queue == *queue).collect();
    let mut same = |what: &str, counted: u64, expected: u64| {
        if counted != expected {
            problems.push(format!("{queue}: {what}: {counted} are counted, {expected} are known"));
        }
    };
    let expected = stats.totals.expected_present();
    same("present by the totals", expected.unwrap_or(u64::MAX), here.len() as u64);
    same("present by the states", stats.states.all(), here.len() as u64);
    for state in [State::Leased, State::Dead] {
        let known = here.iter().filter(|message| message.state(stats.at) == state).count();
        same(state.name(), stats.states.of(state), known as u64);
    }
    let enqueued = history.enqueued(queue);
    same("enqueued", stats.totals.of(Transition::Enqueue), enqueued);
    let gone = stats.totals.of(Transition::Ack) + stats.totals.of(Transition::Discard);
    same("acked and discarded", gone, enqueued - (here.len() as u64).min(enqueued));
    Ok(())
}

async fn list(store: &dyn Store, queue: &QueueName) -> Result<Vec<Message>, QueueError> {
    let mut request = ListRequest::new(queue.clone(), Filter::default());
    let mut all = Vec::new();
    loop {
        let page = store.list(Now::Store, request.clone()).await?;
        all.extend(page.messages);
        match page.next {
            Some(next) => request.after = Some(next),
            None => return Ok(all),
        }
    }
}
