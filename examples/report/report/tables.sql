-- What the first stage brings of a file. Of the words there are at most a thousand.
CREATE TABLE IF NOT EXISTS counts (
    task      INTEGER PRIMARY KEY,
    changed   TEXT    NOT NULL, -- the file, as in RFC 3339
    bytes     INTEGER NOT NULL,
    lines     INTEGER NOT NULL,
    words     INTEGER NOT NULL,
    different INTEGER NOT NULL,
    rest      INTEGER NOT NULL  -- of the words, those that were not told apart
);

CREATE TABLE IF NOT EXISTS words (
    task INTEGER NOT NULL,
    word TEXT    NOT NULL,
    n    INTEGER NOT NULL,
    PRIMARY KEY (task, word)
) WITHOUT ROWID;

-- What the second brings.
CREATE TABLE IF NOT EXISTS reports (
    task INTEGER PRIMARY KEY,
    text TEXT NOT NULL
);
