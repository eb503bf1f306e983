using Heeler.V1;

namespace Heeler.Client;

/// <summary>Options of a run. By default, the result has the output and the token stops the command.</summary>
public sealed class RunOptions
{
    /// <summary>
    /// The source of stdin, which is at its end when this stream is. Null: stdin is at its end from the start, unless the command
    /// has <see cref="SpawnOptions.Input"/> or <see cref="SpawnOptions.Terminal"/>.
    /// </summary>
    public Stream? Stdin { get; init; }

    /// <summary>The destination of stdout. Null: <see cref="OnOutput"/> and, without that, the result.</summary>
    public Stream? Stdout { get; init; }

    /// <summary>The destination of stderr. Null: <see cref="OnOutput"/> and, without that, the result.</summary>
    public Stream? Stderr { get; init; }

    /// <summary>
    /// Called with each chunk of output that no stream takes, one at a time, in the order of arrival. The command does not wait
    /// for it: the daemon keeps the output.
    /// </summary>
    public Func<OutputChunk, CancellationToken, ValueTask>? OnOutput { get; init; }

    /// <summary>Called once the task exists, with its handle: for example to detach it from elsewhere.</summary>
    public Action<HeelerTask>? OnStarted { get; init; }

    /// <summary>The effect of the caller's token on the command: by default, it is stopped.</summary>
    public RunCancellation WhenCancelled { get; init; }

    /// <summary>
    /// The reason that is kept with the task when the token stops or detaches it. It is read when the token is cancelled: a
    /// .NET token carries no cause, so set it before you cancel. Null: the reason of <see cref="Cancel"/> or
    /// <see cref="Detach"/>.
    /// </summary>
    public string? Reason { get; set; }

    /// <summary>The way to stop the command. Null: its own stop policy, and a wait for the proof.</summary>
    public CancelOptions? Cancel { get; init; }

    /// <summary>The way to detach the command. Null: with its own timeout.</summary>
    public DetachOptions? Detach { get; init; }

    /// <summary>
    /// Fails once the daemon has been away for this long. Null: waits without end. The command itself is not affected.
    /// </summary>
    public TimeSpan? GiveUpAfter { get; init; }
}

/// <summary>The effect of a run's token on the command.</summary>
public enum RunCancellation
{
    /// <summary>The whole tree is stopped; then the run throws an <see cref="OperationCanceledException"/>.</summary>
    Cancel,

    /// <summary>The command continues in the background, and the run returns.</summary>
    Detach,
}
