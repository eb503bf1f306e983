"""The exception for each status of a call."""

import grpc
from google.protobuf.any_pb2 import Any
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

import heeler
from heeler import Address, v1
from heeler._errors.status import is_final, is_not_received, to_error, to_refusal, was_connected


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


def failed_to_connect(message: str) -> heeler.HeelerError:
    none = grpc.aio.Metadata()
    status = grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, none, none, message)
    return to_error(status, Address.parse("tls:build.example.com:7117"))


def test_a_network_that_fails_is_unreachable_and_tried_again() -> None:
    for message in (
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.9:7117: "
        "tcp handshaker shutdown",
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.9:7117: "
        "Failed to connect to remote host: No route to host",
        "errors resolving build.example.com:7117: [field:hostname lookup error:Not found]",
        "DNS resolution failed for build.example.com:7117: C-ares status is not ARES_SUCCESS",
    ):
        error = failed_to_connect(message)
        assert isinstance(error, heeler.DaemonUnreachableError)
        assert (is_not_received(error), was_connected(error)) == (True, False)


def test_a_certificate_that_is_not_trusted_is_not_tried_again() -> None:
    for message in (
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.9:7117: Ssl "
        "handshake failed (TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL: CERTIFICATE_VERIFY_FAILED",
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.9:7117: Custom "
        "verification check failed with error: UNAUTHENTICATED",
    ):
        error = failed_to_connect(message)
        assert isinstance(error, heeler.DaemonUnreachableError)
        assert not is_not_received(error)


def test_bad_fields_are_named() -> None:
    status, detail = Status(), Any()
    violation = BadRequest.FieldViolation(field="grace", description="is negative")
    detail.Pack(BadRequest(field_violations=[violation]))
    status.details.append(detail)
    error = to_refusal(grpc.StatusCode.INVALID_ARGUMENT, "", status)
    assert error.fields == (heeler.FieldViolation("grace", "is negative"),)
    assert str(error) == "grace: is negative"
    assert is_final(error)
