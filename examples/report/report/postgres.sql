-- Several programs may do this at once. All of it is one transaction.
SELECT pg_advisory_xact_lock(hashtext('the tables of reports'));

-- The result of the first stage, with at most a thousand words of a file.
CREATE TABLE IF NOT EXISTS counts (
    task      bigint      PRIMARY KEY,
    changed   timestamptz NOT NULL, -- when the file was changed last
    bytes     bigint      NOT NULL,
    lines     bigint      NOT NULL,
    words     bigint      NOT NULL,
    different bigint      NOT NULL,
    rest      bigint      NOT NULL  -- words that were not told apart
);

CREATE TABLE IF NOT EXISTS words (
    task bigint NOT NULL,
    word text   NOT NULL,
    n    bigint NOT NULL,
    PRIMARY KEY (task, word)
);

-- The result of the second stage.
CREATE TABLE IF NOT EXISTS reports (
    task bigint PRIMARY KEY,
    text text   NOT NULL
);
