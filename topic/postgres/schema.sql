CREATE TABLE daimon_topics.topic (
	id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- a part of the epoch: no number is given twice
	name     text        NOT NULL UNIQUE,
	last     bigint      NOT NULL, -- the offset of the latest message
	retained bigint,               -- the offset of the retained one
	changed  timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE daimon_topics.message (
	topic  bigint      NOT NULL,
	number bigint      NOT NULL, -- the offset
	seq    bigint      GENERATED ALWAYS AS IDENTITY, -- the order on one machine, and in a topic
	xid    xid8        NOT NULL DEFAULT pg_current_xact_id(),
	at     timestamptz NOT NULL DEFAULT clock_timestamp(),
	kind   smallint    NOT NULL, -- topic.Kind
	tag    smallint    NOT NULL,
	retain boolean     NOT NULL,
	member bytea, -- who has joined or left
	data   bytea       NOT NULL,
	PRIMARY KEY (topic, number)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.02);

-- What has become visible since a snapshot.
CREATE INDEX message_xid ON daimon_topics.message (xid);

-- What transactions of programs have published. It goes to the table message once they have committed: so they lock no topic.
CREATE TABLE daimon_topics.outbox (
	id     bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name   text     NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 1024 AND name !~ '[+#]'),
	data   bytea    NOT NULL,
	tag    smallint NOT NULL,
	retain boolean  NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

CREATE FUNCTION daimon_topics.publish(topic text, data bytea, tag int DEFAULT 0, retain boolean DEFAULT false) RETURNS void
	LANGUAGE sql AS $$ INSERT INTO daimon_topics.outbox (name, data, tag, retain) VALUES (topic, data, tag, retain) $$;

-- The engines.
CREATE TABLE daimon_topics.machine (
	id    bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	batch bigint      NOT NULL DEFAULT 0, -- the latest one, so that none is stored twice
	xid   xid8        NOT NULL DEFAULT '0', -- that stored it
	seen  timestamptz NOT NULL DEFAULT clock_timestamp(),
	gone  boolean     NOT NULL DEFAULT false -- it was not seen for long, and has no members any more
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

-- Who is present, in the topics that begin with "$presence/".
CREATE TABLE daimon_topics.member (
	topic   bigint NOT NULL,
	id      bytea  NOT NULL,
	machine bigint NOT NULL,
	info    bytea  NOT NULL,
	PRIMARY KEY (topic, id, machine)
);
CREATE INDEX member_machine ON daimon_topics.member (machine);

CREATE TABLE daimon_topics.version (number integer NOT NULL);
INSERT INTO daimon_topics.version VALUES (1);
