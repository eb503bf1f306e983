// Messages for tests.

/** A running task. */
export const task = (id, fields = {}, spec = {}) => ({
  id,
  uid: id,
  spec: {
    kind: "TASK_KIND_SHELL",
    name: "",
    sessionId: "",
    parentId: "",
    labels: {},
    queue: "",
    ...spec,
  },
  state: "TASK_STATE_RUNNING",
  createTime: "2026-01-01T00:00:00Z",
  revision: "1",
  abandoned: [],
  matches: [],
  outputBytes: "0",
  endReason: "END_REASON_UNSPECIFIED",
  ...fields,
});

export const ended = (id) => task(id, { state: "TASK_STATE_COMPLETED" });

export const initial = (one) => ({ initial: one });

export const bookmark = (revision, epoch = "e") => ({
  bookmark: { revision: String(revision), epoch },
});

export const event = (revision, one, type = "TASK_EVENT_TYPE_UPDATED") => ({
  event: { revision: String(revision), type, task: one },
});

/** The bytes of a text as a piece of output. */
export const piece = (offset, text, stream = "out") => ({
  offset,
  stream,
  bytes: new TextEncoder().encode(text),
});

export const gap = (offset, length) => ({ offset, length, cause: "OUTPUT_GAP_CAUSE_ROTATED" });
