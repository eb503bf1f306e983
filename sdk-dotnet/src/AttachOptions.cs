using Heeler.V1;

namespace Heeler.Client;

/// <summary>From where to read, and what to do about a task that is in the background. Nothing set: all of its output.</summary>
public sealed class AttachOptions
{
    /// <summary>Where the output begins, e.g. behind the last piece of an earlier hold.</summary>
    public ulong Offset { get; init; }

    /// <summary>Begin this many bytes before the present end, instead of at <see cref="Offset"/>.</summary>
    public ulong? TailBytes { get; init; }

    /// <summary>As bytes, unless told otherwise.</summary>
    public OutputView View { get; init; }

    /// <summary>
    /// Whether a task that is in the background already releases at once, behind the output there is, rather than be followed:
    /// for whoever spawned it in the foreground.
    /// </summary>
    public bool ForegroundOnly { get; init; }

    /// <summary>
    /// Ends with an error once the daemon has been away for this long. None: it is waited for without end, once it has been
    /// reached.
    /// </summary>
    public TimeSpan? GiveUpAfter { get; init; }

    /// <summary>The contract's message for one task.</summary>
    public AttachRequest ForTask(string taskId)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        var request = new AttachRequest { TaskId = taskId, View = View, ForegroundOnly = ForegroundOnly };
        if (TailBytes is { } tail) request.TailBytes = tail;
        else request.Offset = Offset;
        return request;
    }
}

/// <summary>What an attachment gives: one of the records within.</summary>
public abstract record AttachItem
{
    private AttachItem()
    {
    }

    /// <summary>The first: what is held. It does not come again when the connection broke meanwhile.</summary>
    /// <param name="Task">The task as it was when the hold began.</param>
    public sealed record Attached(BackgroundTask Task) : AttachItem;

    /// <summary>A piece of output, right behind the one before it.</summary>
    /// <param name="Chunks">In the order of arrival.</param>
    /// <param name="NextOffset">The offset behind its last byte.</param>
    public sealed record Output(IReadOnlyList<OutputChunk> Chunks, ulong NextOffset) : AttachItem;

    /// <summary>The last: the hold is over, and everything that was written before has been given.</summary>
    /// <param name="Task">The task as it was then.</param>
    /// <param name="Reason">Why.</param>
    public sealed record Released(BackgroundTask Task, ReleaseReason Reason) : AttachItem;
}
