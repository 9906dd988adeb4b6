-- Times are in milliseconds since 1970, by SQLite's clock.
CREATE TABLE IF NOT EXISTS daimon_task (
	id      INTEGER PRIMARY KEY AUTOINCREMENT, -- no number is given twice
	kind    TEXT    NOT NULL,
	stage   TEXT    NOT NULL,
	status  TEXT    NOT NULL CHECK (status IN ('NORMAL', 'IN_PROCESSING', 'SUSPENDED', 'RESUMED', 'ERROR', 'CANCELLED')),
	wanted  TEXT    NOT NULL DEFAULT '' CHECK (wanted IN ('', 'SUSPEND', 'CANCEL')),
	attempt INTEGER NOT NULL DEFAULT 0,
	failure TEXT    NOT NULL DEFAULT '',
	due     INTEGER, -- NULL: never
	worker  TEXT    NOT NULL DEFAULT '',
	token   INTEGER NOT NULL DEFAULT 0,
	created INTEGER NOT NULL,
	changed INTEGER NOT NULL,
	data    BLOB, -- the last column, so that the others are read without it

	CHECK (wanted = '' OR status = 'IN_PROCESSING'),
	CHECK (due IS NOT NULL OR status NOT IN ('IN_PROCESSING', 'RESUMED')),
	CHECK (due IS NULL OR status NOT IN ('SUSPENDED', 'CANCELLED'))
) STRICT;

-- What may be claimed, kind by kind, in the order of claims: id is the last column of any index.
CREATE INDEX IF NOT EXISTS daimon_task_due ON daimon_task (kind, due) WHERE due IS NOT NULL;
