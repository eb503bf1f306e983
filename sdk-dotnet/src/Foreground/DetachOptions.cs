using Heeler.V1;

namespace Heeler.Client;

/// <summary>Options of a detach.</summary>
public sealed class DetachOptions
{
    /// <summary>
    /// Maximum time from here on. It replaces the task's own timeout. Null: the task's own;
    /// <see cref="System.Threading.Timeout.InfiniteTimeSpan"/>: no limit.
    /// </summary>
    public TimeSpan? Timeout { get; init; }

    /// <summary>The reason, up to 4 KiB; kept with the task.</summary>
    public string? Reason { get; init; }

    /// <summary>The name of the requester, up to 256 bytes; kept with the task.</summary>
    public string? Actor { get; init; }

    /// <summary>Returns the contract's request for the selected tasks.</summary>
    public DetachRequest ToRequest(TaskFilter filter)
    {
        ArgumentNullException.ThrowIfNull(filter);
        return new DetachRequest
        {
            Filter = filter,
            Timeout = Time.ToProto(Timeout),
            Reason = Reason ?? "",
            Actor = Actor ?? "",
        };
    }
}
