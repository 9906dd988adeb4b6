-- The latest attempts of each task that have failed. A claim has one attempt, so its token tells them apart.
CREATE TABLE daimon.failure (
	task    bigint      NOT NULL REFERENCES daimon.task (id) ON DELETE CASCADE,
	token   bigint      NOT NULL,
	stage   text        NOT NULL,
	attempt integer     NOT NULL,
	failed  timestamptz NOT NULL,
	failure text        NOT NULL,

	PRIMARY KEY (task, token)
);
