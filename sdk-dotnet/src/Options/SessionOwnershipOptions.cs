using Heeler.V1;

namespace Heeler.Client;

/// <summary>The ownership of a session, whose tasks end with its owners.</summary>
public sealed class SessionOwnershipOptions
{
    /// <summary>The session.</summary>
    public required string SessionId { get; init; }

    /// <summary>Time for an owner to come back after the last one is gone. Null: 10 seconds.</summary>
    public TimeSpan? ReattachWindow { get; init; }

    internal SessionOwnership ToOwnership() => new() { SessionId = SessionId, ReattachWindow = Time.ToProto(ReattachWindow) };
}
