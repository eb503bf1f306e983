using System.Text;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>How a run ended: the command is over, or goes on in the background.</summary>
public sealed class RunResult
{
    internal RunResult(HeelerTask handle, AttachItem.Released released, RunOutput output) =>
        (Handle, Task, Reason, StdoutBytes, StderrBytes) =
        (handle, released.Task, released.Reason, output.CollectedStdout, output.CollectedStderr);

    /// <summary>A handle on the task, e.g. to wait for one that was detached.</summary>
    public HeelerTask Handle { get; }

    /// <summary>The task, as it was at the release.</summary>
    public BackgroundTask Task { get; }

    /// <summary>Why the caller was released.</summary>
    public ReleaseReason Reason { get; }

    /// <summary>What the daemon did differently from what was asked for.</summary>
    public IReadOnlyList<SpawnNotice> Notices => Handle.Notices;

    /// <summary>With what its first process exited. None: it did not exit, or not by itself: see the task's outcome.</summary>
    public int? ExitCode => Task.Outcome is { ResultCase: Outcome.ResultOneofCase.ExitCode } outcome ? outcome.ExitCode : null;

    /// <summary>What it wrote to stdout before the release. Empty if that went elsewhere.</summary>
    public ReadOnlyMemory<byte> StdoutBytes { get; }

    /// <summary>What it wrote to stderr before the release. Empty if that went elsewhere.</summary>
    public ReadOnlyMemory<byte> StderrBytes { get; }

    /// <summary>The same as text. Bytes that are no UTF-8 are replaced by U+FFFD.</summary>
    public string Stdout => Encoding.UTF8.GetString(StdoutBytes.Span);

    /// <summary>The same as text. Bytes that are no UTF-8 are replaced by U+FFFD.</summary>
    public string Stderr => Encoding.UTF8.GetString(StderrBytes.Span);
}
