-- A journal as version 1 made it. Never to be changed: there are such files.
CREATE TABLE journal (
    state_id TEXT NOT NULL,
    id_key INTEGER NOT NULL,
    highest_removed_seq INTEGER NOT NULL
);
CREATE TABLE events (
    revision INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    task_seq INTEGER,
    format INTEGER NOT NULL,
    record TEXT NOT NULL,
    tail BLOB
);
CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    session_id TEXT NOT NULL,
    parent_id TEXT,
    revision INTEGER NOT NULL,
    created_revision INTEGER NOT NULL,
    started_revision INTEGER,
    end_revision INTEGER,
    end_state TEXT
);
CREATE INDEX tasks_live ON tasks (seq) WHERE end_revision IS NULL;
CREATE UNIQUE INDEX tasks_id ON tasks (id) WHERE end_revision IS NOT NULL;
CREATE INDEX tasks_ended ON tasks (end_revision) WHERE end_revision IS NOT NULL;
CREATE INDEX tasks_shelf ON tasks (end_state, kind, seq) WHERE end_revision IS NOT NULL;
CREATE INDEX tasks_session ON tasks (session_id, seq)
    WHERE end_revision IS NOT NULL AND session_id <> '';
CREATE INDEX tasks_parent ON tasks (parent_id, seq)
    WHERE end_revision IS NOT NULL AND parent_id IS NOT NULL;
CREATE TABLE labels (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (key, value, seq)
) WITHOUT ROWID;
CREATE TABLE requests (
    seq INTEGER PRIMARY KEY,
    format INTEGER NOT NULL,
    body TEXT NOT NULL,
    request_id TEXT NOT NULL UNIQUE
);
INSERT INTO journal VALUES ('0199f0c2-0000-7000-8000-000000000001', 4711, 14);
INSERT INTO events VALUES (1, 1763000000000001, 'created', 12, 1, '{"seq":12,"id":"shell-k3v7q2mzha","uid":"0199f0c2-8a51-7d33-9f0e-5f2f6c1f4a10","spec":{"kind":"shell","name":"build","session_id":"s1","parent":"agent-aaaaaaaaab","labels":{"repo":"heeler"},"command":{"shell":{"script":"make all","program":null}},"working_directory":"/home/user/project","env_names":["LANG"],"timeout":{"secs":600,"nanos":0},"stop_policy":{"grace":{"secs":5,"nanos":0},"signal":15}},"created":1763000000000000,"started":null,"leader_end":null,"stop":null,"ended":null,"output_bytes":0,"capture_error":null,"revision":0}', NULL);
INSERT INTO events VALUES (2, 1763000000000002, 'started', 12, 1, '{"seq":12,"id":"shell-k3v7q2mzha","uid":"0199f0c2-8a51-7d33-9f0e-5f2f6c1f4a10","spec":{"kind":"shell","name":"build","session_id":"s1","parent":"agent-aaaaaaaaab","labels":{"repo":"heeler"},"command":{"shell":{"script":"make all","program":null}},"working_directory":"/home/user/project","env_names":["LANG"],"timeout":{"secs":600,"nanos":0},"stop_policy":{"grace":{"secs":5,"nanos":0},"signal":15}},"created":1763000000000000,"started":{"pid":4242,"start_ticks":998877,"at":1763000000001000,"containment":"cgroup"},"leader_end":null,"stop":null,"ended":null,"output_bytes":0,"capture_error":null,"revision":0}', NULL);
INSERT INTO events VALUES (3, 1763000000000003, 'created', 13, 1, '{"seq":13,"id":"shell-abcdefghij","uid":"0199f0c2-8a51-7d33-9f0e-5f2f6c1f4a11","spec":{"kind":"shell","name":"build","session_id":"s1","parent":"agent-aaaaaaaaab","labels":{"repo":"heeler"},"command":{"shell":{"script":"make all","program":null}},"working_directory":"/home/user/project","env_names":["LANG"],"timeout":{"secs":600,"nanos":0},"stop_policy":{"grace":{"secs":5,"nanos":0},"signal":15}},"created":1763000000000000,"started":null,"leader_end":null,"stop":null,"ended":null,"output_bytes":0,"capture_error":null,"revision":0}', NULL);
INSERT INTO events VALUES (4, 1763000000000004, 'started', 13, 1, '{"seq":13,"id":"shell-abcdefghij","uid":"0199f0c2-8a51-7d33-9f0e-5f2f6c1f4a11","spec":{"kind":"shell","name":"build","session_id":"s1","parent":"agent-aaaaaaaaab","labels":{"repo":"heeler"},"command":{"shell":{"script":"make all","program":null}},"working_directory":"/home/user/project","env_names":["LANG"],"timeout":{"secs":600,"nanos":0},"stop_policy":{"grace":{"secs":5,"nanos":0},"signal":15}},"created":1763000000000000,"started":{"pid":4242,"start_ticks":998877,"at":1763000000001000,"containment":"cgroup"},"leader_end":null,"stop":null,"ended":null,"output_bytes":0,"capture_error":null,"revision":0}', NULL);
INSERT INTO events VALUES (5, 1763000000000005, 'ended', 12, 1, '{"seq":12,"id":"shell-k3v7q2mzha","uid":"0199f0c2-8a51-7d33-9f0e-5f2f6c1f4a10","spec":{"kind":"shell","name":"build","session_id":"s1","parent":"agent-aaaaaaaaab","labels":{"repo":"heeler"},"command":{"shell":{"script":"make all","program":null}},"working_directory":"/home/user/project","env_names":["LANG"],"timeout":{"secs":600,"nanos":0},"stop_policy":{"grace":{"secs":5,"nanos":0},"signal":15}},"created":1763000000000000,"started":{"pid":4242,"start_ticks":998877,"at":1763000000001000,"containment":"cgroup"},"leader_end":{"outcome":{"signalled":{"signal":15,"core_dumped":false}},"at":1763000005000000},"stop":{"cause":"cancel","actor":{"name":"somebody","uid":1000,"pid":77},"reason":"no longer needed","requested":1763000004000000,"mode":{"graceful":{"grace":{"secs":5,"nanos":0},"signal":15}},"cascade":false,"signals":[{"signal":15,"at":1763000004000100,"processes":2}],"proof":{"method":"cgroup_empty","at":1763000005000100,"survivors":[]}},"ended":{"state":"cancelled","reason":"cancelled","at":1763000005000200,"cpu":{"secs":0,"nanos":3000000},"max_memory":3145728},"output_bytes":812,"capture_error":null,"revision":0}', NULL);
INSERT INTO events VALUES (6, 1763000000000006, 'created', 14, 1, '{"seq":14,"id":"shell-bbbbbbbbbb","uid":"0199f0c2-8a51-7d33-9f0e-5f2f6c1f4a12","spec":{"kind":"shell","name":"build","session_id":"s1","parent":"agent-aaaaaaaaab","labels":{"repo":"heeler"},"command":{"shell":{"script":"make all","program":null}},"working_directory":"/home/user/project","env_names":["LANG"],"timeout":{"secs":600,"nanos":0},"stop_policy":{"grace":{"secs":5,"nanos":0},"signal":15}},"created":1763000000000000,"started":null,"leader_end":null,"stop":null,"ended":null,"output_bytes":812,"capture_error":null,"revision":0}', NULL);
INSERT INTO events VALUES (7, 1763000000000007, 'ended', 14, 1, '{"seq":14,"id":"shell-bbbbbbbbbb","uid":"0199f0c2-8a51-7d33-9f0e-5f2f6c1f4a12","spec":{"kind":"shell","name":"build","session_id":"s1","parent":"agent-aaaaaaaaab","labels":{"repo":"heeler"},"command":{"shell":{"script":"make all","program":null}},"working_directory":"/home/user/project","env_names":["LANG"],"timeout":{"secs":600,"nanos":0},"stop_policy":{"grace":{"secs":5,"nanos":0},"signal":15}},"created":1763000000000000,"started":{"pid":4242,"start_ticks":998877,"at":1763000000001000,"containment":"cgroup"},"leader_end":{"outcome":{"signalled":{"signal":15,"core_dumped":false}},"at":1763000005000000},"stop":{"cause":"cancel","actor":{"name":"somebody","uid":1000,"pid":77},"reason":"no longer needed","requested":1763000004000000,"mode":{"graceful":{"grace":{"secs":5,"nanos":0},"signal":15}},"cascade":false,"signals":[{"signal":15,"at":1763000004000100,"processes":2}],"proof":{"method":"cgroup_empty","at":1763000005000100,"survivors":[]}},"ended":{"state":"cancelled","reason":"cancelled","at":1763000005000200,"cpu":{"secs":0,"nanos":3000000},"max_memory":3145728},"output_bytes":812,"capture_error":null,"revision":0}', NULL);
INSERT INTO events VALUES (8, 1763000000000008, 'removed', 14, 1, '{"seq":14,"id":"shell-bbbbbbbbbb","uid":"0199f0c2-8a51-7d33-9f0e-5f2f6c1f4a12","spec":{"kind":"shell","name":"build","session_id":"s1","parent":"agent-aaaaaaaaab","labels":{"repo":"heeler"},"command":{"shell":{"script":"make all","program":null}},"working_directory":"/home/user/project","env_names":["LANG"],"timeout":{"secs":600,"nanos":0},"stop_policy":{"grace":{"secs":5,"nanos":0},"signal":15}},"created":1763000000000000,"started":{"pid":4242,"start_ticks":998877,"at":1763000000001000,"containment":"cgroup"},"leader_end":{"outcome":{"signalled":{"signal":15,"core_dumped":false}},"at":1763000005000000},"stop":{"cause":"cancel","actor":{"name":"somebody","uid":1000,"pid":77},"reason":"no longer needed","requested":1763000004000000,"mode":{"graceful":{"grace":{"secs":5,"nanos":0},"signal":15}},"cascade":false,"signals":[{"signal":15,"at":1763000004000100,"processes":2}],"proof":{"method":"cgroup_empty","at":1763000005000100,"survivors":[]}},"ended":{"state":"cancelled","reason":"cancelled","at":1763000005000200,"cpu":{"secs":0,"nanos":3000000},"max_memory":3145728},"output_bytes":812,"capture_error":null,"revision":0}', NULL);
INSERT INTO tasks VALUES (12, 'shell-k3v7q2mzha', 'shell', 's1', 'agent-aaaaaaaaab', 5, 1, 2, 5, 'cancelled');
INSERT INTO tasks VALUES (13, 'shell-abcdefghij', 'shell', 's1', 'agent-aaaaaaaaab', 4, 3, 4, NULL, NULL);
INSERT INTO labels VALUES ('repo', 'heeler', 12);
INSERT INTO requests VALUES (12, 1, '{"request_id":"r1","kind":"shell","name":"build","session_id":"s1","parent":"agent-aaaaaaaaab","labels":{"repo":"heeler"},"command":{"shell":{"script":"make all","program":null}},"working_directory":"/home/user/project","env":{},"env_remove":[],"env_defaults":"none","timeout":{"secs":600,"nanos":0},"stop_policy":{"grace":{"secs":5,"nanos":0},"signal":15}}', 'r1');
PRAGMA application_id = 1214604652;
PRAGMA user_version = 1;
