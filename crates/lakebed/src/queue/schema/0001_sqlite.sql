CREATE TABLE queue_run (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    dt TEXT NOT NULL,
    run TEXT NOT NULL,
    day_id INTEGER NOT NULL,
    state INTEGER NOT NULL,
    coverage INTEGER NOT NULL,
    successor_of INTEGER,
    plan_hash TEXT,
    seeder TEXT,
    seed_at INTEGER NOT NULL DEFAULT 0,
    announced INTEGER NOT NULL DEFAULT 0,
    inserted INTEGER NOT NULL DEFAULT 0,
    duplicate INTEGER NOT NULL DEFAULT 0,
    out_of_scope INTEGER NOT NULL DEFAULT 0,
    late_finishes INTEGER NOT NULL DEFAULT 0,
    stopped TEXT,
    deadline_at INTEGER,
    created_at INTEGER NOT NULL,
    opened_at INTEGER,
    sealed_at INTEGER,
    closed_at INTEGER,
    closing TEXT,
    UNIQUE (source, dt, run)
) STRICT;

CREATE TABLE queue_host (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    next_at INTEGER NOT NULL DEFAULT 0,
    in_flight INTEGER NOT NULL DEFAULT 0,
    blocked_until INTEGER NOT NULL DEFAULT 0,
    robots TEXT,
    robots_until INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE queue_lane (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER NOT NULL,
    stage TEXT NOT NULL,
    host_id INTEGER NOT NULL,
    ready INTEGER NOT NULL,
    UNIQUE (run_id, stage, host_id)
) STRICT;

CREATE TABLE queue_request (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER NOT NULL,
    scope INTEGER NOT NULL,
    request_key BLOB NOT NULL,
    lane_id INTEGER NOT NULL,
    origin INTEGER NOT NULL,
    parent_id INTEGER,
    method TEXT NOT NULL,
    url TEXT NOT NULL,
    headers TEXT,
    body BLOB,
    carry TEXT,
    enqueued_at INTEGER NOT NULL,
    UNIQUE (scope, request_key)
) STRICT;

CREATE TABLE queue_request_state (
    run_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    lane_id INTEGER NOT NULL,
    state INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    worker_id INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    held_until INTEGER NOT NULL,
    class TEXT,
    capture BLOB,
    status INTEGER,
    announced INTEGER NOT NULL DEFAULT 0,
    inserted INTEGER NOT NULL DEFAULT 0,
    duplicate INTEGER NOT NULL DEFAULT 0,
    out_of_scope INTEGER NOT NULL DEFAULT 0,
    ended_at INTEGER,
    PRIMARY KEY (run_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX queue_request_ready ON queue_request_state (lane_id, priority, not_before, id)
    WHERE state IN (0, 3);

CREATE TABLE queue_progress (
    lane_id INTEGER NOT NULL,
    worker_id INTEGER NOT NULL,
    enqueued INTEGER NOT NULL,
    done INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    PRIMARY KEY (lane_id, worker_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_group (
    run_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    request_key BLOB NOT NULL,
    PRIMARY KEY (run_id, name, request_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_expectation (
    run_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    request_id INTEGER NOT NULL,
    expected INTEGER NOT NULL,
    PRIMARY KEY (run_id, name, request_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_worker (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    label TEXT NOT NULL,
    state INTEGER NOT NULL,
    lease_us INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL
) STRICT;

CREATE TABLE queue_event (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    run_id INTEGER,
    kind TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;
