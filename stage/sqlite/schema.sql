-- Times are in milliseconds since 1970, by the store's clock.
CREATE TABLE daimon_task (
	id      INTEGER PRIMARY KEY AUTOINCREMENT, -- no number is given twice
	kind    TEXT    NOT NULL,
	stage   TEXT    NOT NULL,
	status  TEXT    NOT NULL CHECK (status IN ('NORMAL', 'IN_PROCESSING', 'SUSPENDED', 'RESUMED', 'ERROR', 'CANCELLED')),
	wanted  TEXT    NOT NULL DEFAULT '' CHECK (wanted IN ('', 'SUSPENDED', 'CANCELLED')),
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

-- What may be claimed, kind by kind, in the order of claims: new tasks last, and id is the last column of any index. The tasks
-- that are held are among those that are not new.
CREATE INDEX daimon_task_due ON daimon_task ((token = 0 AND status = 'NORMAL'), kind, due) WHERE due IS NOT NULL;

-- For lists. The last two have the tasks that are neither new, in processing nor finished: engines that have no trouble do not
-- write them. Their conditions are not those of an IN with several values, for which SQLite makes a table in each statement.
CREATE INDEX daimon_task_kind ON daimon_task (kind);
CREATE INDEX daimon_task_status ON daimon_task (status) WHERE status NOT IN ('NORMAL', 'IN_PROCESSING');
CREATE INDEX daimon_task_status_kind ON daimon_task (status, kind) WHERE status NOT IN ('NORMAL', 'IN_PROCESSING');

-- Tasks that have ended, by when they did.
CREATE INDEX daimon_task_ended ON daimon_task (status, changed) WHERE due IS NULL AND status <> 'SUSPENDED';

-- The latest claim of each task that was claimed. It is not in daimon_task, whose rows stay smaller so.
CREATE TABLE daimon_claim (
	task   INTEGER PRIMARY KEY REFERENCES daimon_task (id) ON DELETE CASCADE,
	token  INTEGER NOT NULL, -- which the task got then
	engine INTEGER NOT NULL,
	number INTEGER NOT NULL
) STRICT;

-- The latest task of each NewTask.Key. A task without a key has no row.
CREATE TABLE daimon_key (
	kind TEXT    NOT NULL,
	key  TEXT    NOT NULL,
	task INTEGER NOT NULL REFERENCES daimon_task (id) ON DELETE CASCADE,

	PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

-- For the deletion of tasks.
CREATE INDEX daimon_key_task ON daimon_key (task);

-- The latest tick of each periodic task, by its name.
CREATE TABLE daimon_periodic (
	name TEXT    PRIMARY KEY,
	last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What processors have noted in stages that have not finished. A task without progress costs a look into a table that is small,
-- and in memory.
CREATE TABLE daimon_progress (
	task     INTEGER PRIMARY KEY REFERENCES daimon_task (id) ON DELETE CASCADE,
	at       TEXT NOT NULL, -- the stage
	progress BLOB
) STRICT;

-- The kinds that are paused.
CREATE TABLE daimon_pause (
	kind TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- The latest attempts of each task that have failed. A claim has one attempt, so its token tells them apart.
CREATE TABLE daimon_failure (
	task    INTEGER NOT NULL REFERENCES daimon_task (id) ON DELETE CASCADE,
	token   INTEGER NOT NULL,
	stage   TEXT    NOT NULL,
	attempt INTEGER NOT NULL,
	failed  INTEGER NOT NULL,
	failure TEXT    NOT NULL,

	PRIMARY KEY (task, token)
) STRICT;

-- The version of these tables.
CREATE TABLE daimon_version (number INTEGER NOT NULL) STRICT;
INSERT INTO daimon_version VALUES (1);
