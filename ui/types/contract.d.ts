// The messages of the contract that the page uses, in protobuf's JSON: 64-bit numbers, times and durations are
// strings, bytes are base64, fields at their default are written out, and absent messages are left out.

export type Enum<Prefix extends string, Name extends string> = `${Prefix}_${Name}`;
export type Timestamp = string;
export type Duration = string;
export type Uint64 = string;

export type TaskState = Enum<
  "TASK_STATE",
  | "UNSPECIFIED"
  | "QUEUED"
  | "STARTING"
  | "RUNNING"
  | "STOPPING"
  | "COMPLETED"
  | "FAILED"
  | "CANCELLED"
  | "TIMED_OUT"
  | "LOST"
>;
export type OutputStream = Enum<"OUTPUT_STREAM", "UNSPECIFIED" | "STDOUT" | "STDERR">;

export interface TaskSpec {
  kind: string;
  name: string;
  sessionId: string;
  parentId: string;
  labels: Record<string, string>;
  argv?: { args: string[] };
  shell?: { script: string; program: string };
  workingDirectory: string;
  environment?: { variableNames?: string[]; variables?: Record<string, string> };
  timeout?: Duration;
  idleTimeout?: Duration;
  stop?: { grace?: Duration; signal: string };
  foreground?: object;
  silence?: { staleAfter?: Duration };
  exclusive?: { key: string; mode: string };
  queue: string;
  output?: { patterns?: OutputPattern[] };
  input?: object;
  terminal?: { columns: number; rows: number };
  ready?: object;
  restart?: object;
}

export interface OutputPattern {
  name: string;
  regex: string;
}

export interface PatternMatches {
  name: string;
  count: Uint64;
  lastOffset?: Uint64;
  searchedOffset: Uint64;
}

export interface Outcome {
  exitCode?: number;
  signal?: { number: number; name: string; coreDumped: boolean };
  spawnError?: { stage: string; path: string; message: string };
  unknown?: { detail: string };
  worker?: string;
}

export interface Actor {
  name: string;
  uid?: number;
  pid?: number;
}

export interface Proof {
  checkTime?: Timestamp;
  proven?: string;
  survivors?: { processes: ProcessInfo[] };
  unproven?: { reason: string };
}

export interface StopRecord {
  cause: string;
  actor?: Actor;
  reason: string;
  requestTime?: Timestamp;
  grace?: Duration;
  signals: { number: number; name: string; sendTime?: Timestamp; processes?: number }[];
  proof?: Proof;
  forced: boolean;
  soft?: { grace?: Duration; endTime?: Timestamp };
}

export interface Progress {
  intent: string;
  percent?: number;
  counts: Record<string, Uint64>;
  blockCount: Uint64;
  updateTime?: Timestamp;
}

export interface BackgroundTask {
  id: string;
  uid: string;
  spec?: TaskSpec;
  state: TaskState;
  placement: string;
  stale: boolean;
  leader?: { pid: number };
  containment: string;
  createTime?: Timestamp;
  startTime?: Timestamp;
  endTime?: Timestamp;
  outcome?: Outcome;
  endReason: string;
  stop?: StopRecord;
  detachment?: { cause: string; actor?: Actor; reason: string; detachTime?: Timestamp };
  abandoned: { pid: number; command: string }[];
  outputBytes: Uint64;
  captureError: string;
  revision: Uint64;
  outputLimit?: { cause: string; limitTime?: Timestamp; offset: Uint64 };
  matches: PatternMatches[];
  readiness: string;
  needsInput: boolean;
  progress?: Progress;
  worker?: { lease?: Duration };
  result?: { status: string; text: string; resultTime?: Timestamp };
  attempts?: {
    latest: number;
    failures: number;
    dueTime?: Timestamp;
    startTime?: Timestamp;
    failedOutcome?: Outcome;
    failedTime?: Timestamp;
  };
}

export interface TaskEvent {
  revision: Uint64;
  eventTime?: Timestamp;
  type: string;
  task?: BackgroundTask;
  sessionActivity?: { sessionId: string };
  match?: OutputMatch;
}

export interface OutputMatch {
  pattern: string;
  count: Uint64;
  lines: { offset: Uint64; stream: OutputStream; text?: string }[];
}

export interface WatchEventsResponse {
  initial?: BackgroundTask;
  event?: TaskEvent;
  bookmark?: { revision: Uint64; epoch: string };
}

export interface OutputChunk {
  offset: Uint64;
  stream: OutputStream;
  readTime?: Timestamp;
  data?: string;
  text?: string;
  gap?: { length: Uint64; cause: string };
}

export interface ReadOutputResponse {
  chunks: OutputChunk[];
  nextOffset: Uint64;
  endOffset: Uint64;
  complete: boolean;
}

export interface FollowOutputResponse {
  task?: BackgroundTask;
  output?: { taskId: string; chunks: OutputChunk[]; nextOffset: Uint64 };
  ended?: BackgroundTask;
  gone?: { taskId: string };
  bookmark?: { epoch: string };
}

export interface ProcessInfo {
  pid: number;
  parentPid: number;
  command: string;
  state: string;
  startTime?: Timestamp;
  cpuTime?: Duration;
  memoryBytes: Uint64;
}

export interface ListeningPort {
  address: string;
  port: number;
  pid: number;
  command: string;
}

export interface Block {
  number: Uint64;
  kind: string;
  text: string;
  textBytes: Uint64;
  name: string;
  blockTime?: Timestamp;
}

export interface Screen {
  lines: string[];
  columns: number;
  rows: number;
  cursorColumn: number;
  cursorRow: number;
  cursorVisible: boolean;
}

export interface InspectResponse {
  task?: BackgroundTask;
  processes: ProcessInfo[];
  resources?: { cpuTime?: Duration; memoryBytes: Uint64; processCount: number };
  output?: { endOffset: Uint64; storedBytes: Uint64; gaps: OutputChunk[] };
  summary: string;
  ports: ListeningPort[];
  blocks: Block[];
  worker?: { connected: boolean; heardTime?: Timestamp };
  screen?: Screen;
}

export interface ServerInfo {
  version: string;
  epoch: string;
  containment: string;
  containmentDetail: string;
  startTime?: Timestamp;
  liveTasks: number;
  maxLiveTasks: number;
}

export interface ListResponse {
  tasks: BackgroundTask[];
  nextPageToken: string;
  revision: Uint64;
  server?: ServerInfo;
}

export interface Queue {
  name: string;
  slots: number;
  paused: boolean;
  running: number;
  waiting: number;
}

export interface WriteInputResponse {
  offset: Uint64;
  closed: boolean;
  writerId: string;
  takenBytes: number;
}

export interface CancelResponse {
  results: { task?: BackgroundTask; outcome: string; unrecorded?: { message: string } }[];
}

export interface DetachResponse {
  results: { task?: BackgroundTask; outcome: string }[];
}

/** The unary calls of the page: request and response. */
export interface Calls {
  Cancel: [object, CancelResponse];
  Detach: [object, DetachResponse];
  Inspect: [object, InspectResponse];
  List: [object, ListResponse];
  ListQueues: [object, { queues: Queue[] }];
  ReadOutput: [object, ReadOutputResponse];
  Remove: [object, { removedTaskIds: string[] }];
  ResizeTerminal: [object, object];
  SendMessage: [object, { number: Uint64 }];
  Spawn: [object, { task?: BackgroundTask; notices: { message: string }[] }];
  UpdateQueue: [object, { queue?: Queue }];
  UpdateTask: [object, { task?: BackgroundTask }];
  WriteInput: [object, WriteInputResponse];
}

/** The streams of the page. */
export interface Streams {
  FollowOutput: FollowOutputResponse;
  WatchEvents: WatchEventsResponse;
}
