-- The latest attempts of each task that have failed. A claim has one attempt, so its token tells them apart.
CREATE TABLE IF NOT EXISTS daimon_failure (
	task    INTEGER NOT NULL REFERENCES daimon_task (id) ON DELETE CASCADE,
	token   INTEGER NOT NULL,
	stage   TEXT    NOT NULL,
	attempt INTEGER NOT NULL,
	failed  INTEGER NOT NULL,
	failure TEXT    NOT NULL,

	PRIMARY KEY (task, token)
) STRICT;
