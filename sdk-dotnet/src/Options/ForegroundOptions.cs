using Heeler.V1;

namespace Heeler.Client;

/// <summary>The rules of a task that starts in the foreground: a client attaches to it and waits.</summary>
public sealed class ForegroundOptions
{
    /// <summary>
    /// Maximum time in the foreground, counted from the start. Null: 60 seconds;
    /// <see cref="System.Threading.Timeout.InfiniteTimeSpan"/>: no limit.
    /// </summary>
    public TimeSpan? Timeout { get; init; }

    /// <summary>Action when that time is over: by default, the task continues in the background.</summary>
    public ForegroundTimeoutAction OnTimeout { get; init; }

    /// <summary>Action when the last attached client disconnects without a detach: by default, the task is stopped.</summary>
    public DisconnectAction OnDisconnect { get; init; }

    /// <summary>Time for a client to attach first, or to attach again after a disconnect. Null: 10 seconds.</summary>
    public TimeSpan? ReattachWindow { get; init; }

    internal ForegroundPolicy ToPolicy() => new()
    {
        Timeout = Time.ToProto(Timeout),
        OnTimeout = OnTimeout,
        OnDisconnect = OnDisconnect,
        ReattachWindow = Time.ToProto(ReattachWindow),
    };
}
