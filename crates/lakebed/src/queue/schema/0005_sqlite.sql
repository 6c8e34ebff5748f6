CREATE TABLE IF NOT EXISTS queue_link (
    run_id INTEGER NOT NULL,
    rule TEXT NOT NULL,
    worker_id INTEGER NOT NULL,
    pages INTEGER NOT NULL,
    hits INTEGER NOT NULL,
    PRIMARY KEY (run_id, rule, worker_id)
) STRICT, WITHOUT ROWID;
