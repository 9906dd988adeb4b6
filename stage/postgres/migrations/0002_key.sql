-- The latest task of each NewTask.Key. A task without a key has no row.
CREATE TABLE daimon.key (
	kind     text        NOT NULL,
	key      text        NOT NULL,
	task     bigint      NOT NULL REFERENCES daimon.task (id) ON DELETE CASCADE,
	enqueued timestamptz NOT NULL,
	horizon  timestamptz NOT NULL, -- when that task was enqueued, one from before or at this time did not stand for it

	PRIMARY KEY (kind, key)
);

-- For the deletion of tasks.
CREATE INDEX key_task ON daimon.key (task);
