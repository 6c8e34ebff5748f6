CREATE TABLE queue_run (
    id BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source TEXT NOT NULL,
    dt TEXT NOT NULL,
    run TEXT NOT NULL,
    day_id BIGINT NOT NULL,
    state BIGINT NOT NULL,
    coverage BIGINT NOT NULL,
    successor_of BIGINT,
    plan_hash TEXT,
    seeder TEXT,
    seed_at BIGINT NOT NULL DEFAULT 0,
    announced BIGINT NOT NULL DEFAULT 0,
    inserted BIGINT NOT NULL DEFAULT 0,
    duplicate BIGINT NOT NULL DEFAULT 0,
    out_of_scope BIGINT NOT NULL DEFAULT 0,
    late_finishes BIGINT NOT NULL DEFAULT 0,
    stopped TEXT,
    deadline_at BIGINT,
    created_at BIGINT NOT NULL,
    opened_at BIGINT,
    sealed_at BIGINT,
    closed_at BIGINT,
    closing TEXT,
    UNIQUE (source, dt, run)
);

CREATE TABLE queue_host (
    id BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    next_at BIGINT NOT NULL DEFAULT 0,
    in_flight BIGINT NOT NULL DEFAULT 0,
    blocked_until BIGINT NOT NULL DEFAULT 0,
    robots TEXT,
    robots_until BIGINT NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE queue_lane (
    id BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id BIGINT NOT NULL,
    stage TEXT NOT NULL,
    host_id BIGINT NOT NULL,
    ready BIGINT NOT NULL,
    UNIQUE (run_id, stage, host_id)
);

CREATE TABLE queue_request (
    id BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id BIGINT NOT NULL,
    scope BIGINT NOT NULL,
    request_key BYTEA NOT NULL,
    lane_id BIGINT NOT NULL,
    origin BIGINT NOT NULL,
    parent_id BIGINT,
    method TEXT NOT NULL,
    url TEXT NOT NULL,
    headers TEXT,
    body BYTEA,
    carry TEXT,
    enqueued_at BIGINT NOT NULL,
    UNIQUE (scope, request_key)
);

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
    class TEXT,
    capture BYTEA,
    status BIGINT,
    announced BIGINT NOT NULL DEFAULT 0,
    inserted BIGINT NOT NULL DEFAULT 0,
    duplicate BIGINT NOT NULL DEFAULT 0,
    out_of_scope BIGINT NOT NULL DEFAULT 0,
    ended_at BIGINT,
    PRIMARY KEY (run_id, id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX queue_request_ready ON queue_request_state (lane_id, priority, not_before, id)
    WHERE state IN (0, 3);

CREATE TABLE queue_progress (
    lane_id BIGINT NOT NULL,
    worker_id BIGINT NOT NULL,
    enqueued BIGINT NOT NULL,
    done BIGINT NOT NULL,
    dead BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    PRIMARY KEY (lane_id, worker_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE queue_group (
    run_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    request_key BYTEA NOT NULL,
    PRIMARY KEY (run_id, name, request_key)
);

CREATE TABLE queue_expectation (
    run_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    request_id BIGINT NOT NULL,
    expected BIGINT NOT NULL,
    PRIMARY KEY (run_id, name, request_id)
);

CREATE TABLE queue_worker (
    id BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    label TEXT NOT NULL,
    state BIGINT NOT NULL,
    lease_us BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    heartbeat_at BIGINT NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE queue_event (
    id BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at BIGINT NOT NULL,
    run_id BIGINT,
    kind TEXT NOT NULL,
    detail TEXT NOT NULL
);
