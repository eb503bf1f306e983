"""The exception for each status of a call."""

import grpc
from google.protobuf.any_pb2 import Any
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

import heeler
from heeler import v1
from heeler._errors.status import is_final, to_refusal


def refused(reason: str, domain: str = "heeler.dev") -> heeler.RefusedError:
    status, detail = Status(), Any()
    detail.Pack(ErrorInfo(reason=reason, domain=domain, metadata={"task_id": "shell-a"}))
    status.details.append(detail)
    return to_refusal(grpc.StatusCode.NOT_FOUND, "no such task", status)


def test_every_reason_of_the_contract_has_an_exception() -> None:
    for name in v1.ErrorReason.DESCRIPTOR.values_by_name:
        reason = name.removeprefix("ERROR_REASON_")
        if reason != "UNSPECIFIED":
            assert reason == type(refused(reason)).REASON
    assert isinstance(refused("TASK_NOT_FOUND"), heeler.TaskNotFoundError)


def test_a_newer_reason_is_kept_and_another_domain_is_ignored() -> None:
    newer = refused("NEW_REASON")
    assert (type(newer), newer.reason) == (heeler.RefusedError, "NEW_REASON")
    foreign = refused("TASK_NOT_FOUND", "example.com")
    assert type(foreign) is heeler.RefusedError
    assert (foreign.reason, dict(foreign.metadata)) == (None, {})


def test_bad_fields_are_named() -> None:
    status, detail = Status(), Any()
    violation = BadRequest.FieldViolation(field="grace", description="is negative")
    detail.Pack(BadRequest(field_violations=[violation]))
    status.details.append(detail)
    error = to_refusal(grpc.StatusCode.INVALID_ARGUMENT, "", status)
    assert error.fields == (heeler.FieldViolation("grace", "is negative"),)
    assert str(error) == "grace: is negative"
    assert is_final(error)
