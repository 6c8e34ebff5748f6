ALTER TABLE queue_request_state ADD COLUMN body_mark BIGINT NOT NULL DEFAULT 0;
