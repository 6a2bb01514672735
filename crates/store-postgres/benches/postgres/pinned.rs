//! Messages that pass while an old transaction is held open, so that nothing of what they leave behind can be cleaned up.

use tokio_postgres::{Client, NoTls};

use crate::Context;
use crate::caller::Caller;
use crate::life_cycle::{BODY_BYTES, ByStore};
use crate::measure::median;
use crate::progress::Progress;
use crate::report::{Bars, Limit, Table, grouped, megabytes, rate};
use crate::turns::{Done, until};

const BATCH: usize = 100;
const CALLERS: u64 = 4;
/// A round is measured in so many parts; the first and the last tenth of them are compared.
const PARTS: usize = 40;
const TENTH: usize = PARTS / 10;

pub(crate) fn run(context: &Context, bars: &mut Bars) {
    let mut table = Table::new(&[
        "round",
        "messages",
        "start messages/s",
        "middle",
        "end",
        "end/start",
        "dead tuples",
        "message MB",
        "all MB",
        "s",
    ]);
    let mut ratios = Vec::new();
    for number in 1..=context.scale.rounds {
        let (start, end) = round(context, number, &mut table);
        ratios.push(end / start);
    }
    println!("1 KiB, {} in the backlog; {CALLERS} callers, {BATCH} at a time", context.scale.backlog);
    table.print();
    bars.judge("pinned_end", &ratios, Limit::AtLeast(0.7));
}

fn round(context: &Context, number: usize, table: &mut Table) -> (f64, f64) {
    let (server, messages) = (&context.server, context.scale.pinned);
    let mut workers = context.runtime.block_on(workers(context));
    let old = context.runtime.block_on(hold(context));
    let mut progress = Progress::new(format!("pinned, round {number}"));
    let mut parts: Vec<f64> = Vec::new();
    let mut all = Done::default();
    for part in 1..=PARTS as u64 {
        let each = (messages * part / PARTS as u64).saturating_sub(all.messages).div_ceil(CALLERS);
        let done = until(context, &mut workers, move |_, messages| messages >= each);
        all += done;
        parts.push(done.rate());
        progress.at(|| format!("{} of {}, {}/s", all.messages, messages, rate(done.rate())));
    }
    let dead = "SELECT sum(n_dead_tup) FROM pg_stat_user_tables WHERE schemaname = 'bench'";
    let size = "SELECT pg_total_relation_size('bench.message')";
    let sizes =
        "SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables WHERE schemaname = 'bench'";
    let number_of = |sql: &str| server.ask(sql).parse::<u64>().unwrap_or_default();
    let start = median(&parts[..TENTH]);
    let end = median(&parts[PARTS - TENTH..]);
    table.row(&[
        &number,
        &grouped(all.messages),
        &rate(start),
        &rate(median(&parts[PARTS / 2 - TENTH / 2..PARTS / 2 + TENTH / 2])),
        &rate(end),
        &format!("{:.2}", end / start),
        &grouped(number_of(dead)),
        &megabytes(number_of(size)),
        &megabytes(number_of(sizes)),
        &format!("{:.0}", all.messages as f64 / all.rate()),
    ]);
    drop(old);
    for worker in &workers {
        worker.caller.close();
    }
    (start, end)
}

async fn workers(context: &Context) -> Vec<ByStore> {
    let connections = usize::try_from(CALLERS).expect("a few");
    let mut caller = Caller::open(&context.server, "bench", connections, BODY_BYTES).await;
    caller.load(context.scale.backlog, |_, _| ()).await;
    let mut workers: Vec<ByStore> =
        caller.others(CALLERS).into_iter().map(|caller| ByStore { caller, batch: BATCH }).collect();
    // Warm: connected and prepared.
    futures::future::join_all(workers.iter_mut().map(|worker| worker.caller.life_cycle(BATCH))).await;
    workers
}

/// A transaction that looks at the database as it is now, for as long as its connection lasts.
async fn hold(context: &Context) -> Client {
    let (client, connection) =
        tokio_postgres::connect(&context.server.url(), NoTls).await.expect("it connects");
    tokio::spawn(connection);
    let look = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM bench.queue";
    client.batch_execute(look).await.expect("it looks");
    client
}
