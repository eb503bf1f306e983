using System.Diagnostics;
using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client;

/// <content>Wait. Ending a wait never ends a task.</content>
public partial class HeelerClient
{
    /// <summary>Waits until a task is finished and returns its last state.</summary>
    public virtual async Task<BackgroundTask> WaitAsync(string taskId, CancellationToken cancellationToken = default) =>
        FirstMet(await WaitAllAsync([taskId], null, cancellationToken).ConfigureAwait(false));

    /// <summary>Waits until a task is finished and returns its last state, or null if the timeout comes first.</summary>
    public virtual async Task<BackgroundTask?> WaitAsync(
        string taskId, TimeSpan timeout, CancellationToken cancellationToken = default) =>
        (await WaitAllAsync([taskId], timeout, cancellationToken).ConfigureAwait(false)).Met.FirstOrDefault();

    /// <summary>Waits until all of these tasks are finished, or until the timeout.</summary>
    public virtual Task<WaitResponse> WaitAllAsync(
        IEnumerable<string> taskIds, TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
        WaitAsync(new WaitRequest { Filter = ByIds(taskIds), Timeout = Time.ToLimit(timeout) }, cancellationToken);

    /// <summary>Waits until one of these tasks is finished, or until the timeout.</summary>
    public virtual Task<WaitResponse> WaitAnyAsync(
        IEnumerable<string> taskIds, TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
        WaitAsync(new WaitRequest { Filter = ByIds(taskIds), Count = 1, Timeout = Time.ToLimit(timeout) }, cancellationToken);

    /// <summary>
    /// Waits until every task of a session is finished, including tasks that start during the wait, or until the timeout.
    /// </summary>
    public virtual Task<WaitResponse> WaitSessionAsync(
        string sessionId, TimeSpan? timeout = null, CancellationToken cancellationToken = default)
    {
        var filter = new TaskFilter { SessionId = sessionId };
        return WaitAsync(new WaitRequest { Filter = filter, Timeout = Time.ToLimit(timeout) }, cancellationToken);
    }

    /// <summary>Waits until a task is in the background or finished.</summary>
    public virtual async Task<BackgroundTask> WaitOutOfForegroundAsync(
        string taskId, CancellationToken cancellationToken = default)
    {
        var request = new WaitRequest { Filter = ById(taskId), Until = WaitCondition.OutOfForeground };
        return FirstMet(await WaitAsync(request, cancellationToken).ConfigureAwait(false));
    }

    /// <summary>
    /// Waits for a line of output that matches, which may be there already, and returns it. Null: the task ended without such a
    /// line, or the timeout came first.
    /// </summary>
    /// <param name="taskId">The task.</param>
    /// <param name="regex">The expression, in the syntax of the Rust crate <c>regex</c>.</param>
    /// <param name="timeout">Maximum time to wait. Null: no limit.</param>
    /// <param name="cancellationToken">Ends the wait, not the task.</param>
    public virtual async Task<MatchedLine?> WaitForLineAsync(
        string taskId, string regex, TimeSpan? timeout = null, CancellationToken cancellationToken = default)
    {
        var request = new WaitRequest
        {
            Filter = ById(taskId),
            Until = WaitCondition.Matched,
            Match = new OutputSearch { Regex = regex },
            Timeout = Time.ToLimit(timeout),
        };
        return (await WaitAsync(request, cancellationToken).ConfigureAwait(false)).Matches.FirstOrDefault()?.Line;
    }

    /// <summary>Waits for the tasks that the request selects. The timeout counts across restarts of the daemon.</summary>
    public virtual Task<WaitResponse> WaitAsync(WaitRequest request, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        var begun = Stopwatch.GetTimestamp();
        return Connection.CallAsync(Retry.Always, Attempt, cancellationToken);

        AsyncUnaryCall<WaitResponse> Attempt(BackgroundTasks.BackgroundTasksClient raw, CallOptions call)
        {
            var rest = request.Clone();
            if (rest.Timeout is not null) rest.Timeout = Time.Less(rest.Timeout, Stopwatch.GetElapsedTime(begun));
            return raw.WaitAsync(rest, call);
        }
    }

    private static TaskFilter ByIds(IEnumerable<string> taskIds) => new() { TaskIds = { taskIds } };

    private static BackgroundTask FirstMet(WaitResponse answer) =>
        answer.Met is [var task, ..] ? task : throw new IncompleteAnswerException("met");
}
