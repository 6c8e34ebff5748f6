CREATE TABLE IF NOT EXISTS queue_link (
    run_id BIGINT NOT NULL,
    rule TEXT NOT NULL,
    worker_id BIGINT NOT NULL,
    pages BIGINT NOT NULL,
    hits BIGINT NOT NULL,
    PRIMARY KEY (run_id, rule, worker_id)
);
