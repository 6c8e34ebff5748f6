CREATE TABLE queue_run (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    source VARCHAR(64) NOT NULL,
    dt VARCHAR(10) NOT NULL,
    run VARCHAR(128) NOT NULL,
    day_id BIGINT NOT NULL,
    state BIGINT NOT NULL,
    coverage BIGINT NOT NULL,
    successor_of BIGINT,
    plan_hash VARCHAR(64),
    seeder VARCHAR(32),
    seed_at BIGINT NOT NULL DEFAULT 0,
    announced BIGINT NOT NULL DEFAULT 0,
    inserted BIGINT NOT NULL DEFAULT 0,
    duplicate BIGINT NOT NULL DEFAULT 0,
    out_of_scope BIGINT NOT NULL DEFAULT 0,
    late_finishes BIGINT NOT NULL DEFAULT 0,
    stopped LONGTEXT,
    deadline_at BIGINT,
    created_at BIGINT NOT NULL,
    opened_at BIGINT,
    sealed_at BIGINT,
    closed_at BIGINT,
    closing LONGTEXT,
    UNIQUE (source, dt, run)
) ENGINE = InnoDB, CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;

CREATE TABLE queue_host (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(255) NOT NULL UNIQUE,
    next_at BIGINT NOT NULL DEFAULT 0,
    in_flight BIGINT NOT NULL DEFAULT 0,
    blocked_until BIGINT NOT NULL DEFAULT 0,
    robots LONGTEXT,
    robots_until BIGINT NOT NULL DEFAULT 0
) ENGINE = InnoDB, CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;

CREATE TABLE queue_lane (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    run_id BIGINT NOT NULL,
    stage VARCHAR(64) NOT NULL,
    host_id BIGINT NOT NULL,
    ready BIGINT NOT NULL,
    UNIQUE (run_id, stage, host_id)
) ENGINE = InnoDB, CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;

CREATE TABLE queue_request (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    run_id BIGINT NOT NULL,
    scope BIGINT NOT NULL,
    request_key BINARY(16) NOT NULL,
    lane_id BIGINT NOT NULL,
    origin BIGINT NOT NULL,
    parent_id BIGINT,
    method VARCHAR(32) NOT NULL,
    url LONGTEXT NOT NULL,
    headers LONGTEXT,
    body LONGBLOB,
    carry LONGTEXT,
    enqueued_at BIGINT NOT NULL,
    UNIQUE (scope, request_key)
) ENGINE = InnoDB, CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;

CREATE TABLE queue_request_state (
    run_id BIGINT NOT NULL,
    id BIGINT NOT NULL,
    lane_id BIGINT NOT NULL,
    state BIGINT NOT NULL,
    priority BIGINT NOT NULL,
    not_before BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    worker_id BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    held_until BIGINT NOT NULL,
    class VARCHAR(64),
    capture BINARY(16),
    status BIGINT,
    announced BIGINT NOT NULL DEFAULT 0,
    inserted BIGINT NOT NULL DEFAULT 0,
    duplicate BIGINT NOT NULL DEFAULT 0,
    out_of_scope BIGINT NOT NULL DEFAULT 0,
    ended_at BIGINT,
    ready BIGINT AS (IF(state IN (0, 3), lane_id, NULL)) STORED,
    PRIMARY KEY (run_id, id),
    KEY queue_request_ready (ready, priority, not_before, id)
) ENGINE = InnoDB, CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;

CREATE TABLE queue_progress (
    lane_id BIGINT NOT NULL,
    worker_id BIGINT NOT NULL,
    enqueued BIGINT NOT NULL,
    done BIGINT NOT NULL,
    dead BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    PRIMARY KEY (lane_id, worker_id)
) ENGINE = InnoDB, CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;

CREATE TABLE queue_group (
    run_id BIGINT NOT NULL,
    name VARCHAR(255) NOT NULL,
    request_key BINARY(16) NOT NULL,
    PRIMARY KEY (run_id, name, request_key)
) ENGINE = InnoDB, CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;

CREATE TABLE queue_expectation (
    run_id BIGINT NOT NULL,
    name VARCHAR(255) NOT NULL,
    request_id BIGINT NOT NULL,
    expected BIGINT NOT NULL,
    PRIMARY KEY (run_id, name, request_id)
) ENGINE = InnoDB, CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;

CREATE TABLE queue_worker (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(255) NOT NULL UNIQUE,
    label VARCHAR(255) NOT NULL,
    state BIGINT NOT NULL,
    lease_us BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    heartbeat_at BIGINT NOT NULL
) ENGINE = InnoDB, CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;

CREATE TABLE queue_event (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at BIGINT NOT NULL,
    run_id BIGINT,
    kind VARCHAR(64) NOT NULL,
    detail LONGTEXT NOT NULL
) ENGINE = InnoDB, CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;
