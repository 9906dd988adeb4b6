-- The kinds that are paused.
CREATE TABLE daimon.pause (
	kind text PRIMARY KEY
);
