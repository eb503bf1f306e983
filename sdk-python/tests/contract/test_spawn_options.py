"""Each option of spawn sets the field that its name says.

`test_contract` finds a field without an option; this finds an option that sets the wrong field.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf import json_format

import heeler
from heeler._options.spawn import HostOptions, SpawnOptions, register_request, spawn_request

if TYPE_CHECKING:
    from typing_extensions import Unpack

OPTIONS: SpawnOptions = {
    "request_id": "r",
    "session": "s",
    "name": "n",
    "kind": heeler.TaskKind.AGENT,
    "labels": {"a": "b"},
    "parent": heeler.BackgroundTask(id="shell-a"),
    "shell_program": "/bin/sh",
    "cwd": Path("/tmp"),
    "env": {"ONE": "1", "TWO": None},
    "env_defaults": heeler.EnvironmentDefaults.NONE,
    "timeout": 1,
    "idle_timeout": 2,
    "grace": 3,
    "soft_grace": 7,
    "stop_signal": signal.SIGINT,
    "foreground": True,
    "foreground_timeout": 4,
    "on_foreground_timeout": heeler.ForegroundTimeoutAction.CANCEL,
    "on_disconnect": heeler.DisconnectAction.KEEP,
    "reattach_window": 5,
    "stale_after": 6,
    "on_stale": heeler.StaleAction.CANCEL,
    "exclusive_key": "k",
    "exclusive_mode": heeler.ExclusiveMode.QUEUE,
    "queue": "q",
    "orphan_policy": heeler.OrphanPolicy.KILL,
    "rights": heeler.TaskRights.REPORT,
    "max_output": 1 << 20,
    "output_head": 7,
    "on_output_limit": heeler.OutputLimitAction.TRUNCATE,
    "patterns": [heeler.OutputPattern(name="n", regex="r")],
    "input": True,
    "notify_input_after": 7,
    "terminal": True,
    "terminal_columns": 100,
    "terminal_rows": 30,
    "terminal_type": "dumb",
    "ready_port": None,
    "ready_url": None,
    "ready_command": ["test", Path("up")],
    "ready_pattern": None,
    "ready_interval": 8,
    "ready_timeout": 9,
    "on_ready_timeout": heeler.ReadyTimeoutAction.CANCEL,
    "restart_on_failure": True,
    "restart_delay": 1,
    "max_restart_delay": 2,
    "max_restarts": 0,
    "restart_reset_after": 3,
}
SPEC = {
    "kind": "TASK_KIND_AGENT",
    "name": "n",
    "sessionId": "s",
    "parentId": "shell-a",
    "labels": {"a": "b"},
    "shell": {"script": "true", "program": "/bin/sh"},
    "workingDirectory": "/tmp",
    "environment": {
        "variables": {"ONE": "1"},
        "remove": ["TWO"],
        "defaults": "ENVIRONMENT_DEFAULTS_NONE",
    },
    "timeout": "1s",
    "idleTimeout": "2s",
    "stop": {"grace": "3s", "softGrace": "7s", "signal": "SIGINT"},
    "foreground": {
        "timeout": "4s",
        "onTimeout": "FOREGROUND_TIMEOUT_ACTION_CANCEL",
        "onDisconnect": "DISCONNECT_ACTION_KEEP",
        "reattachWindow": "5s",
    },
    "silence": {"staleAfter": "6s", "onStale": "STALE_ACTION_CANCEL"},
    "exclusive": {"key": "k", "mode": "EXCLUSIVE_MODE_QUEUE"},
    "queue": "q",
    "orphanPolicy": "ORPHAN_POLICY_KILL",
    "rights": "TASK_RIGHTS_REPORT",
    "output": {
        "maxBytes": "1048576",
        "headBytes": "7",
        "onLimit": "OUTPUT_LIMIT_ACTION_TRUNCATE",
        "patterns": [{"name": "n", "regex": "r"}],
    },
    "input": {"notifyAfter": "7s"},
    "terminal": {"columns": 100, "rows": 30, "term": "dumb"},
    "ready": {
        "command": {"args": ["test", "up"]},
        "interval": "8s",
        "timeout": "9s",
        "onTimeout": "READY_TIMEOUT_ACTION_CANCEL",
    },
    "restart": {"delay": "1s", "maxDelay": "2s", "maxRestarts": 0, "resetAfter": "3s"},
}


def test_every_option_sets_its_own_field() -> None:
    assert OPTIONS.keys() == SpawnOptions.__annotations__.keys()
    sent = json_format.MessageToDict(spawn_request("true", **OPTIONS))
    assert sent == {"requestId": "r", "spec": SPEC}


def test_a_hosted_task_has_every_option_that_concerns_no_process() -> None:
    options: HostOptions = {
        "request_id": "r",
        "lease": 10,
        "session": "s",
        "name": "n",
        "labels": {"a": "b"},
        "parent": heeler.BackgroundTask(id="shell-a"),
        "cwd": Path("/tmp"),
        "timeout": 1,
        "idle_timeout": 2,
        "grace": 3,
        "soft_grace": 7,
        "stale_after": 6,
        "on_stale": "cancel",
        "exclusive_key": "k",
        "exclusive_mode": "queue",
        "queue": "q",
    }
    assert options.keys() == HostOptions.__annotations__.keys()
    of_processes = {
        "shell",
        "environment",
        "foreground",
        "orphanPolicy",
        "rights",
        "output",
        "input",
        "terminal",
        "ready",
        "restart",
    }
    spec = {name: value for name, value in SPEC.items() if name not in of_processes}
    spec |= {"kind": "TASK_KIND_HOSTED", "stop": {"grace": "3s", "softGrace": "7s"}}
    sent = json_format.MessageToDict(register_request(**options))
    assert sent == {"requestId": "r", "lease": "10s", "spec": spec}
    first, second = register_request(), register_request()
    assert first.request_id != second.request_id


def test_a_task_is_ready_by_one_condition() -> None:
    def ready(**options: Unpack[SpawnOptions]) -> object:
        return json_format.MessageToDict(spawn_request("true", **options).spec.ready)

    assert ready(ready_port=0) == {"port": 0}
    assert ready(ready_url="http://localhost/") == {"httpUrl": "http://localhost/"}
    assert ready(ready_pattern="^up$") == {"pattern": "^up$"}


def test_a_word_means_the_member_of_its_enum() -> None:
    members: SpawnOptions = {
        "kind": heeler.TaskKind.AGENT,
        "env_defaults": heeler.EnvironmentDefaults.NON_INTERACTIVE,
        "on_disconnect": heeler.DisconnectAction.KEEP,
        "request_id": "r",
    }
    words: SpawnOptions = {
        "kind": "agent",
        "env_defaults": "non_interactive",
        "on_disconnect": "keep",
        "request_id": "r",
    }
    assert spawn_request("true", **words) == spawn_request("true", **members)
    wanted = heeler.Filter(kinds=["agent"], states=["timed_out"], placement="foreground")
    assert json_format.MessageToDict(wanted.to_message()) == {
        "kinds": ["TASK_KIND_AGENT"],
        "states": ["TASK_STATE_TIMED_OUT"],
        "placement": "PLACEMENT_FOREGROUND",
    }
