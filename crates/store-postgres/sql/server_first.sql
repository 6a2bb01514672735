-- The first server of a database: $1 its cluster and timeline.
INSERT INTO redrive.shared (name, value) VALUES ('server', $1) ON CONFLICT (name) DO NOTHING
