-- Functions for applications: the same queue from inside the caller's own transaction. docs/postgres-functions.md says how
-- they are used.
--
-- Those that applications call run as their owner (SECURITY DEFINER), because the receipt key is nobody else's business;
-- those that only they call run as the caller, so that a grant of too much gives nothing away. All look names up in
-- pg_catalog alone, and nobody may call any of them before it is granted.
--
-- There is one judge, and it is not here: what needs a backoff or ends in death is handed to an instance.

-- ── What all of them use ────────────────────────────────────────────────────────────────────────────────────────────────

-- The channel on which instances hear of what happens here: the name of the schema.
CREATE FUNCTION redrive.channel() RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT (parse_ident('redrive.shared'))[1] $$;

-- Tells instances to look at a queue, once the transaction is there.
CREATE FUNCTION redrive.tell(queue text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$ SELECT pg_notify(redrive.channel(), '1 ready ' || queue) $$;

CREATE FUNCTION redrive.clock() RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

CREATE FUNCTION redrive.refuse(field text, problem text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION '%: %', field, problem USING ERRCODE = 'invalid_parameter_value';
END
$$;

-- Refuses a text that is too long or has a character of `bad`, as redrive-core does.
CREATE FUNCTION redrive.check_text(field text, value text, longest integer, bad text, allowed text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF octet_length(value) > longest THEN
        PERFORM redrive.refuse(field, format('is %s bytes long, the limit is %s', octet_length(value), longest));
    END IF;
    IF value COLLATE "C" ~ bad THEN
        PERFORM redrive.refuse(field, format('byte %s is not allowed; allowed: %s',
            octet_length(regexp_replace(value COLLATE "C", bad || '.*$', '')), allowed));
    END IF;
END
$$;

-- The same for names that people and programs give.
CREATE FUNCTION redrive.check_name(field text, value text, longest integer) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    SELECT redrive.check_text(field, value, longest, '[\u0001-\u001f\u007f-\u009f]', 'text without control characters')
$$;

CREATE FUNCTION redrive.check_number(field text, value numeric, smallest numeric, largest numeric) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF value IS NULL OR value < smallest OR value > largest THEN
        PERFORM redrive.refuse(field, format('must lie between %s and %s', smallest, largest));
    END IF;
END
$$;

-- A span of time in milliseconds; null for none.
CREATE FUNCTION redrive.span(field text, value interval, smallest bigint, largest bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    span numeric := extract(epoch FROM value) * 1000;
BEGIN
    IF span < smallest OR span > largest THEN
        PERFORM redrive.refuse(field, format('must lie between %s ms and %s ms', smallest, largest));
    END IF;
    RETURN span::bigint;
END
$$;

-- The first 1,024 bytes of an error, no character cut in two.
CREATE FUNCTION redrive.error_text(error text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bytes bytea := convert_to(coalesce(error, ''), 'UTF8');
    cut integer := 1024;
BEGIN
    IF octet_length(bytes) <= cut THEN
        RETURN coalesce(error, '');
    END IF;
    WHILE get_byte(bytes, cut) & 192 = 128 LOOP
        cut := cut - 1;
    END LOOP;
    RETURN convert_from(substring(bytes FROM 1 FOR cut), 'UTF8');
END
$$;

-- Something that instances wrote down for everybody when they opened the store.
CREATE FUNCTION redrive.shared_value(name text) RETURNS bytea
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    kept bytea := (SELECT s.value FROM redrive.shared s WHERE s.name = shared_value.name);
BEGIN
    IF kept IS NULL THEN
        RAISE EXCEPTION 'no instance has opened this schema yet' USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN kept;
END
$$;

CREATE FUNCTION redrive.limit_of(name text) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT (convert_from(redrive.shared_value('limits'), 'UTF8')::jsonb ->> name)::bigint $$;

-- A queue, which cannot be deleted before the transaction ends, and the settings in force: what was set over the defaults.
-- No row where there is no such queue.
CREATE FUNCTION redrive.find_queue(name text) RETURNS TABLE (queue_id integer, settings jsonb, pauses jsonb)
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    SELECT q.id, convert_from(redrive.shared_value('defaults'), 'UTF8')::jsonb || q.config, q.pauses
    FROM redrive.queue q WHERE q.name = find_queue.name FOR KEY SHARE
$$;

-- The same, where it has to be there.
CREATE FUNCTION redrive.hold_queue(name text, OUT queue_id integer, OUT settings jsonb, OUT pauses jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    SELECT q.queue_id, q.settings, q.pauses INTO queue_id, settings, pauses FROM redrive.find_queue(hold_queue.name) q;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'QUEUE_NOT_FOUND: there is no queue %', hold_queue.name USING ERRCODE = 'RD001';
    END IF;
END
$$;

-- ── Receipts, byte for byte those of redrive-core ───────────────────────────────────────────────────────────────────────

-- HMAC-SHA-256 by hand, its first half: PostgreSQL has the hash, and an extension is not everywhere. The key has 32 bytes,
-- which leaves half of each block as it is.
CREATE FUNCTION redrive.mac(key bytea, message bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT substring(sha256(b.outer_pad || sha256(b.inner_pad || message)) FROM 1 FOR 16) FROM (
        SELECT string_agg(int8send(part # 6655295901103053916), '' ORDER BY i) || decode(repeat('5c', 32), 'hex') AS outer_pad,
            string_agg(int8send(part # 3906369333256140342), '' ORDER BY i) || decode(repeat('36', 32), 'hex') AS inner_pad
        FROM (SELECT i, ('x' || encode(substring(key FROM 8 * i + 1 FOR 8), 'hex'))::bit(64)::bigint AS part
            FROM generate_series(0, 3) AS i) parts
    ) b
$$;

CREATE FUNCTION redrive.base64url(bytes bytea) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT translate(encode(bytes, 'base64'), '+/=' || chr(10), '-_') $$;

-- A lease id as it is kept has its first bit flipped; this flips it back, or there.
CREATE FUNCTION redrive.flipped(lease_id bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT lease_id # '-9223372036854775808'::bigint $$;

CREATE FUNCTION redrive.seal(key bytea, queue text, m redrive.message) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT redrive.base64url(c.claim || redrive.mac(key, c.claim)) FROM (
        SELECT '\x01'::bytea || uuid_send((m).id) || int8send(redrive.flipped((m).lease_id)) || int4send((m).attempts)
            || int4send((m).deliveries - (m).deliveries_before) || int4send(coalesce((m).max_attempts, 0))
            || convert_to(queue, 'UTF8') AS claim
    ) c
$$;

-- What a receipt says. One that is not ours is refused, whatever is wrong with it.
CREATE FUNCTION redrive.open_receipt(receipt text, OUT queue text, OUT message uuid, OUT lease_id bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bytes bytea;
    claim bytea;
BEGIN
    IF length(receipt) BETWEEN 1 AND 256 AND length(receipt) % 4 <> 1 AND receipt COLLATE "C" ~ '^[A-Za-z0-9_-]+$' THEN
        bytes := decode(translate(receipt, '-_', '+/') || repeat('=', (4 - length(receipt) % 4) % 4), 'base64');
        claim := substring(bytes FROM 1 FOR greatest(0, octet_length(bytes) - 16));
        -- Hashes are compared, not the codes: how long that takes says nothing about how much was right.
        IF octet_length(claim) > 37 AND redrive.base64url(bytes) = receipt AND get_byte(claim, 0) = 1
            AND sha256(redrive.mac(redrive.shared_value('receipt_key'), claim))
                = sha256(substring(bytes FROM octet_length(claim) + 1))
        THEN
            message := encode(substring(claim FROM 2 FOR 16), 'hex')::uuid;
            lease_id := redrive.flipped(('x' || encode(substring(claim FROM 18 FOR 8), 'hex'))::bit(64)::bigint);
            queue := convert_from(substring(claim FROM 38), 'UTF8');
            RETURN;
        END IF;
    END IF;
    RAISE EXCEPTION 'INVALID_RECEIPT: not a receipt of this store' USING ERRCODE = 'RD005';
END
$$;

-- What the next number of redrive.token is added to for a lease id, as it is kept.
CREATE FUNCTION redrive.epoch() RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT redrive.flipped(((get_byte(e, 0) << 8) + get_byte(e, 1))::bigint << 48) FROM redrive.shared_value('epoch') AS e
$$;

-- ── enqueue ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

-- A UUIDv7: the time, and what is random of a UUIDv4.
CREATE FUNCTION redrive.new_id(now bigint) RETURNS uuid
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    SELECT encode(substring(int8send(now) FROM 3) || set_byte(r.tail, 0, get_byte(r.tail, 0) & 15 | 112), 'hex')::uuid
    FROM (SELECT substring(uuid_send(gen_random_uuid()) FROM 7) AS tail) r
$$;

-- Refuses headers that redrive-core would refuse; answers their size.
CREATE FUNCTION redrive.check_headers(headers jsonb) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    header record;
    size bigint := 0;
BEGIN
    IF headers IS NULL THEN
        RETURN 0;
    END IF;
    IF jsonb_typeof(headers) <> 'object' THEN
        PERFORM redrive.refuse('headers', 'must be an object of strings');
    END IF;
    FOR header IN SELECT h.key, h.value #>> '{}' AS value, jsonb_typeof(h.value) AS type FROM jsonb_each(headers) h LOOP
        IF header.type <> 'string' THEN
            PERFORM redrive.refuse('headers', 'must be an object of strings');
        ELSIF header.key = '' THEN
            PERFORM redrive.refuse('headers', 'must not be empty');
        END IF;
        size := size + octet_length(header.key) + octet_length(header.value);
        IF size > 65536 THEN
            PERFORM redrive.refuse('headers', format('is %s bytes long, the limit is 65536', size));
        END IF;
        PERFORM redrive.check_text('headers', header.key, 65536, '[^!-~]',
            'a header name is printable ASCII without spaces');
        PERFORM redrive.check_text('headers', header.value, 65536, '[\u0001-\u0008\u000a-\u001f\u007f-\u009f]',
            'a header value is text without control characters other than tab');
    END LOOP;
    RETURN size;
END
$$;

-- The number of a pair of type and source, made where there is none.
CREATE FUNCTION redrive.class_of(queue_id integer, type text, source text) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    known integer := (SELECT c.id FROM redrive.class c
        WHERE c.queue_id = class_of.queue_id AND c.type = class_of.type AND c.source = class_of.source);
    most bigint;
BEGIN
    IF known IS NOT NULL THEN
        RETURN known;
    END IF;
    PERFORM pg_advisory_xact_lock(1380188162, class_of.queue_id);
    most := redrive.limit_of('classes_per_queue');
    IF (SELECT count(*) FROM redrive.class c WHERE c.queue_id = class_of.queue_id) >= most
        AND NOT EXISTS (SELECT FROM redrive.class c
            WHERE c.queue_id = class_of.queue_id AND c.type = class_of.type AND c.source = class_of.source)
    THEN
        -- Pairs that no message has make room. Nobody may be about to use one of them.
        PERFORM FROM redrive.queue q WHERE q.id = class_of.queue_id FOR UPDATE;
        DELETE FROM redrive.class c WHERE c.queue_id = class_of.queue_id
            AND c.id NOT IN (SELECT DISTINCT m.class_id FROM redrive.message m WHERE m.queue_id = class_of.queue_id);
        UPDATE redrive.queue q SET stamp = nextval('redrive.version') WHERE q.id = class_of.queue_id;
        IF (SELECT count(*) FROM redrive.class c WHERE c.queue_id = class_of.queue_id) >= most THEN
            RAISE EXCEPTION 'TOO_MANY_TYPES: type and source: a queue has at most % distinct pairs', most
                USING ERRCODE = 'RD003';
        END IF;
    END IF;
    -- What has neither is number 0.
    INSERT INTO redrive.class AS c (queue_id, id, type, source) OVERRIDING SYSTEM VALUE
    VALUES (class_of.queue_id, CASE WHEN class_of.type = '' AND class_of.source = '' THEN 0
        ELSE nextval(pg_get_serial_sequence('redrive.class', 'id')) END, class_of.type, class_of.source)
    ON CONFLICT (queue_id, type, source) DO UPDATE SET type = excluded.type
    RETURNING c.id INTO known;
    RETURN known;
END
$$;

-- Who holds a dedup key; null for nobody.
CREATE FUNCTION redrive.holder(queue_id integer, key text, now bigint) RETURNS uuid
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    SELECT h.message FROM redrive.hold h
    WHERE h.queue_id = holder.queue_id AND h.key = holder.key AND (h.until IS NULL OR h.until > now) FOR UPDATE
$$;

-- Takes a dedup key that nobody holds, until a time or, where that is null, until its message is done. Answers by how much
-- that changes the number of keys that are written down; null where there is no room. Counted and taken by one at a time.
CREATE FUNCTION redrive.take_key(queue_id integer, key text, message uuid, until bigint, now bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    forgotten bigint;
    is_new boolean;
BEGIN
    IF (SELECT coalesce(sum(t.holds), 0) FROM redrive.tally t WHERE t.queue_id = take_key.queue_id)
        - (SELECT count(*) FROM redrive.hold h WHERE h.queue_id = take_key.queue_id AND h.until <= now)
        >= redrive.limit_of('dedup_keys_per_queue')
    THEN
        RETURN NULL;
    END IF;
    WITH over AS MATERIALIZED (
        SELECT h.key FROM redrive.hold h WHERE h.queue_id = take_key.queue_id AND h.until <= now
        ORDER BY h.until LIMIT 100 FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM redrive.hold h USING over WHERE h.queue_id = take_key.queue_id AND h.key = over.key RETURNING 1
    )
    SELECT count(*) INTO forgotten FROM gone;
    -- A key whose window is over only changes hands.
    INSERT INTO redrive.hold AS h (queue_id, key, message, until)
    VALUES (take_key.queue_id, take_key.key, take_key.message, take_key.until)
    ON CONFLICT (queue_id, key) DO UPDATE SET message = excluded.message, until = excluded.until WHERE h.until <= now
    RETURNING xmax = 0 INTO STRICT is_new;
    RETURN is_new::integer - forgotten;
END
$$;

-- nothing → ready | delayed. The body is either JSON or bytes.
CREATE FUNCTION redrive.enqueue(
    queue text,
    body jsonb DEFAULT NULL,
    bytes bytea DEFAULT NULL,
    type text DEFAULT '',
    source text DEFAULT '',
    priority integer DEFAULT 5,
    fairness_key text DEFAULT '',
    dedup_key text DEFAULT NULL,
    unique_until_done boolean DEFAULT false,
    delay interval DEFAULT NULL,
    ttl interval DEFAULT NULL,
    headers jsonb DEFAULT NULL,
    content_type text DEFAULT NULL,
    max_attempts integer DEFAULT NULL,
    lease_timeout interval DEFAULT NULL,
    INOUT id uuid DEFAULT NULL,
    OUT duplicate boolean
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    here record;
    first uuid;
    content bytea := coalesce(enqueue.bytes, convert_to(enqueue.body::text, 'UTF8'));
    kind text := coalesce(enqueue.content_type,
        CASE WHEN enqueue.body IS NULL THEN 'application/octet-stream' ELSE 'application/json' END);
    class integer;
    header_bytes integer;
    wait bigint := coalesce(redrive.span('delay', enqueue.delay, 0, 315360000000), 0);
    life bigint := redrive.span('ttl', enqueue.ttl, 0, 315360000000);
    lease bigint := redrive.span('lease_timeout', enqueue.lease_timeout, 1, 604800000);
    window_end bigint;
    now bigint;
    place bigint;
    held bigint := 0;
BEGIN
    enqueue.type := coalesce(enqueue.type, '');
    enqueue.source := coalesce(enqueue.source, '');
    enqueue.fairness_key := coalesce(enqueue.fairness_key, '');
    IF num_nonnulls(enqueue.body, enqueue.bytes) <> 1 THEN
        PERFORM redrive.refuse('body', 'needs either body (JSON) or bytes');
    ELSIF octet_length(content) > 1048576 THEN
        PERFORM redrive.refuse('body', format('is %s bytes long, the limit is 1048576', octet_length(content)));
    ELSIF jsonb_path_exists(enqueue.body, 'strict $.**{64} ? (@.type() == "array" || @.type() == "object")') THEN
        PERFORM redrive.refuse('body', 'has more than 64 levels');
    ELSIF kind = '' THEN
        PERFORM redrive.refuse('content_type', 'must not be empty');
    ELSIF enqueue.dedup_key = '' THEN
        PERFORM redrive.refuse('dedup_key', 'must not be empty');
    ELSIF enqueue.unique_until_done AND enqueue.dedup_key IS NULL THEN
        PERFORM redrive.refuse('unique_until_done', 'needs a dedup_key');
    END IF;
    PERFORM redrive.check_text('content_type', kind, 256, '[^ -~]', 'printable ASCII');
    PERFORM redrive.check_name('type', enqueue.type, 128);
    PERFORM redrive.check_name('source', enqueue.source, 128);
    PERFORM redrive.check_name('fairness_key', enqueue.fairness_key, 128);
    PERFORM redrive.check_name('dedup_key', enqueue.dedup_key, 256);
    PERFORM redrive.check_number('priority', enqueue.priority, 0, 9);
    PERFORM redrive.check_number('max_attempts', coalesce(enqueue.max_attempts, 1), 1, 2147483647);
    header_bytes := redrive.check_headers(enqueue.headers);

    here := redrive.hold_queue(enqueue.queue);
    IF enqueue.dedup_key IS NOT NULL OR here.settings ->> 'max_waiting' IS NOT NULL THEN
        -- What is counted must not change before it is written.
        PERFORM pg_advisory_xact_lock(1380188162, here.queue_id);
    END IF;
    now := redrive.clock();
    -- A repeated enqueue is answered with the first one even where a new one would be refused: the producer must be able
    -- to learn that it got in.
    IF enqueue.id IS NOT NULL THEN
        first := (SELECT m.id FROM redrive.message m WHERE m.queue_id = here.queue_id AND m.id = enqueue.id);
    END IF;
    IF first IS NULL AND enqueue.dedup_key IS NOT NULL THEN
        first := redrive.holder(here.queue_id, enqueue.dedup_key, now);
    END IF;
    IF first IS NULL THEN
        IF (SELECT sum(t.waiting) FROM redrive.tally t
            WHERE here.settings ->> 'max_waiting' IS NOT NULL AND t.queue_id = here.queue_id)
            >= (here.settings ->> 'max_waiting')::bigint
        THEN
            RAISE EXCEPTION 'QUEUE_FULL: the queue % is full: max_waiting is %',
                enqueue.queue, here.settings ->> 'max_waiting' USING ERRCODE = 'RD002';
        END IF;
        class := redrive.class_of(here.queue_id, enqueue.type, enqueue.source);
        place := nextval('redrive.place');
        enqueue.id := coalesce(enqueue.id, redrive.new_id(now));
        INSERT INTO redrive.message (queue_id, class_id, id, no, created_at, visible_at, place, state, rank, unique_key,
            size, max_attempts, lease_timeout, expires_at, fairness_key, dedup_key)
        VALUES (here.queue_id, class, enqueue.id, place, now, now + wait, place, CASE WHEN wait > 0 THEN 0 ELSE 1 END,
            9 - enqueue.priority, CASE WHEN enqueue.dedup_key IS NOT NULL THEN coalesce(enqueue.unique_until_done, false) END,
            octet_length(content) + header_bytes, enqueue.max_attempts, lease, now + life, enqueue.fairness_key,
            enqueue.dedup_key)
        -- Somebody enqueued the same id at the same moment.
        ON CONFLICT ON CONSTRAINT message_key DO NOTHING;
        IF NOT FOUND THEN
            first := enqueue.id;
        END IF;
    END IF;
    IF first IS NOT NULL THEN
        INSERT INTO redrive.tally (queue_id, duplicates) VALUES (here.queue_id, 1);
        enqueue.id := first;
        duplicate := true;
        RETURN;
    END IF;
    INSERT INTO redrive.content (no, body, content_type, headers)
    VALUES (place, content, kind, CASE WHEN header_bytes > 0 THEN enqueue.headers END);
    IF enqueue.dedup_key IS NOT NULL THEN
        window_end := CASE WHEN NOT coalesce(enqueue.unique_until_done, false)
            THEN now + (here.settings ->> 'dedup_window')::bigint END;
        held := redrive.take_key(here.queue_id, enqueue.dedup_key, enqueue.id, window_end, now);
        IF held IS NULL THEN
            RAISE EXCEPTION 'TOO_MANY_DEDUP_KEYS: dedup_key: a queue holds at most % keys',
                redrive.limit_of('dedup_keys_per_queue') USING ERRCODE = 'RD004';
        END IF;
    END IF;
    INSERT INTO redrive.tally (queue_id, waiting, holds, enqueue) VALUES (here.queue_id, 1, nullif(held, 0), 1);
    PERFORM redrive.tell(enqueue.queue);
    duplicate := false;
END
$$;

-- ── Ends of attempts ────────────────────────────────────────────────────────────────────────────────────────────────────

-- An attempt that failed, in the message's history. The oldest makes room for it.
CREATE FUNCTION redrive.remember_failure(m redrive.message, cause integer, rule integer, delay bigint, error text, now bigint)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO redrive.failure (no, place, attempt, cause, rule, leased_at, ended_at, delay, consumer, error)
    VALUES (m.no, nextval('redrive.place'), m.attempts, remember_failure.cause, remember_failure.rule,
        coalesce(m.leased_at, 0), now, remember_failure.delay, coalesce(m.consumer, ''), remember_failure.error);
    DELETE FROM redrive.failure f WHERE f.no = m.no AND f.place <= (
        SELECT o.place FROM redrive.failure o WHERE o.no = m.no ORDER BY o.place DESC OFFSET 20 LIMIT 1);
    INSERT INTO redrive.history (no, last_error) VALUES (m.no, remember_failure.error)
    ON CONFLICT (no) DO UPDATE SET last_error = excluded.last_error;
END
$$;

-- The message waits for its next attempt, at the back.
CREATE FUNCTION redrive.wait_again(m redrive.message, due bigint, now bigint) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE redrive.message w
    SET state = CASE WHEN due > now THEN 0 ELSE 1 END, visible_at = due, place = nextval('redrive.place'), retry = true,
        storied = true, lease_id = NULL, leased_at = NULL, deadline = NULL, consumer = NULL, nacked = NULL
    WHERE w.queue_id = (m).queue_id AND w.id = (m).id
$$;

-- Whether a message has an attempt left.
CREATE FUNCTION redrive.has_attempt(settings jsonb, attempts integer, max_attempts integer, deliveries integer)
RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT attempts < coalesce(max_attempts, (settings ->> 'max_attempts')::bigint, 2147483647)
        AND deliveries < coalesce((settings ->> 'max_deliveries')::bigint, 2147483648)
$$;

-- expire: leased → ready, for leases that ran out and need no judge: the queue wants no backoff for them, an attempt is
-- left, and there is still time. Answers how many.
CREATE FUNCTION redrive.expire_simple(queue_id integer, settings jsonb, wanted integer, error text, now bigint)
RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    m redrive.message;
    ended integer := 0;
BEGIN
    IF (settings ->> 'overdue_backoff')::boolean THEN
        RETURN 0;
    END IF;
    FOR m IN SELECT o.* FROM redrive.message o
        WHERE o.queue_id = expire_simple.queue_id AND o.state = 2 AND o.deadline <= now AND o.nacked IS NULL
            AND (o.expires_at IS NULL OR o.expires_at > now)
            AND redrive.has_attempt(settings, o.attempts, o.max_attempts, o.deliveries - o.deliveries_before)
        ORDER BY o.deadline, o.lease_id LIMIT wanted FOR UPDATE SKIP LOCKED
    LOOP
        PERFORM redrive.remember_failure(m, 1, 3, 0, expire_simple.error, now);
        PERFORM redrive.wait_again(m, now, now);
        ended := ended + 1;
    END LOOP;
    IF ended > 0 THEN
        INSERT INTO redrive.tally (queue_id, waiting, leased, expire) VALUES (expire_simple.queue_id, ended, -ended, ended);
    END IF;
    RETURN ended;
END
$$;

-- Ends leases that ran out, in one queue or in all, and answers how many messages are ready again. The others are left to
-- an instance, which is told.
CREATE FUNCTION redrive.requeue_expired(
    max_messages integer DEFAULT 100, error text DEFAULT 'the lease ran out', queue text DEFAULT NULL
) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    now bigint := redrive.clock();
    named record;
    here record;
    ended integer := 0;
BEGIN
    PERFORM redrive.check_number('max_messages', max_messages, 1, 1000);
    IF queue IS NOT NULL THEN
        PERFORM redrive.hold_queue(queue);
    END IF;
    -- The queues with a lease that ran out, however many that did not are in front of it.
    FOR named IN
        WITH RECURSIVE walk AS (
            (SELECT m.queue_id, m.deadline FROM redrive.message m WHERE m.state = 2
                ORDER BY m.queue_id, m.deadline LIMIT 1)
            UNION ALL
            SELECT next.* FROM walk CROSS JOIN LATERAL (
                SELECT m.queue_id, m.deadline FROM redrive.message m WHERE m.state = 2 AND m.queue_id > walk.queue_id
                ORDER BY m.queue_id, m.deadline LIMIT 1
            ) next
        )
        SELECT q.name FROM walk JOIN redrive.queue q ON q.id = walk.queue_id
        WHERE walk.deadline <= now AND (requeue_expired.queue IS NULL OR q.name = requeue_expired.queue)
        ORDER BY q.id
    LOOP
        EXIT WHEN ended >= max_messages;
        FOR here IN SELECT * FROM redrive.find_queue(named.name) LOOP
            ended := ended + redrive.expire_simple(here.queue_id, here.settings, max_messages - ended,
                redrive.error_text(requeue_expired.error), now);
        END LOOP;
        PERFORM redrive.tell(named.name);
    END LOOP;
    RETURN ended;
END
$$;

-- ── claim ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

-- The first fairness key behind another, or of all, that has something ready. No key has control characters, so nothing
-- lies between a key and the same with the first of them.
CREATE FUNCTION redrive.next_key(queue_id integer, retries boolean, classes integer[], behind text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    start text := coalesce(behind || chr(1), '');
BEGIN
    IF classes IS NULL THEN
        RETURN (SELECT m.fairness_key FROM redrive.message m
            WHERE m.queue_id = next_key.queue_id AND m.state = 1 AND m.retry = retries AND m.fairness_key >= start
            ORDER BY m.fairness_key LIMIT 1);
    END IF;
    -- What has neither type nor source has no line of its own.
    RETURN (SELECT k.key FROM unnest(classes) AS wanted (id) CROSS JOIN LATERAL (
        (SELECT m.fairness_key AS key FROM redrive.message m
            WHERE m.queue_id = next_key.queue_id AND m.class_id = wanted.id AND m.class_id <> 0 AND m.state = 1
                AND m.retry = retries AND m.fairness_key >= start ORDER BY m.fairness_key LIMIT 1)
        UNION ALL
        (SELECT m.fairness_key FROM redrive.message m
            WHERE wanted.id = 0 AND m.queue_id = next_key.queue_id AND m.class_id = 0 AND m.state = 1
                AND m.retry = retries AND m.fairness_key >= start ORDER BY m.fairness_key LIMIT 1)
    ) k ORDER BY k.key LIMIT 1);
END
$$;

-- The fairness keys that a claim serves, in turn, and the weight of each: those behind the one that this session served
-- last, as many as there are messages to hand out. A session that has served none yet begins anywhere among the first.
CREATE FUNCTION redrive.walk_keys(
    queue_id integer, retries boolean, classes integer[], wanted integer, last text, now bigint,
    OUT keys text[], OUT weights integer[]
)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    candidate text := last;
    wrapped boolean := last IS NULL;
    setting record;
    most integer := CASE WHEN last IS NULL THEN greatest(wanted, 64) ELSE wanted END;
    start integer;
BEGIN
    keys := '{}';
    weights := '{}';
    FOR step IN 1 .. wanted + 64 LOOP
        candidate := redrive.next_key(walk_keys.queue_id, retries, classes, candidate);
        IF candidate IS NULL AND NOT wrapped THEN
            wrapped := true;
            candidate := redrive.next_key(walk_keys.queue_id, retries, classes, NULL);
        END IF;
        EXIT WHEN candidate IS NULL OR (wrapped AND candidate COLLATE "C" > last) OR cardinality(keys) >= most;
        SELECT s.weight, s.paused_until INTO setting FROM redrive.key_setting s
        WHERE s.queue_id = walk_keys.queue_id AND s.key = candidate;
        IF coalesce(setting.paused_until, 0) <= now THEN
            keys := keys || candidate;
            weights := weights || coalesce(setting.weight, 1);
        END IF;
    END LOOP;
    IF last IS NULL AND cardinality(keys) > 1 THEN
        start := floor(random() * cardinality(keys));
        keys := keys[start + 1:] || keys[:start];
        weights := weights[start + 1:] || weights[:start];
    END IF;
END
$$;

-- lease: ready → leased, for messages of one lane and key, by priority and order. No more than so many bytes, but for the
-- first message of all, which comes whatever it weighs.
CREATE FUNCTION redrive.take_of_key(
    queue_id integer, retries boolean, classes integer[], key text, wanted integer, bytes bigint, settings jsonb,
    consumer text, lease bigint, now bigint, OUT ids uuid[], OUT weight bigint
)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    epoch bigint := redrive.epoch();
    timeout bigint := settings ->> 'lease_timeout';
    longest bigint := settings ->> 'max_lease';
    cap bigint := coalesce((settings ->> 'max_attempts')::bigint, 2147483648);
    deliveries_cap bigint := coalesce((settings ->> 'max_deliveries')::bigint, 2147483648);
BEGIN
    WITH held AS MATERIALIZED (
        SELECT * FROM (
            SELECT m.id, m.size, m.rank, m.visible_at, m.place FROM redrive.message m
            WHERE classes IS NULL AND m.queue_id = take_of_key.queue_id AND m.state = 1 AND m.retry = retries
                AND m.fairness_key = take_of_key.key AND (m.expires_at IS NULL OR m.expires_at > now)
                AND m.attempts < coalesce(m.max_attempts, cap) AND m.deliveries - m.deliveries_before < deliveries_cap
            ORDER BY m.rank, m.visible_at, m.place LIMIT wanted FOR UPDATE SKIP LOCKED
        ) any_class
        UNION ALL
        SELECT one_class.* FROM unnest(classes) AS class (id) CROSS JOIN LATERAL (
            SELECT m.id, m.size, m.rank, m.visible_at, m.place FROM redrive.message m
            WHERE m.queue_id = take_of_key.queue_id AND m.class_id = class.id AND m.class_id <> 0 AND m.state = 1
                AND m.retry = retries AND m.fairness_key = take_of_key.key
                AND (m.expires_at IS NULL OR m.expires_at > now)
                AND m.attempts < coalesce(m.max_attempts, cap) AND m.deliveries - m.deliveries_before < deliveries_cap
            ORDER BY m.rank, m.visible_at, m.place LIMIT wanted FOR UPDATE SKIP LOCKED
        ) one_class
        UNION ALL
        SELECT * FROM (
            SELECT m.id, m.size, m.rank, m.visible_at, m.place FROM redrive.message m
            WHERE 0 = ANY (classes) AND m.queue_id = take_of_key.queue_id AND m.class_id = 0 AND m.state = 1
                AND m.retry = retries AND m.fairness_key = take_of_key.key
                AND (m.expires_at IS NULL OR m.expires_at > now)
                AND m.attempts < coalesce(m.max_attempts, cap) AND m.deliveries - m.deliveries_before < deliveries_cap
            ORDER BY m.rank, m.visible_at, m.place LIMIT wanted FOR UPDATE SKIP LOCKED
        ) no_class
    ),
    ordered AS MATERIALIZED (
        SELECT h.id, row_number() OVER line AS n, sum(h.size::bigint) OVER line AS total
        FROM held h WINDOW line AS (ORDER BY h.rank, h.visible_at, h.place ROWS UNBOUNDED PRECEDING)
    ),
    chosen AS MATERIALIZED (
        SELECT o.id, epoch + nextval('redrive.token') AS lease_id FROM (
            SELECT * FROM ordered WHERE n <= wanted AND (total <= bytes OR (n = 1 AND bytes = 16777216)) ORDER BY n) o
    ),
    claimed AS (
        UPDATE redrive.message m
        SET state = 2, attempts = m.attempts + 1, deliveries = m.deliveries + 1, lease_id = c.lease_id,
            consumer = take_of_key.consumer, leased_at = now,
            deadline = now + least(coalesce(take_of_key.lease, m.lease_timeout, timeout), longest)
        FROM chosen c WHERE m.queue_id = take_of_key.queue_id AND m.id = c.id
        RETURNING m.id, m.lease_id, m.size
    )
    SELECT coalesce(array_agg(c.id ORDER BY c.lease_id), '{}'), coalesce(sum(c.size), 0) INTO ids, weight FROM claimed c;
END
$$;

-- The same for a lane: its keys are served in turn, each as many messages as its weight says.
CREATE FUNCTION redrive.take(
    queue_id integer, retries boolean, classes integer[], wanted integer, INOUT bytes bigint, settings jsonb,
    consumer text, lease bigint, now bigint, OUT ids uuid[]
)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    mark text := format('redrive_turn.q%s_%s', take.queue_id, retries::integer);
    walk record;
    taken record;
    asked integer;
    turn integer;
    served boolean := true;
BEGIN
    ids := '{}';
    IF wanted <= 0 THEN
        RETURN;
    END IF;
    walk := redrive.walk_keys(take.queue_id, retries, classes, wanted, current_setting(mark, true), now);
    WHILE served AND cardinality(ids) < wanted AND bytes > 0 LOOP
        served := false;
        -- Few keys with many messages each have several turns at once.
        turn := ceil((wanted - cardinality(ids))::numeric
            / greatest(1, (SELECT sum(w) FROM unnest(walk.weights) AS w)));
        FOR i IN 1 .. cardinality(walk.keys) LOOP
            asked := least(wanted - cardinality(ids), walk.weights[i]::bigint * turn);
            CONTINUE WHEN asked <= 0 OR bytes <= 0;
            taken := redrive.take_of_key(take.queue_id, retries, classes, walk.keys[i], asked, bytes, settings, consumer,
                lease, now);
            IF cardinality(taken.ids) > 0 THEN
                ids := ids || taken.ids;
                bytes := bytes - greatest(1, taken.weight);
                served := true;
                PERFORM set_config(mark, walk.keys[i], false);
            END IF;
            IF cardinality(taken.ids) < asked THEN
                -- It has no more, or no more that fits.
                walk.weights[i] := 0;
            END IF;
        END LOOP;
    END LOOP;
END
$$;

-- Hands out messages, each with its receipt: what is ready, what is due, and what somebody's lease ran out on.
CREATE FUNCTION redrive.claim(
    queue text,
    max_messages integer DEFAULT 1,
    consumer text DEFAULT '',
    lease_seconds numeric DEFAULT NULL,
    source text DEFAULT NULL
) RETURNS TABLE (
    receipt text, id uuid, body bytea, content_type text, headers jsonb, type text, message_source text,
    priority integer, fairness_key text, attempts integer, deliveries integer, redrives integer, lease_id numeric,
    leased_at timestamptz, deadline timestamptz, created_at timestamptz, expires_at timestamptz, last_error text,
    checkpoint bytea
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
    SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    here record;
    now bigint;
    key bytea := redrive.shared_value('receipt_key');
    classes integer[];
    lease bigint;
    retries integer := max_messages;
    taken record;
    ids uuid[];
BEGIN
    PERFORM redrive.check_number('max_messages', max_messages, 1, 1000);
    PERFORM redrive.check_name('consumer', coalesce(claim.consumer, ''), 256);
    IF lease_seconds IS NOT NULL THEN
        PERFORM redrive.check_number('lease_seconds', lease_seconds, 0.001, 604800);
        lease := (lease_seconds * 1000)::bigint;
    END IF;
    here := redrive.hold_queue(claim.queue);
    now := redrive.clock();
    IF here.pauses ? 'queue' AND coalesce((here.pauses #>> '{queue,until}')::bigint > now, true) THEN
        RETURN;
    END IF;
    IF claim.source IS NOT NULL THEN
        classes := ARRAY(SELECT c.id FROM redrive.class c WHERE c.queue_id = here.queue_id AND c.source = claim.source);
    END IF;
    IF here.settings ->> 'retry_lane' = 'separate' THEN
        retries := 0;
    ELSE
        PERFORM redrive.expire_simple(here.queue_id, here.settings, max_messages, 'the lease ran out', now);
    END IF;
    WITH due AS MATERIALIZED (
        SELECT m.id FROM redrive.message m
        WHERE m.queue_id = here.queue_id AND m.state = 0 AND m.visible_at <= now
        ORDER BY m.visible_at, m.place LIMIT max_messages FOR UPDATE SKIP LOCKED
    )
    UPDATE redrive.message m SET state = 1 FROM due WHERE m.queue_id = here.queue_id AND m.id = due.id;
    IF retries > 0 AND here.settings ->> 'max_retries_in_flight' IS NOT NULL THEN
        -- Counted and handed out by one at a time, or two would both see room for the last one.
        PERFORM pg_advisory_xact_lock(1380188163, here.queue_id);
        retries := greatest(0, least(retries, (here.settings ->> 'max_retries_in_flight')::bigint
            - (SELECT count(*) FROM redrive.message m WHERE m.queue_id = here.queue_id AND m.state = 2 AND m.retry)));
    END IF;
    -- The share of retries, then fresh work, then retries for what is still wanted.
    taken := redrive.take(here.queue_id, true, classes,
        least(retries, floor(max_messages * (here.settings ->> 'retry_share')::numeric / 1000000 + random()::numeric)::integer),
        16777216, here.settings, coalesce(claim.consumer, ''), lease, now);
    ids := taken.ids;
    retries := retries - cardinality(ids);
    taken := redrive.take(here.queue_id, false, classes, max_messages - cardinality(ids), taken.bytes, here.settings,
        coalesce(claim.consumer, ''), lease, now);
    ids := ids || taken.ids;
    taken := redrive.take(here.queue_id, true, classes, least(retries, max_messages - cardinality(ids)), taken.bytes,
        here.settings, coalesce(claim.consumer, ''), lease, now);
    ids := ids || taken.ids;
    IF cardinality(ids) = 0 THEN
        RETURN;
    END IF;
    INSERT INTO redrive.tally (queue_id, waiting, leased, lease)
    VALUES (here.queue_id, -cardinality(ids), cardinality(ids), cardinality(ids));
    RETURN QUERY SELECT redrive.seal(key, claim.queue, m), m.id, c.body, c.content_type, coalesce(c.headers, '{}'),
        k.type, k.source, 9 - m.rank, m.fairness_key, m.attempts, m.deliveries, m.redrives,
        m.lease_id::numeric + 9223372036854775808, to_timestamp(m.leased_at / 1000.0), to_timestamp(m.deadline / 1000.0),
        to_timestamp(m.created_at / 1000.0), to_timestamp(m.expires_at / 1000.0), h.last_error, h.checkpoint
    FROM unnest(ids) WITH ORDINALITY AS t (id, n)
    JOIN redrive.message m ON m.queue_id = here.queue_id AND m.id = t.id
    JOIN redrive.content c ON c.no = m.no
    JOIN redrive.class k ON k.queue_id = m.queue_id AND k.id = m.class_id
    LEFT JOIN redrive.history h ON m.storied AND h.no = m.no
    ORDER BY t.n;
END
$$;

-- ── ack and nack ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- The message under the lease of a receipt, held until the transaction ends. One that is gone or done is not found; any
-- other that is not under this lease has lost it.
CREATE FUNCTION redrive.hold_lease(
    receipt text, OUT outcome text, OUT queue text, OUT settings jsonb, OUT m redrive.message
)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    said record := redrive.open_receipt(receipt);
    here record;
BEGIN
    queue := said.queue;
    outcome := 'NOT_FOUND';
    SELECT * INTO here FROM redrive.find_queue(said.queue);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    settings := here.settings;
    SELECT * INTO m FROM redrive.message o WHERE o.queue_id = here.queue_id AND o.id = said.message FOR UPDATE;
    IF m.state = 2 AND m.lease_id = said.lease_id THEN
        outcome := 'applied';
    ELSIF m.state <> 4 THEN
        outcome := 'LEASE_LOST';
    END IF;
END
$$;

-- Lets the dedup key go that a message holds until it is done; answers how many that were.
CREATE FUNCTION redrive.let_go(m redrive.message) RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    WITH gone AS (
        DELETE FROM redrive.hold h WHERE (m).unique_key AND h.queue_id = (m).queue_id AND h.key = (m).dedup_key
            AND h.message = (m).id AND h.until IS NULL RETURNING 1
    )
    SELECT count(*) FROM gone
$$;

-- ack: leased → gone | done. Answers 'applied', 'LEASE_LOST' or 'NOT_FOUND'; the latter two changed nothing.
CREATE FUNCTION redrive.ack(receipt text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    held record := redrive.hold_lease(receipt);
    m redrive.message := held.m;
    kept boolean;
    let_go bigint;
BEGIN
    IF held.outcome <> 'applied' THEN
        RETURN held.outcome;
    END IF;
    kept := held.settings ->> 'retain_done' IS NOT NULL;
    let_go := redrive.let_go(m);
    IF kept THEN
        UPDATE redrive.message d
        SET state = 4, ended_at = redrive.clock(), retry = true, lease_id = NULL, leased_at = NULL, deadline = NULL,
            consumer = NULL, nacked = NULL
        WHERE d.queue_id = m.queue_id AND d.id = m.id;
    ELSE
        DELETE FROM redrive.message d WHERE d.queue_id = m.queue_id AND d.id = m.id;
        DELETE FROM redrive.content c WHERE c.no = m.no;
        IF m.storied THEN
            DELETE FROM redrive.history h WHERE h.no = m.no;
            DELETE FROM redrive.failure f WHERE f.no = m.no;
        END IF;
    END IF;
    INSERT INTO redrive.tally (queue_id, leased, done, holds, ack, retained)
    VALUES (m.queue_id, -1, nullif(kept::integer, 0), nullif(-let_go, 0), 1, nullif(kept::integer, 0));
    RETURN held.outcome;
END
$$;

-- nack: leased → delayed | ready at the time that is asked for. Without one, or where the message has no attempt or no time
-- left, an instance judges: the lease is replaced by one that nobody has and that has run out, which an instance's next look
-- at what is overdue finds. Answers as ack does.
CREATE FUNCTION redrive.nack(receipt text, error text DEFAULT '', retry_at timestamptz DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    held record := redrive.hold_lease(receipt);
    m redrive.message := held.m;
    now bigint := redrive.clock();
    due bigint;
    too_late boolean;
BEGIN
    IF held.outcome <> 'applied' THEN
        RETURN held.outcome;
    END IF;
    IF retry_at IS NOT NULL THEN
        IF retry_at > to_timestamp(now / 1000.0) + interval '3650 days' THEN
            PERFORM redrive.refuse('retry_at', 'must lie within 3650 days');
        END IF;
        due := greatest(now, ceil(extract(epoch FROM greatest(retry_at, to_timestamp(0))) * 1000)::bigint);
    END IF;
    too_late := coalesce(due >= m.expires_at, false);
    IF due IS NULL OR too_late
        OR NOT redrive.has_attempt(held.settings, m.attempts, m.max_attempts, m.deliveries - m.deliveries_before)
    THEN
        UPDATE redrive.message w
        SET nacked = redrive.error_text(nack.error), lease_id = redrive.epoch() + nextval('redrive.token'),
            deadline = least(w.deadline, now),
            -- A time after its end was asked for: that is now the end, or the judge would choose an earlier time.
            expires_at = CASE WHEN too_late THEN least(w.expires_at, now) ELSE w.expires_at END
        WHERE w.queue_id = m.queue_id AND w.id = m.id;
    ELSE
        PERFORM redrive.remember_failure(m, 0, 2, due - now, redrive.error_text(nack.error), now);
        PERFORM redrive.wait_again(m, due, now);
        INSERT INTO redrive.tally (queue_id, waiting, leased, nack) VALUES (m.queue_id, 1, -1, 1);
    END IF;
    PERFORM redrive.tell(held.queue);
    RETURN held.outcome;
END
$$;

-- ── The way back ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- redrive: dead → ready, for the dead messages of a queue that match, the longest dead first. Answers how many. One whose
-- unique key somebody else has stays dead.
CREATE FUNCTION redrive.retry_failed(
    queue text,
    requested_by text DEFAULT session_user,
    note text DEFAULT '',
    type text DEFAULT NULL,
    source text DEFAULT NULL,
    fairness_key text DEFAULT NULL,
    reason text DEFAULT NULL,
    error_contains text DEFAULT NULL,
    dead_since timestamptz DEFAULT NULL,
    dead_until timestamptz DEFAULT NULL,
    ids uuid[] DEFAULT NULL,
    max_messages integer DEFAULT 1000
) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    here record;
    now bigint;
    m redrive.message;
    held bigint;
    back integer := 0;
    reasons text[] := ARRAY['max_attempts', 'buried', 'expired_ttl', 'max_deliveries', 'not_reached'];
BEGIN
    PERFORM redrive.check_number('max_messages', max_messages, 1, 1000);
    PERFORM redrive.check_text(n.field, n.value, 1024, '[\u0001-\u0009\u000b-\u001f\u007f-\u009f]',
        'text without control characters other than line breaks')
    FROM (VALUES ('requested_by', requested_by), ('note', note)) AS n (field, value);
    IF reason <> ALL (reasons) THEN
        PERFORM redrive.refuse('reason', 'must be one of ' || array_to_string(reasons, ', '));
    END IF;
    here := redrive.hold_queue(retry_failed.queue);
    now := redrive.clock();
    FOR m IN SELECT d.* FROM redrive.message d
        JOIN redrive.class c ON c.queue_id = d.queue_id AND c.id = d.class_id
        LEFT JOIN redrive.history h ON h.no = d.no
        WHERE d.queue_id = here.queue_id AND d.state = 3
            AND (retry_failed.type IS NULL OR c.type = retry_failed.type)
            AND (retry_failed.source IS NULL OR c.source = retry_failed.source)
            AND (retry_failed.fairness_key IS NULL OR d.fairness_key = retry_failed.fairness_key)
            AND (reason IS NULL OR d.dead_reason = array_position(reasons, reason) - 1)
            AND (error_contains IS NULL OR position(error_contains IN h.last_error) > 0)
            AND (dead_since IS NULL OR to_timestamp(d.ended_at / 1000.0) >= dead_since)
            AND (dead_until IS NULL OR to_timestamp(d.ended_at / 1000.0) <= dead_until)
            AND (retry_failed.ids IS NULL OR d.id = ANY (retry_failed.ids))
        ORDER BY d.ended_at, d.id LIMIT max_messages FOR UPDATE OF d SKIP LOCKED
    LOOP
        IF m.unique_key THEN
            PERFORM pg_advisory_xact_lock(1380188162, here.queue_id);
            CONTINUE WHEN redrive.holder(here.queue_id, m.dedup_key, now) IS NOT NULL;
            held := redrive.take_key(here.queue_id, m.dedup_key, m.id, NULL, now);
            CONTINUE WHEN held IS NULL;
            -- What is counted must be seen by the next one.
            INSERT INTO redrive.tally (queue_id, holds) VALUES (here.queue_id, held);
        END IF;
        UPDATE redrive.message d
        SET state = 1, visible_at = now, place = nextval('redrive.place'), retry = true, storied = true, attempts = 0,
            deliveries_before = d.deliveries, redrives = d.redrives + 1,
            expires_at = CASE WHEN d.expires_at > now THEN d.expires_at END, lease_id = NULL, leased_at = NULL,
            deadline = NULL, consumer = NULL, nacked = NULL, ended_at = NULL, fingerprint = NULL, dead_reason = NULL
        WHERE d.queue_id = m.queue_id AND d.id = m.id;
        INSERT INTO redrive.history (no, redriven_at, redriven_by, redriven_reason)
        VALUES (m.no, now, coalesce(requested_by, ''), coalesce(note, ''))
        ON CONFLICT (no) DO UPDATE SET redriven_at = excluded.redriven_at, redriven_by = excluded.redriven_by,
            redriven_reason = excluded.redriven_reason;
        back := back + 1;
    END LOOP;
    IF back > 0 THEN
        INSERT INTO redrive.tally (queue_id, waiting, dead, redrive) VALUES (here.queue_id, back, -back, back);
        PERFORM redrive.tell(retry_failed.queue);
    END IF;
    RETURN back;
END
$$;

-- Nobody may call any of them before it is granted.
DO $$
BEGIN
    EXECUTE format('REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA %I FROM PUBLIC', redrive.channel());
END
$$;
