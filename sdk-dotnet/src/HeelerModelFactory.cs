using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// Makes the answers of a daemon, for tests that replace the client. The handles, <see cref="HeelerTask"/> and
/// <see cref="HeelerSession"/>, have public constructors.
/// </summary>
public static class HeelerModelFactory
{
    /// <summary>Makes a task. A task with an exit code is finished.</summary>
    /// <param name="id">The id.</param>
    /// <param name="state">The state. Null: completed or failed by the exit code; without one, running.</param>
    /// <param name="exitCode">The exit code of the leader. Null: it has not exited.</param>
    /// <param name="spec">The specification. Null: an empty one.</param>
    /// <param name="stop">The record of its stop. Null: it was not stopped.</param>
    public static BackgroundTask BackgroundTask(
        string id = "shell-aaaaaaaaaa",
        TaskState? state = null,
        int? exitCode = null,
        TaskSpec? spec = null,
        StopRecord? stop = null)
    {
        var implied = exitCode switch { null => TaskState.Running, 0 => TaskState.Completed, _ => TaskState.Failed };
        return new BackgroundTask
        {
            Id = id,
            State = state ?? implied,
            Spec = spec ?? new TaskSpec(),
            Stop = stop,
            Outcome = exitCode is { } code ? new Outcome { ExitCode = code } : null,
        };
    }

    /// <summary>Makes the result of a cancel: a proof, or the processes that have outlived the kill.</summary>
    /// <param name="id">The id of the task.</param>
    /// <param name="outcome">The effect of the cancel.</param>
    /// <param name="survivors">The processes that still exist. None: the tree is proven empty.</param>
    public static CancelResult CancelResult(
        string id = "shell-aaaaaaaaaa",
        CancelOutcome outcome = CancelOutcome.Requested,
        params IReadOnlyList<ProcessInfo> survivors)
    {
        var proof = survivors is { Count: > 0 }
            ? new Proof { Survivors = new Survivors { Processes = { survivors } } }
            : new Proof { Proven = ProofMethod.CgroupEmpty };
        var state = survivors is { Count: > 0 } ? TaskState.Stopping : TaskState.Cancelled;
        return new CancelResult { Outcome = outcome, Task = BackgroundTask(id, state, stop: new StopRecord { Proof = proof }) };
    }

    /// <summary>Makes the result of a run.</summary>
    /// <param name="client">The client of the result's handle, usually the fake.</param>
    /// <param name="task">The task when the run ended. Null: one that exited with 0.</param>
    /// <param name="reason">The reason why the run ended.</param>
    /// <param name="stdout">The output to stdout.</param>
    /// <param name="stderr">The output to stderr.</param>
    public static RunResult RunResult(
        HeelerClient client,
        BackgroundTask? task = null,
        AttachEndReason reason = AttachEndReason.Finished,
        string stdout = "",
        string stderr = "")
    {
        task ??= BackgroundTask(exitCode: 0);
        return new RunResult
        {
            Handle = new HeelerTask(client, task.Id),
            Task = task,
            Reason = reason,
            StdoutBytes = System.Text.Encoding.UTF8.GetBytes(stdout),
            StderrBytes = System.Text.Encoding.UTF8.GetBytes(stderr),
        };
    }

    /// <summary>Makes a refusal of the daemon.</summary>
    /// <param name="reason">The reason.</param>
    /// <param name="message">The message.</param>
    /// <param name="statusCode">The gRPC status code.</param>
    /// <param name="metadata">The values of the reason.</param>
    public static HeelerRefusedException Refusal(
        ErrorReason reason,
        string message = "refused",
        StatusCode statusCode = StatusCode.FailedPrecondition,
        IReadOnlyDictionary<string, string>? metadata = null) =>
        new(statusCode, reason, message) { Metadata = metadata ?? new Dictionary<string, string>() };
}
