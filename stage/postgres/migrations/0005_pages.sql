-- For lists.
CREATE INDEX task_kind ON daimon.task (kind, id);

-- Tasks that are neither new, in processing nor finished: engines that have no trouble do not write these indexes.
CREATE INDEX task_status ON daimon.task (status, id) WHERE status IN ('SUSPENDED', 'RESUMED', 'ERROR', 'CANCELLED');
CREATE INDEX task_kind_status ON daimon.task (kind, status, id) WHERE status IN ('SUSPENDED', 'RESUMED', 'ERROR', 'CANCELLED');
