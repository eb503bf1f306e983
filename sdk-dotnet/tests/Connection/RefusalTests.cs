using Google.Protobuf;
using Google.Protobuf.WellKnownTypes;
using Grpc.Core;
using Heeler.Client.Details;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>Reading the details of a status.</summary>
public sealed class RefusalTests
{
    private static readonly HeelerAddress _address = HeelerAddress.Unix("/nowhere/x.sock");

    [Fact]
    public void A_newer_reason_keeps_its_name()
    {
        var refusal = Refused(StatusCode.Aborted, "no", Reason("NEW_REASON", "heeler.dev"));
        Assert.Equal(("NEW_REASON", ErrorReason.Unspecified), (refusal.ReasonName, refusal.Reason));
        Assert.Equal("shell-a", refusal.Metadata["task_id"]);
    }

    [Fact]
    public void Reasons_of_other_domains_are_ignored()
    {
        var refusal = Refused(StatusCode.NotFound, "no", Reason("TASK_NOT_FOUND", "example.com"));
        Assert.Equal(("", ErrorReason.Unspecified), (refusal.ReasonName, refusal.Reason));
        Assert.Empty(refusal.Metadata);
    }

    [Fact]
    public void A_refusal_without_a_message_names_its_field()
    {
        var bad = new FieldsDetail { FieldViolations = { new FieldDetail { Field = "grace", Description = "is negative" } } };
        var refusal = Refused(StatusCode.InvalidArgument, "", Packed("BadRequest", bad));
        Assert.Equal("Grace (grace): is negative", refusal.Message);
        Assert.Equal([new FieldViolation("grace", "is negative")], refusal.FieldViolations);
    }

    [Theory]
    [InlineData("spec.command", "Shell or Argv")]
    [InlineData("spec.shell.script", "Shell")]
    [InlineData("spec.argv.args[0]", "Argv[0]")]
    [InlineData("spec.stop.grace", "Stop.Grace")]
    [InlineData("spec.silence.stale_after", "Silence.StaleAfter")]
    [InlineData("spec.environment.variables[\"my_name\"]", "Environment[\"my_name\"]")]
    [InlineData("spec.labels[\"a.b\"]", "Labels[\"a.b\"]")]
    [InlineData("spec", "Spec")]
    [InlineData("request_id", "RequestId")]
    [InlineData("graceful.signal", "Stop.Signal")]
    [InlineData("filter.task_ids[1]", "Filter.TaskIds[1]")]
    [InlineData("bookmark_interval", "BookmarkInterval")]
    [InlineData("epoch", "AfterBookmark")]
    [InlineData("spec.output.patterns[2].cooldown", "Output.Patterns[2].Cooldown")]
    [InlineData("set_patterns[0].regex", "SetPatterns[0].Regex")]
    [InlineData("cursors[1].task_id", "Cursors[1].TaskId")]
    [InlineData("output_filter.lines_before", "OutputFilter.LinesBefore")]
    [InlineData("head_and_tail.tail_lines", "HeadAndTail.TailLines")]
    [InlineData("match.regex", "Match.Regex")]
    public void A_field_is_named_as_the_client_calls_it_beside_the_contract(string field, string option)
    {
        var bad = new FieldsDetail { FieldViolations = { new FieldDetail { Field = field, Description = "is bad" } } };
        var refusal = Refused(StatusCode.InvalidArgument, $"{field} is bad", Packed("BadRequest", bad));
        Assert.Equal($"{option} ({field}) is bad", refusal.Message);
        Assert.Equal(option, Assert.Single(refusal.FieldViolations).Option);
    }

    [Theory]
    [InlineData("the task limit is reached")]
    [InlineData("spec.timeouts are bad")]
    [InlineData("")]
    public void A_message_that_does_not_name_the_field_stays(string message)
    {
        var bad = new FieldsDetail { FieldViolations = { new FieldDetail { Field = "spec.timeout" } } };
        var refusal = Refused(StatusCode.InvalidArgument, message, Packed("BadRequest", bad));
        Assert.Equal(message.Length > 0 ? message : "Timeout (spec.timeout): ", refusal.Message);
    }

    [Fact]
    public void Unreadable_details_leave_the_code_and_the_message()
    {
        var trailers = new Metadata { { "grpc-status-details-bin", [0xff, 0xff, 0xff] } };
        var status = new Status(StatusCode.Internal, "broken");
        var refusal = Explained(new RpcException(status, trailers));
        Assert.Equal((StatusCode.Internal, "broken"), (refusal.StatusCode, refusal.Message));
    }

    [Fact]
    public void A_restarting_daemon_is_transient_and_a_full_one_is_not()
    {
        Assert.True(Refused(StatusCode.Unavailable, "recovering") is { IsTransient: true, IsUnprocessed: true });
        Assert.False(Refused(StatusCode.ResourceExhausted, "full").IsTransient);
    }

    [Fact]
    public void A_call_on_a_broken_connection_may_have_been_processed()
    {
        var status = new Status(StatusCode.Unavailable, "broken", new IOException("broken pipe"));
        var error = CallFailure.From(new RpcException(status), _address, CancellationToken.None);
        Assert.True(Assert.IsType<DaemonDisconnectedException>(error) is { IsTransient: true, IsUnprocessed: false });
    }

    private static Any Reason(string reason, string domain) =>
        Packed("ErrorInfo", new ReasonDetail { Reason = reason, Domain = domain, Metadata = { ["task_id"] = "shell-a" } });

    private static Any Packed(string type, IMessage detail) =>
        new() { TypeUrl = $"type.googleapis.com/google.rpc.{type}", Value = detail.ToByteString() };

    private static HeelerRefusedException Refused(StatusCode code, string message, params Any[] details)
    {
        var trailers = new Metadata { { "grpc-status-details-bin", new StatusDetails { Details = { details } }.ToByteArray() } };
        return Explained(new RpcException(new Status(code, message), trailers));
    }

    private static HeelerRefusedException Explained(RpcException error) =>
        Assert.IsType<HeelerRefusedException>(CallFailure.From(error, _address, CancellationToken.None));
}
