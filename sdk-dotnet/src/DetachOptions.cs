using Heeler.V1;

namespace Heeler.Client;

/// <summary>How to put tasks into the background: the same processes, and no foreground timeout any more.</summary>
public sealed class DetachOptions
{
    /// <summary>
    /// How long the task may run from here on, instead of the timeout it was spawned with. None: that one;
    /// <see cref="System.Threading.Timeout.InfiniteTimeSpan"/>: for as long as it takes.
    /// </summary>
    public TimeSpan? Timeout { get; init; }

    /// <summary>Why; kept with the task.</summary>
    public string? Reason { get; init; }

    /// <summary>Who asks; kept with the task.</summary>
    public string? Actor { get; init; }

    /// <summary>The contract's message for one task.</summary>
    public DetachRequest ForTask(string taskId)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        var request = ToRequest();
        request.TaskId = taskId;
        return request;
    }

    /// <summary>The contract's message for whatever a session holds in the foreground.</summary>
    public DetachRequest ForSession(string sessionId)
    {
        ArgumentNullException.ThrowIfNull(sessionId);
        var request = ToRequest();
        request.SessionId = sessionId;
        return request;
    }

    private DetachRequest ToRequest()
    {
        var request = new DetachRequest { Reason = Reason ?? "", Actor = Actor ?? "" };
        if (Timeout is { } timeout) request.Timeout = Time.ToProto(timeout);
        return request;
    }
}
