"""The worker's side of a task: its stop requests, its progress, its messages and its result.

Work handles ──> Driver ── stream of Work ──> daemon
     ^── state ─────┘  reconnects, sends again what was not acknowledged
"""
