using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>The daemon refused the call. Nothing was changed.</summary>
public sealed class HeelerRefusedException : HeelerException
{
    /// <summary>Creates a refusal, for a fake of the client.</summary>
    public HeelerRefusedException(StatusCode statusCode, ErrorReason reason, string message)
        : base(message) => (StatusCode, Reason) = (statusCode, reason);

    internal HeelerRefusedException(Refusal refusal, RpcException inner)
        : base(refusal.Message, inner)
    {
        StatusCode = inner.StatusCode;
        ReasonName = refusal.ReasonName;
        Reason = refusal.Reason;
        Metadata = refusal.Metadata;
        FieldViolations = refusal.FieldViolations;
    }

    /// <summary>The gRPC status code.</summary>
    public StatusCode StatusCode { get; }

    /// <summary>
    /// The reason. <see cref="ErrorReason.Unspecified"/> if only a newer daemon knows it, or if the status is not Heeler's own.
    /// </summary>
    public ErrorReason Reason { get; }

    /// <summary>The reason as it was sent, such as <c>TASK_NOT_FOUND</c>. Empty if the status is not Heeler's own.</summary>
    public string ReasonName { get; } = "";

    /// <summary>The values of the reason. The comments of <see cref="ErrorReason"/> list them.</summary>
    public IReadOnlyDictionary<string, string> Metadata { get; init; } = new Dictionary<string, string>();

    /// <summary>The fields of the request that are missing or have a bad value.</summary>
    public IReadOnlyList<FieldViolation> FieldViolations { get; init; } = [];

    /// <inheritdoc/>
    public override bool IsUnprocessed => StatusCode == StatusCode.Unavailable;

    /// <summary>True if a later call would get the same answer.</summary>
    internal bool IsFinal => StatusCode is
        StatusCode.InvalidArgument or StatusCode.NotFound or StatusCode.AlreadyExists or StatusCode.PermissionDenied
        or StatusCode.FailedPrecondition or StatusCode.OutOfRange or StatusCode.Unimplemented or StatusCode.Unauthenticated;
}

/// <summary>A field of a request that is missing or has a bad value.</summary>
/// <param name="Field">Its path in the request, such as <c>spec.stop.grace</c>.</param>
/// <param name="Description">The error.</param>
public sealed record FieldViolation(string Field, string Description)
{
    /// <summary>Its name in this client, such as <c>Stop.Grace</c> in <see cref="SpawnOptions"/>.</summary>
    public string Option => OptionNames.Of(Field);
}
