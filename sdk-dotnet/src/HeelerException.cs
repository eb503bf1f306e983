using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// Why a call did not succeed. A call that its own <see cref="CancellationToken"/> ended gives an
/// <see cref="OperationCanceledException"/> instead.
/// </summary>
public abstract class HeelerException : Exception
{
    private protected HeelerException(string message, Exception? inner = null)
        : base(message, inner)
    {
    }

    /// <summary>Whether the daemon cannot have begun to carry out the call, and may do so a moment later.</summary>
    public virtual bool IsUnheard => false;

    /// <summary>Whether the same call may succeed a moment later: the daemon is away or restarting.</summary>
    public virtual bool IsTransient => IsUnheard;

    /// <summary>Whether this is a refusal for this reason; made for exception filters.</summary>
    /// <example><code>catch (HeelerException error) when (error.Is(ErrorReason.TaskNotFound))</code></example>
    public bool Is(ErrorReason reason) => this is HeelerRefusedException refused && refused.Reason == reason;
}

/// <summary>The address of the daemon cannot be used, or there is none.</summary>
public sealed class HeelerAddressException : HeelerException
{
    internal HeelerAddressException(string message, Exception? inner = null)
        : base(message, inner)
    {
    }
}

/// <summary>The token or the authority for a daemon over TCP cannot be used.</summary>
public sealed class HeelerCredentialsException : HeelerException
{
    internal HeelerCredentialsException(string message, Exception? inner = null)
        : base(message, inner)
    {
    }
}

/// <summary>Nobody listens at the address. The message says how to start a daemon there.</summary>
public sealed class DaemonNotRunningException : HeelerException
{
    internal DaemonNotRunningException(HeelerAddress address, Exception inner)
        : base($"no daemon answers at {address}: start one with `{address.StartCommand}`", inner) => Address = address;

    /// <summary>Where it was sought.</summary>
    public HeelerAddress Address { get; }

    /// <inheritdoc/>
    public override bool IsUnheard => true;
}

/// <summary>Somebody may listen at the address, but cannot be reached or is not to be trusted.</summary>
public sealed class DaemonUnreachableException : HeelerException
{
    internal DaemonUnreachableException(HeelerAddress address, Exception inner)
        : base($"cannot connect to {address}: {inner.Message}", inner) => Address = address;

    /// <summary>Where it was sought.</summary>
    public HeelerAddress Address { get; }
}

/// <summary>The connection broke: whether the daemon heard the call is not known.</summary>
public sealed class DaemonDisconnectedException : HeelerException
{
    internal DaemonDisconnectedException(HeelerAddress address, Exception inner)
        : base($"the connection to {address} broke", inner) => Address = address;

    /// <summary>Where the daemon was.</summary>
    public HeelerAddress Address { get; }

    /// <inheritdoc/>
    public override bool IsTransient => true;
}

/// <summary>The daemon's answer lacks what the contract promises.</summary>
public sealed class IncompleteAnswerException : HeelerException
{
    internal IncompleteAnswerException(string field)
        : base($"the daemon's answer has no {field}")
    {
    }
}

/// <summary>The daemon said no. Nothing was changed.</summary>
public sealed class HeelerRefusedException : HeelerException
{
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
    /// Why. <see cref="ErrorReason.Unspecified"/> if it is a reason that only a newer daemon knows, or if the status did not
    /// come from Heeler itself.
    /// </summary>
    public ErrorReason Reason { get; }

    /// <summary>The reason as it was sent, e.g. <c>TASK_NOT_FOUND</c>; empty if the status did not come from Heeler.</summary>
    public string ReasonName { get; }

    /// <summary>The values that the reason speaks of; the comments of <see cref="ErrorReason"/> name them.</summary>
    public IReadOnlyDictionary<string, string> Metadata { get; }

    /// <summary>Which fields of the request cannot be used.</summary>
    public IReadOnlyList<FieldViolation> FieldViolations { get; }

    /// <inheritdoc/>
    public override bool IsUnheard => StatusCode == StatusCode.Unavailable;

    /// <summary>Whether asking again, later, would be answered the same.</summary>
    internal bool IsFinal => StatusCode is
        StatusCode.InvalidArgument or StatusCode.NotFound or StatusCode.AlreadyExists or StatusCode.PermissionDenied
        or StatusCode.FailedPrecondition or StatusCode.OutOfRange or StatusCode.Unimplemented or StatusCode.Unauthenticated;
}

/// <summary>A field of a request that cannot be used.</summary>
/// <param name="Field">Its path in the request, e.g. <c>stop_policy.grace</c>.</param>
/// <param name="Description">What is wrong with it.</param>
public sealed record FieldViolation(string Field, string Description);
