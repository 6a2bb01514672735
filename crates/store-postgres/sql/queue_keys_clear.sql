DELETE FROM redrive.key_setting WHERE queue_id = $1
