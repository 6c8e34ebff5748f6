CREATE TABLE IF NOT EXISTS queue_lease (
    name TEXT NOT NULL PRIMARY KEY,
    token TEXT NOT NULL,
    place TEXT NOT NULL,
    holder TEXT NOT NULL,
    taken_at BIGINT NOT NULL,
    until_at BIGINT NOT NULL
);
