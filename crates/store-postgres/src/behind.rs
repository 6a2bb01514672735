//! What lies behind: entries at the beginning of the lines that lead to nothing any more.
//!
//! A message that was handed out leaves an entry in its line, which the database clears away once nobody can see it. While an
//! old transaction is open it may not, and every claim would read all of those entries again. So an instance looks from
//! time to time how many there are, and where there are many it remembers up to where its claims need not look.
//!
//! What comes to stand behind that after all is found: what this instance puts back there at once, what others put
//! there (a release, a transaction that was committed late) by the next look, and as soon as a claim gets less than it
//! asked for. Where nothing is in the way nothing is remembered, and a claim begins at the beginning.

use redrive_core::message::{Lane, Message};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::StoreError;
use tokio_postgres::Row;

use crate::error::Fault;
use crate::queue::Known;
use crate::row::{Columns, Kept, millis, rank};
use crate::session::Session;
use crate::store::Shared;

/// A look is taken after so many messages were handed out, or after a part of what the last one read: the more there
/// is to read, the more it costs.
const LOOK_AFTER: u64 = 1_024;
const LOOK_SHARE: u64 = 4;
/// From so many entries on they are worth remembering.
const MANY: u64 = 256;

/// A place in the lines of a lane: of the messages with that key and priority, none before it is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) key: String,
    pub(crate) rank: i16,
    pub(crate) visible_at: i64,
    pub(crate) place: i64,
}

/// A mark before everything.
static NONE: Mark = Mark { key: String::new(), rank: -1, visible_at: -1, place: -1 };

/// What an instance remembers of a queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Behind {
    fresh: Option<Mark>,
    retry: Option<Mark>,
    /// No lease ends at this time or earlier.
    overdue: Option<i64>,
    handed_out: u64,
    look_after: Option<u64>,
    /// Raised when something came back: a claim that began before says nothing about it.
    returns: u64,
}

/// What a look has found: the first of each lane, the first lease to end, and how many entries were read for it.
struct Seen {
    fresh: Option<Mark>,
    retry: Option<Mark>,
    first_deadline: Option<i64>,
    ready_read: u64,
    leased_read: u64,
}

impl Seen {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let mut from = Columns::from(row, 0);
        let mut mark = || -> Result<Option<Mark>, StoreError> {
            let (key, rank, visible_at, place) = (from.take()?, from.take()?, from.take()?, from.take()?);
            let mark = (key, rank, visible_at, place);
            Ok(match mark {
                (Some(key), Some(rank), Some(visible_at), Some(place)) => {
                    Some(Mark { key, rank, visible_at, place })
                }
                _ => None,
            })
        };
        let (fresh, retry) = (mark()?, mark()?);
        let first_deadline = from.take()?;
        let mut read = || Ok::<_, StoreError>(u64::try_from(from.take::<i64>()?).unwrap_or(0));
        Ok(Self { fresh, retry, first_deadline, ready_read: read()?, leased_read: read()? })
    }
}

impl Behind {
    /// Whether it is time to look.
    pub(crate) fn is_look_due(&self) -> bool {
        self.handed_out >= self.look_after.unwrap_or(LOOK_AFTER)
    }

    /// What a look has found; `now` is no later than when it was taken.
    pub(crate) fn looked(&mut self, row: &Row, now: Timestamp) -> Result<(), StoreError> {
        self.saw(Seen::read(row)?, millis(now));
        Ok(())
    }

    fn saw(&mut self, seen: Seen, now: i64) {
        let Seen { fresh, retry, first_deadline, ready_read, leased_read } = seen;
        (self.fresh, self.retry) = if ready_read >= MANY { (fresh, retry) } else { (None, None) };
        let overdue = first_deadline.map_or(now, |deadline| now.min(deadline - 1));
        self.overdue = (leased_read >= MANY).then_some(overdue);
        self.handed_out = 0;
        self.look_after = Some(LOOK_AFTER.max(ready_read.max(leased_read) / LOOK_SHARE));
    }

    pub(crate) fn mark(&self, lane: Lane) -> &Mark {
        let mark = match lane {
            Lane::Fresh => &self.fresh,
            Lane::Retry => &self.retry,
        };
        mark.as_ref().unwrap_or(&NONE)
    }

    /// Leases that ended no later than this need not be looked for.
    pub(crate) fn overdue(&self) -> i64 {
        self.overdue.unwrap_or(i64::MIN)
    }

    /// Whether claims leave something out.
    pub(crate) fn leaves_out(&self) -> bool {
        self.fresh.is_some() || self.retry.is_some() || self.overdue.is_some()
    }

    /// Claims begin at the beginning again. How many were handed out since the last look goes on counting.
    pub(crate) fn forget(&mut self) {
        (self.fresh, self.retry, self.overdue) = (None, None, None);
        self.returns += 1;
    }

    /// Something stands in a line again, or may, since that time.
    pub(crate) fn came_back(&mut self, visible_at: i64) {
        for mark in [&mut self.fresh, &mut self.retry].into_iter().flatten() {
            if visible_at <= mark.visible_at {
                (mark.visible_at, mark.place) = (visible_at, -1);
            }
        }
        self.returns += 1;
    }

    /// A claim that began when this was as in `before` has handed out a message.
    pub(crate) fn handed_out(&mut self, before: &Self, lane: Lane, kept: &Kept) {
        self.handed_out += 1;
        if self.returns != before.returns {
            return;
        }
        let mark = match lane {
            Lane::Fresh => &mut self.fresh,
            Lane::Retry => &mut self.retry,
        };
        let Some(mark) = mark else { return };
        let Message { spec, progress, .. } = &kept.message;
        let (visible_at, place) = (millis(progress.visible_at), kept.place());
        if mark.key == spec.fairness_key.as_str()
            && mark.rank == rank(progress.priority)
            && (mark.visible_at, mark.place) < (visible_at, place)
        {
            (mark.visible_at, mark.place) = (visible_at, place);
        }
    }

    /// A claim that began when this was as in `before` has found nothing that was overdue.
    pub(crate) fn nothing_overdue(&mut self, before: &Self, now: Timestamp) {
        if self.returns == before.returns
            && let Some(overdue) = &mut self.overdue
        {
            *overdue = (*overdue).max(millis(now));
        }
    }
}

impl Shared {
    /// Looks what is in the way of claims, where that is due.
    pub(crate) async fn look_behind(&self, session: &Session, known: &Known) -> Result<(), Fault> {
        if !self.turns().entry(known.id).or_default().behind.is_look_due() {
            return Ok(());
        }
        let now = self.link.seen();
        let rows = session.rows(&self.link.sql.look_back, &[&known.id]).await?;
        if let (Some(row), Some(turns)) = (rows.first(), self.turns().get_mut(&known.id)) {
            turns.behind.looked(row, now)?;
        }
        Ok(())
    }

    /// Claims of the queue leave nothing out.
    pub(crate) fn forget_behind(&self, queue: &QueueName) {
        let Some(id) = self.cache().get(queue).map(|known| known.id) else { return };
        if let Some(turns) = self.turns().get_mut(&id) {
            turns.behind.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::lease::ConsumerName;
    use redrive_core::lifecycle::{Draft, When};
    use redrive_core::message::{
        Body, ContentType, FairnessKey, Headers, MessageId, MessageType, Priority, Source, Spec,
    };
    use redrive_core::queue::QueueConfig;
    use redrive_core::receipt::Claim;
    use redrive_store::{
        AckItem, Batch, CreateQueue, EnqueueItem, LeaseRequest, LeaseTarget, Limit, Now, ReleaseItem,
        Settled, Store,
    };
    use tokio_postgres::NoTls;

    use super::*;
    use crate::PostgresStore;
    use crate::plans::with_store;

    const MESSAGES: u64 = 6_000;
    const CALL: usize = 100;

    fn mark(visible_at: i64, place: i64) -> Mark {
        Mark { key: "tenant".to_owned(), rank: 4, visible_at, place }
    }

    fn seen(read: u64) -> Seen {
        let (fresh, retry) = (Some(mark(100, 7)), None);
        Seen { fresh, retry, first_deadline: Some(5_000), ready_read: read, leased_read: read }
    }

    #[test]
    fn where_little_is_in_the_way_nothing_is_left_out() {
        let mut behind = Behind::default();
        behind.saw(seen(MANY - 1), 1_000);
        assert!(!behind.leaves_out());
        assert_eq!((behind.mark(Lane::Fresh), behind.overdue()), (&NONE, i64::MIN));
    }

    #[test]
    fn the_more_a_look_reads_the_rarer_it_is() {
        let mut behind = Behind::default();
        for (read, after) in [(0, LOOK_AFTER), (10, LOOK_AFTER), (1_000_000, 250_000)] {
            behind.saw(seen(read), 1_000);
            behind.handed_out = after - 1;
            assert!(!behind.is_look_due(), "{read}");
            behind.handed_out = after;
            assert!(behind.is_look_due(), "{read}");
        }
    }

    #[test]
    fn leases_are_looked_for_from_the_time_of_the_look_or_from_the_first_that_ends() {
        let mut behind = Behind::default();
        behind.saw(seen(MANY), 1_000);
        assert_eq!(behind.overdue(), 1_000);
        behind.saw(seen(MANY), 9_000);
        assert_eq!(behind.overdue(), 4_999);
    }

    #[test]
    fn what_comes_back_moves_the_mark_back_and_a_claim_that_began_before_does_not_move_it_on() {
        let mut behind = Behind::default();
        behind.saw(seen(MANY), 1_000);
        let before = behind.clone();
        behind.came_back(200);
        assert_eq!(behind.mark(Lane::Fresh), &mark(100, 7), "it stands behind the mark");
        behind.came_back(100);
        assert_eq!(behind.mark(Lane::Fresh), &mark(100, -1));
        behind.nothing_overdue(&before, Timestamp::from_millis(2_000));
        assert_eq!(behind.overdue(), 1_000);
        behind.nothing_overdue(&behind.clone(), Timestamp::from_millis(2_000));
        assert_eq!(behind.overdue(), 2_000);
        behind.forget();
        assert!(!behind.leaves_out());
    }

    fn queue() -> QueueName {
        QueueName::new("pinned").expect("a name")
    }

    fn item(number: u64) -> EnqueueItem {
        let spec = Spec {
            id: MessageId::new(Timestamp::from_millis(1_000_000 + number), u128::from(number)),
            body: Body::default(),
            content_type: ContentType::default(),
            headers: Headers::default(),
            kind: MessageType::default(),
            source: Source::default(),
            fairness_key: FairnessKey::default(),
            dedup: None,
            lease_timeout: None,
            max_attempts: None,
        };
        let draft = Draft { spec, priority: Priority::default(), visible: When::Now, expires: None };
        EnqueueItem { queue: queue(), draft }
    }

    async fn enqueue(store: &PostgresStore, numbers: std::ops::Range<u64>) {
        let batch = Batch::each(numbers.map(item).collect()).expect("within the limits");
        store.enqueue(Now::Store, batch).await.expect("they are enqueued");
    }

    async fn lease(store: &PostgresStore, limit: usize) -> Vec<Message> {
        let consumer = ConsumerName::new("me").expect("a name");
        let limit = Limit::new(limit).expect("a limit");
        let request = LeaseRequest::new(queue(), limit, consumer, 1);
        store.lease(Now::Store, request).await.expect("it leases").messages
    }

    async fn ack(store: &PostgresStore, messages: &[Message]) {
        let items = messages.iter().map(|message| AckItem { claim: Claim::on(message).expect("a lease") });
        let batch = Batch::each(items.collect()).expect("within the limits");
        let settled = store.ack(Now::Store, batch).await.expect("it acks");
        assert!(settled.iter().all(Settled::is_applied));
    }

    /// How many entries of its lines the database has read so far, for the only connection of the store.
    async fn entries_read(store: &PostgresStore) -> i64 {
        let link = store.link();
        let session = link.session().await.expect("it connects");
        let index = "'redrive.message_ready'::regclass";
        let sql = format!(
            "SELECT pg_stat_get_tuples_returned({index}) + pg_stat_get_xact_tuples_returned({index})"
        );
        session.rows_of(&link.in_schema(&sql), &[]).await.expect("it counts")[0].get(0)
    }

    /// The whole way: an old transaction keeps what is left of thousands of messages; claims do not read it, and what comes
    /// to stand among it is handed out in its order all the same.
    #[test]
    fn what_an_old_transaction_keeps_is_not_read_by_claims() {
        with_store("behind", 1, async |store| {
            let create = CreateQueue { name: queue(), config: QueueConfig::default() };
            store.create_queue(Now::Store, create).await.expect("it is created");
            let url = redrive_test_servers::shared_postgres_url();
            let (old, connection) = tokio_postgres::connect(&url, NoTls).await.expect("it connects");
            let connection = tokio::spawn(connection);
            old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.expect("it looks");

            for from in (0..MESSAGES).step_by(1_000) {
                enqueue(store, from..from + 1_000).await;
            }
            for _ in 0..40 {
                let messages = lease(store, CALL).await;
                assert_eq!(messages.len(), CALL);
                ack(store, &messages).await;
            }
            let gone = 40 * i64::try_from(CALL).expect("small");
            let before = entries_read(store).await;
            let mut held = Vec::new();
            for _ in 0..10 {
                held = lease(store, CALL).await;
                assert_eq!(held.len(), CALL);
                ack(store, &held[1..]).await;
            }
            let read = entries_read(store).await - before;
            assert!(read < 10 * gone, "{read} entries were read for ten claims, with {gone} in the way");

            // It was handed out before all that followed, and is so again.
            let first = held.remove(0);
            let item =
                ReleaseItem { target: LeaseTarget::Claim(Claim::on(&first).expect("a lease")), delay: None };
            let batch = Batch::each(vec![item]).expect("within the limits");
            store.release(Now::Store, batch).await.expect("it is released");
            let next = lease(store, 1).await;
            assert_eq!(next[0].id(), first.id());
            ack(store, &next).await;

            let left = lease(store, 1_000).await;
            assert_eq!(left.len(), 1_000, "all that was never handed out");
            drop(old);
            connection.await.expect("it ends").expect("it ends well");
        });
    }
}
