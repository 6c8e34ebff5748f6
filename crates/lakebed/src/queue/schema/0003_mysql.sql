ALTER TABLE queue_request_state
    ADD COLUMN kept_capture BINARY(16) NOT NULL DEFAULT '',
    ADD COLUMN kept_status BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN kept_ended_at BIGINT NOT NULL DEFAULT 0,
    ALGORITHM = COPY;

UPDATE queue_request_state SET kept_capture = coalesce(capture, ''), kept_status = coalesce(status, 0), kept_ended_at = coalesce(ended_at, 0);

ALTER TABLE queue_request_state
    DROP COLUMN capture,
    DROP COLUMN status,
    DROP COLUMN ended_at,
    ADD COLUMN capture BINARY(16) AS (nullif(kept_capture, x'00000000000000000000000000000000')) VIRTUAL,
    ADD COLUMN status BIGINT AS (nullif(kept_status, 0)) VIRTUAL,
    ADD COLUMN ended_at BIGINT AS (nullif(kept_ended_at, 0)) VIRTUAL,
    ALGORITHM = COPY;
