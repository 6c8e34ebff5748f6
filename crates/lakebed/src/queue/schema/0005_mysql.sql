CREATE TABLE IF NOT EXISTS queue_link (
    run_id BIGINT NOT NULL,
    rule VARCHAR(255) NOT NULL,
    worker_id BIGINT NOT NULL,
    pages BIGINT NOT NULL,
    hits BIGINT NOT NULL,
    PRIMARY KEY (run_id, rule, worker_id)
) ENGINE = InnoDB, CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;
