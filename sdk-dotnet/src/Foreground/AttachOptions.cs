using Heeler.V1;

namespace Heeler.Client;

/// <summary>Options of an attachment. By default, all output of the task.</summary>
public sealed class AttachOptions
{
    /// <summary>The offset of the first byte, such as <c>NextOffset</c> of the last output of an earlier attachment.</summary>
    public ulong Offset { get; init; }

    /// <summary>Starts this many bytes before the present end, instead of at <see cref="Offset"/>.</summary>
    public ulong? TailBytes { get; init; }

    /// <summary>The form of the output: bytes by default.</summary>
    public OutputView View { get; init; }

    /// <summary>
    /// Ends the attachment after the output so far if the task is already in the background, instead of following it. For a
    /// client that spawned the task in the foreground.
    /// </summary>
    public bool ForegroundOnly { get; init; }

    /// <summary>Fails once the daemon has been away for this long. Null: never, once the daemon was reached.</summary>
    public TimeSpan? GiveUpAfter { get; init; }

    /// <summary>Returns the contract's request for one task.</summary>
    public AttachRequest ToRequest(string taskId)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        var request = new AttachRequest { TaskId = taskId, View = View, ForegroundOnly = ForegroundOnly };
        if (TailBytes is { } tail) request.TailBytes = tail;
        else request.Offset = Offset;
        return request;
    }
}
