-- What Redrive keeps in PostgreSQL. Times are milliseconds since 1970, by the database's clock.
--
-- The hot table is narrow: what a claim and a settlement rewrite is `message`; what is written once is `content`; what
-- only failures write is `history` and `failure`. They meet by `no`, which never changes, so that a message can move to
-- another queue by one row.

-- Whoever goes to the back of a line takes the next number. The first one of a message is also its `no`.
CREATE SEQUENCE redrive.place AS bigint;
-- The lower 48 bits of the next lease id.
CREATE SEQUENCE redrive.token AS bigint MAXVALUE 281474976710655;
-- Versions of queues and of entries of the registry: never the same twice, whatever is deleted.
CREATE SEQUENCE redrive.version AS bigint;

-- What all instances share: the receipt key, the epoch of lease ids, the defaults that functions use.
CREATE TABLE redrive.shared (
    name text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

CREATE TABLE redrive.queue (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    created_at bigint NOT NULL,
    version bigint NOT NULL,
    -- Raised by every change, pauses included: what an instance has cached is right as long as this is the same.
    stamp bigint NOT NULL,
    config jsonb NOT NULL,
    pauses jsonb NOT NULL
);

-- Fairness keys with a weight or a pause of their own, as `queue.config` and `queue.pauses` say. A claim looks up the
-- keys it walks over; thousands of them in a document would have to be unpacked each time.
CREATE TABLE redrive.key_setting (
    queue_id integer NOT NULL,
    key text COLLATE "C" NOT NULL,
    weight integer NOT NULL DEFAULT 1,
    -- Until when it is paused; 0 is not at all.
    paused_until bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (queue_id, key)
);

-- The pairs of type and source of a queue. A message names its pair by number.
CREATE TABLE redrive.class (
    queue_id integer NOT NULL,
    id integer GENERATED ALWAYS AS IDENTITY,
    type text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    PRIMARY KEY (queue_id, id),
    UNIQUE (queue_id, type, source)
);

-- States: 0 delayed, 1 ready, 2 leased, 3 dead, 4 done. A delayed message whose time has come is ready for everybody who
-- looks; a claim writes that down for as many as it needs.
CREATE TABLE redrive.message (
    queue_id integer NOT NULL,
    class_id integer NOT NULL,
    id uuid NOT NULL,
    no bigint NOT NULL,
    created_at bigint NOT NULL,
    visible_at bigint NOT NULL,
    place bigint NOT NULL,
    state smallint NOT NULL,
    -- 9 minus the priority, so that the first in line has the smallest.
    rank smallint NOT NULL,
    -- The lane: charged before, or redriven.
    retry boolean NOT NULL DEFAULT false,
    -- Whether there is anything in `history` or `failure`.
    storied boolean NOT NULL DEFAULT false,
    -- Whether the dedup key is held until the message is done; null without a key.
    unique_key boolean,
    attempts integer NOT NULL DEFAULT 0,
    deliveries integer NOT NULL DEFAULT 0,
    deliveries_before integer NOT NULL DEFAULT 0,
    redrives integer NOT NULL DEFAULT 0,
    -- Body and headers in bytes: how much a claim hands out is known before it is read.
    size integer NOT NULL,
    max_attempts integer,
    lease_timeout bigint,
    expires_at bigint,
    -- The lease, its bits with the first one flipped: signed numbers then sort as lease ids do.
    lease_id bigint,
    leased_at bigint,
    deadline bigint,
    -- When it died or was done.
    ended_at bigint,
    fingerprint bigint,
    dead_reason smallint,
    fairness_key text COLLATE "C" NOT NULL DEFAULT '',
    consumer text COLLATE "C",
    dedup_key text COLLATE "C",
    origin_queue text COLLATE "C",
    -- The error of a nack that nobody has judged yet.
    nacked text COLLATE "C",
    CONSTRAINT message_key PRIMARY KEY (queue_id, id)
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_vacuum_cost_delay = 0
);

-- The lines: lane, key, priority, order. A claim walks the keys of it, and takes the first messages of each.
CREATE INDEX message_ready ON redrive.message (queue_id, retry, fairness_key, rank, visible_at, place)
    WHERE state = 1;
-- The same lines by type and source, for consumers that take only some. What has neither needs no second line.
CREATE INDEX message_class ON redrive.message (queue_id, class_id, retry, fairness_key, rank, visible_at, place)
    WHERE state = 1 AND class_id <> 0;
CREATE INDEX message_delayed ON redrive.message (queue_id, visible_at, place) WHERE state = 0;
CREATE INDEX message_leased ON redrive.message (queue_id, deadline, lease_id) WHERE state = 2;
CREATE INDEX message_retries ON redrive.message (queue_id) WHERE state = 2 AND retry;
CREATE INDEX message_lapse ON redrive.message (queue_id, expires_at, id)
    WHERE state < 2 AND expires_at IS NOT NULL;
-- Retries by how often they were tried: which is the best probe, and which are over a cap that was lowered.
CREATE INDEX message_tried ON redrive.message (queue_id, attempts, rank, visible_at, place) WHERE state = 1 AND retry;
CREATE INDEX message_tried_delayed ON redrive.message (queue_id, attempts) WHERE state = 0 AND retry;
CREATE INDEX message_delivered ON redrive.message (queue_id, (deliveries - deliveries_before))
    WHERE state < 2 AND deliveries > deliveries_before;
CREATE INDEX message_dead ON redrive.message (queue_id, ended_at, id) WHERE state = 3;
CREATE INDEX message_failures ON redrive.message (queue_id, fingerprint) WHERE state = 3;
CREATE INDEX message_done ON redrive.message (queue_id, ended_at, id) WHERE state = 4;
-- The same by id, for whoever looks through them.
CREATE INDEX message_dead_id ON redrive.message (queue_id, id) WHERE state = 3;
CREATE INDEX message_done_id ON redrive.message (queue_id, id) WHERE state = 4;

CREATE TABLE redrive.content (
    no bigint PRIMARY KEY,
    body bytea NOT NULL,
    content_type text COLLATE "C" NOT NULL,
    -- Null for none.
    headers jsonb
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_vacuum_cost_delay = 0
);
-- Bodies are often compressed already, and a claim should not pay for finding out.
ALTER TABLE redrive.content ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE redrive.history (
    no bigint PRIMARY KEY,
    last_error text COLLATE "C",
    checkpoint bytea,
    death_reason smallint,
    death_at bigint,
    death_fingerprint bigint,
    redriven_at bigint,
    redriven_by text COLLATE "C",
    redriven_reason text COLLATE "C"
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- The last failed attempts of a message, in the order of `place`.
CREATE TABLE redrive.failure (
    no bigint NOT NULL,
    place bigint NOT NULL,
    attempt integer NOT NULL,
    cause smallint NOT NULL,
    rule smallint,
    leased_at bigint NOT NULL,
    ended_at bigint NOT NULL,
    delay bigint,
    consumer text COLLATE "C" NOT NULL,
    error text COLLATE "C" NOT NULL,
    PRIMARY KEY (no, place)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Dedup keys that are taken: until a time, or until their message is done.
CREATE TABLE redrive.hold (
    queue_id integer NOT NULL,
    key text COLLATE "C" NOT NULL,
    message uuid NOT NULL,
    until bigint,
    PRIMARY KEY (queue_id, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX hold_until ON redrive.hold (queue_id, until) WHERE until IS NOT NULL;

-- What happened, in numbers. Every transition adds a row in its own transaction, so that nobody waits for a counter; the
-- sum of a queue's rows is what it has counted. Rows are added up from time to time.
CREATE TABLE redrive.tally (
    queue_id integer NOT NULL,
    -- How many messages are in each state now, and how many dedup keys are in `hold`.
    waiting bigint, leased bigint, dead bigint, done bigint, holds bigint,
    -- To how many messages each verb was applied.
    enqueue bigint, lease bigint, extend bigint, ack bigint, nack bigint, release bigint, expire bigint, bury bigint,
    lapse bigint, reschedule bigint, move bigint, redrive bigint, discard bigint,
    moved_in bigint, retained bigint, died bigint, duplicates bigint
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX tally_queue ON redrive.tally (queue_id);

-- Small versioned entries that the layers above keep.
CREATE TABLE redrive.entry (
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (kind, name)
);

CREATE TABLE redrive.log (
    name text COLLATE "C" PRIMARY KEY,
    last bigint NOT NULL
);
CREATE TABLE redrive.record (
    log text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,
    at bigint NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (log, sequence)
);

-- That a transaction was committed, for the client that did not hear the answer. It is only read then, and there are few
-- of them at a time, so there is no index to keep.
CREATE TABLE redrive.mark (
    id uuid NOT NULL,
    -- For an enqueue of one statement: when it was, and which of its items were there already, counted from 1.
    at bigint,
    repeated integer[],
    noted timestamptz NOT NULL DEFAULT now()
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
