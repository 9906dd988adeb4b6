-- The latest tick of each periodic task, by its name.
CREATE TABLE daimon.periodic (
	name text        PRIMARY KEY,
	last timestamptz NOT NULL
);
