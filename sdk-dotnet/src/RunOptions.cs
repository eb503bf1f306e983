using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// What becomes of a command that is run, and of its output. Nothing set: the output is collected, and the caller's token
/// stops the command.
/// </summary>
public sealed class RunOptions
{
    /// <summary>Where stdout goes. None: to <see cref="OnOutput"/>, and without that into the result.</summary>
    public Stream? Stdout { get; init; }

    /// <summary>Where stderr goes. None: to <see cref="OnOutput"/>, and without that into the result.</summary>
    public Stream? Stderr { get; init; }

    /// <summary>
    /// Called with each piece of output that no stream takes, one at a time, in the order of arrival. The command is not asked
    /// to wait meanwhile: the daemon keeps its output.
    /// </summary>
    public Func<OutputChunk, CancellationToken, ValueTask>? OnOutput { get; init; }

    /// <summary>Called once the task is there: by its handle it can be detached from elsewhere.</summary>
    public Action<HeelerTask>? OnStarted { get; init; }

    /// <summary>What the caller's token means for the command: it is stopped, unless told otherwise.</summary>
    public RunCancellation WhenCancelled { get; init; }

    /// <summary>How it is stopped then. None: gracefully, and to the proof.</summary>
    public CancelOptions? Cancel { get; init; }

    /// <summary>How it is detached then. None: with its own timeout.</summary>
    public DetachOptions? Detach { get; init; }

    /// <summary>
    /// Ends with an error once the daemon has been away for this long. None: it is waited for without end. The command
    /// itself does not end by it.
    /// </summary>
    public TimeSpan? GiveUpAfter { get; init; }
}

/// <summary>What the token of a run means for the command.</summary>
public enum RunCancellation
{
    /// <summary>It is stopped with its whole tree, and then the run throws an <see cref="OperationCanceledException"/>.</summary>
    Cancel,

    /// <summary>It goes on in the background, and the run returns with that release.</summary>
    Detach,
}
