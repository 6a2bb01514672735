COPY redrive.message (queue_id, class_id, id, no, created_at, visible_at, place, state, rank, size, max_attempts,
    lease_timeout, expires_at, fairness_key)
FROM STDIN BINARY
