-- The result of the first stage, with at most a thousand words of a file.
CREATE TABLE IF NOT EXISTS counts (
    task      INTEGER PRIMARY KEY,
    changed   TEXT    NOT NULL, -- when the file was changed last, as in RFC 3339
    bytes     INTEGER NOT NULL,
    lines     INTEGER NOT NULL,
    words     INTEGER NOT NULL,
    different INTEGER NOT NULL,
    rest      INTEGER NOT NULL  -- words that were not told apart
);

CREATE TABLE IF NOT EXISTS words (
    task INTEGER NOT NULL,
    word TEXT    NOT NULL,
    n    INTEGER NOT NULL,
    PRIMARY KEY (task, word)
) WITHOUT ROWID;

-- The result of the second stage.
CREATE TABLE IF NOT EXISTS reports (
    task INTEGER PRIMARY KEY,
    text TEXT NOT NULL
);
