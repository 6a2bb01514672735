//! The statements, each in a file of its own.
//!
//! They are written for the schema `redrive` and read as they are run, but for two things: another schema may be put in
//! its place, and lists of columns that many statements share are filled in.

use tokio_postgres::types::Type;

/// The columns of a message, in the order in which `row.rs` reads them.
const MESSAGE: [&str; 30] = [
    "id",
    "class_id",
    "created_at",
    "visible_at",
    "place",
    "state",
    "rank",
    "unique_key",
    "attempts",
    "deliveries",
    "deliveries_before",
    "redrives",
    "max_attempts",
    "lease_timeout",
    "expires_at",
    "lease_id",
    "leased_at",
    "deadline",
    "ended_at",
    "fingerprint",
    "dead_reason",
    "fairness_key",
    "consumer",
    "dedup_key",
    "origin_queue",
    "no",
    "queue_id",
    "storied",
    "nacked",
    "size",
];

const STORY: &str = "story.last_error, story.checkpoint, story.death_reason, story.death_at, story.death_fingerprint, \
    story.redriven_at, story.redriven_by, story.redriven_reason, story.failures";

const CONTENT: &str = "content.body, content.content_type, content.headers";

/// What only few messages have is only looked for where there is some.
const JOIN_STORY: &str = "LEFT JOIN LATERAL (
    SELECT h.*, (SELECT json_agg(json_build_array(f.attempt, f.cause, f.rule, f.leased_at, f.ended_at, f.delay,
            f.consumer, f.error) ORDER BY f.place)
        FROM redrive.failure f WHERE f.no = h.no)::text AS failures
    FROM redrive.history h WHERE {}.storied AND h.no = {}.no
) story ON true";

/// What a claim looks at twice: to hold it, and to see whether others do.
const CANDIDATES: &str = include_str!("../sql/claim_candidates.sql");

/// A statement, and the types of what it takes.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) types: &'static [Type],
}

/// Fills in the shared lists of columns.
fn filled(text: &str) -> String {
    let mut text = text
        .replace("{candidates, held}", &CANDIDATES.replace("{hold}", "FOR UPDATE SKIP LOCKED"))
        .replace("{candidates}", &CANDIDATES.replace("{hold}", ""));
    for alias in ["m", "c"] {
        let columns: Vec<String> = MESSAGE.iter().map(|column| format!("{alias}.{column}")).collect();
        text = text.replace(&format!("{{message {alias}}}"), &columns.join(", "));
        text = text.replace(&format!("{{join story {alias}}}"), &JOIN_STORY.replace("{}", alias));
    }
    text.replace("{story}", STORY).replace("{content}", CONTENT)
}

/// Puts another schema in the place of the usual one. A name that needs quotes gets them.
pub(crate) fn in_schema(text: &str, schema: &str) -> String {
    if schema == "redrive" {
        return text.to_owned();
    }
    let quoted = format!("\"{}\"", schema.replace('"', "\"\""));
    text.replace("redrive.", &format!("{quoted}."))
}

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident [$($type:ident),*];)*) => {
        /// Every statement of the store.
        #[derive(Debug)]
        pub(crate) struct Statements {
            $($(#[$doc])* pub(crate) $name: Statement,)*
        }

        impl Statements {
            pub(crate) fn new(schema: &str) -> Self {
                Self {
                    $($name: Statement {
                        text: in_schema(&filled(include_str!(concat!("../sql/", stringify!($name), ".sql"))), schema),
                        types: &[$(Type::$type),*],
                    },)*
                }
            }

            /// Every one with its name.
            #[cfg(test)]
            pub(crate) fn all(&self) -> Vec<(&'static str, &Statement)> {
                vec![$((stringify!($name), &self.$name)),*]
            }
        }
    };
}

statements! {
    ack_fast [INT4_ARRAY, INT8_ARRAY, INT4_ARRAY, UUID_ARRAY, INT8_ARRAY];
    claim [INT4, INT8, INT8, INT8, BOOL, INT4, INT4, BOOL, BOOL, TEXT, BOOL, INT4, INT8, TEXT, BOOL, INT4, INT8, TEXT_ARRAY,
        INT8, INT8, INT8, INT4, INT4, INT4, INT8, INT8, TEXT_ARRAY, TEXT_ARRAY, INT4, INT4, BOOL, TEXT, INT2, INT8, INT8, TEXT,
        INT2, INT8, INT8, INT8];
    class_get [INT4];
    class_insert [INT4, TEXT, TEXT];
    class_sweep [INT4, INT4_ARRAY];
    clock [INT8, INT8];
    copy_begin [INT8, INT8, INT4, INT8, INT4];
    copy_content [];
    copy_message [];
    count [INT4, INT8, BOOL, BOOL, BOOL, INT8];
    enqueue [INT8, INT4_ARRAY, INT4_ARRAY, UUID_ARRAY, INT8_ARRAY, INT2_ARRAY, BOOL_ARRAY, INT4_ARRAY, INT4_ARRAY,
        INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, TEXT_ARRAY, TEXT_ARRAY];
    enqueue_fast [INT8, INT8, INT4_ARRAY, INT8_ARRAY, INT4_ARRAY, INT4_ARRAY, UUID_ARRAY, INT8_ARRAY, BOOL_ARRAY, INT8_ARRAY,
        BOOL_ARRAY, INT2_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, TEXT_ARRAY, TEXT_ARRAY, UUID];
    enqueue_known [INT4_ARRAY, UUID_ARRAY];
    entry_drop [TEXT, TEXT];
    entry_get [TEXT, TEXT];
    entry_insert [TEXT, TEXT, BYTEA];
    entry_list [TEXT, TEXT, INT8];
    entry_lock [TEXT_ARRAY, TEXT_ARRAY];
    entry_put [TEXT, TEXT, BYTEA];
    epoch_get [];
    epoch_put [BYTEA];
    expire_lock [INT4, INT8, INT8];
    expire_queues [INT8];
    get [TEXT, UUID];
    groups [INT4, INT8];
    hold_count [INT4, INT8];
    hold_drop [INT4_ARRAY, TEXT_ARRAY, UUID_ARRAY];
    hold_get [INT4_ARRAY, TEXT_ARRAY];
    hold_sweep [INT4, INT8, INT8];
    hold_take [INT4_ARRAY, TEXT_ARRAY, UUID_ARRAY, INT8_ARRAY, INT8];
    lapse_lock [INT4, INT8, INT8];
    lapse_spent [INT4, INT8, INT4, INT4, INT8];
    lock_queue [INT4, INT4];
    log_append [TEXT, INT8, BYTEA_ARRAY];
    log_read [TEXT, INT8, INT8];
    log_read_back [TEXT, INT8, INT8];
    log_trim [TEXT, INT8];
    logs_jump [];
    look_back [INT4];
    mark [UUID];
    mark_end [INT4, INT8];
    mark_find [UUID];
    mark_sweep [];
    nack_fast [INT8, INT8, INT4_ARRAY, INT8_ARRAY, INT4_ARRAY, UUID_ARRAY, INT8_ARRAY, INT8_ARRAY, INT2_ARRAY, TEXT_ARRAY,
        BYTEA_ARRAY];
    next_due [INT4, INT8];
    next_due_any [INT8];
    notify [TEXT, TEXT];
    numbers_jump [];
    probe [INT4, INT8, UUID, TEXT_ARRAY, TEXT_ARRAY, INT4, INT4];
    probe_lock [INT4, UUID];
    promote [INT4, INT8, INT8];
    queue_count [];
    queue_delete [INT4];
    queue_get [TEXT];
    queue_hold [TEXT_ARRAY];
    queue_insert [TEXT, INT8, JSONB];
    queue_keys [INT4, TEXT_ARRAY, INT4_ARRAY, INT8_ARRAY];
    queue_keys_clear [INT4];
    queue_list [TEXT, INT8];
    queue_own [INT4];
    queue_pause [INT4, JSONB];
    queue_present [INT4];
    queue_restamp [INT4];
    queue_update [INT4, JSONB];
    remove [INT4_ARRAY, UUID_ARRAY];
    retain [];
    scan [];
    scan_end [];
    server [];
    server_changed [BYTEA, BYTEA];
    server_first [BYTEA];
    server_hidden [];
    settle_lock [INT4_ARRAY, UUID_ARRAY];
    stamps_renew [];
    stats [INT4, INT8];
    tally [INT4, INT8_ARRAY];
    tally_fold [INT4];
    tally_long [];
    tally_sum [INT4];
    token [];
    trim_failures [INT8_ARRAY, INT8];
    write [INT4_ARRAY, UUID_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY, INT8_ARRAY, INT2_ARRAY, INT2_ARRAY, BOOL_ARRAY,
        BOOL_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY,
        INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT2_ARRAY, TEXT_ARRAY, TEXT_ARRAY];
    write_failures [INT8_ARRAY, INT4_ARRAY, INT2_ARRAY, INT2_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY];
    write_history [INT8_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, INT2_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY];
}
