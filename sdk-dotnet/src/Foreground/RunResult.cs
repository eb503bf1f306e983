using System.Text;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>The end of a run: the command has ended, or continues in the background.</summary>
public sealed class RunResult
{
    /// <summary>A handle on the task, for example to wait for one that was detached.</summary>
    public required HeelerTask Handle { get; init; }

    /// <summary>The task when the run ended.</summary>
    public required BackgroundTask Task { get; init; }

    /// <summary>The reason why the run ended.</summary>
    public required AttachEndReason Reason { get; init; }

    /// <summary>The output to stdout during the run. Empty if it had another destination.</summary>
    public ReadOnlyMemory<byte> StdoutBytes { get; init; }

    /// <summary>The output to stderr during the run. Empty if it had another destination.</summary>
    public ReadOnlyMemory<byte> StderrBytes { get; init; }

    /// <summary>The exit code. Null if the command has not exited, or ended in another way: see the task's outcome.</summary>
    public int? ExitCode => Task.ExitCode;

    /// <summary>Differences between the request and the task.</summary>
    public IReadOnlyList<SpawnNotice> Notices => Handle.Notices;

    /// <summary><see cref="StdoutBytes"/> as text. Invalid UTF-8 is replaced by U+FFFD.</summary>
    public string Stdout => Encoding.UTF8.GetString(StdoutBytes.Span);

    /// <summary><see cref="StderrBytes"/> as text. Invalid UTF-8 is replaced by U+FFFD.</summary>
    public string Stderr => Encoding.UTF8.GetString(StderrBytes.Span);
}
