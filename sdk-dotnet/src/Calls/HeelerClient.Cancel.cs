using Heeler.V1;

namespace Heeler.Client;

/// <content>Cancel.</content>
public partial class HeelerClient
{
    /// <summary>
    /// Stops a task and its whole tree, and returns when the tree is proven empty. If a kill has lasted 10 s, it returns the
    /// survivors in <see cref="BackgroundTask.Survivors"/>, and the kill goes on. A finished task is not an error: the result
    /// says so.
    /// </summary>
    /// <param name="taskId">The task.</param>
    /// <param name="options">The way to stop. Null: the task's own stop policy.</param>
    /// <param name="cancellationToken">Ends the call, not the stop.</param>
    public virtual async Task<CancelResult> CancelBackgroundTaskAsync(
        string taskId, CancelOptions? options = null, CancellationToken cancellationToken = default)
    {
        var request = (options ?? new CancelOptions()).ToRequest(ById(taskId));
        return CancelOptions.ResultOf(taskId, await CancelAsync(request, cancellationToken).ConfigureAwait(false));
    }

    /// <summary>Stops a task and its whole tree by its own stop policy, and returns when the tree is proven empty.</summary>
    /// <param name="taskId">The task.</param>
    /// <param name="cancellationToken">Ends the call, not the stop.</param>
    public virtual Task<CancelResult> CancelBackgroundTaskAsync(string taskId, CancellationToken cancellationToken) =>
        CancelBackgroundTaskAsync(taskId, null, cancellationToken);

    /// <summary>
    /// Stops the tasks that the filter names by id, else every live task that matches. Without a match: an empty list. An empty
    /// filter is refused.
    /// </summary>
    public virtual async Task<IReadOnlyList<CancelResult>> CancelAsync(
        TaskFilter filter, CancelOptions? options = null, CancellationToken cancellationToken = default)
    {
        var request = (options ?? new CancelOptions()).ToRequest(filter);
        return (await CancelAsync(request, cancellationToken).ConfigureAwait(false)).Results;
    }

    /// <summary>Stops the tasks that the request selects.</summary>
    public virtual Task<CancelResponse> CancelAsync(CancelRequest request, CancellationToken cancellationToken = default) =>
        Connection.CallAsync(Retry.Always, (raw, call) => raw.CancelAsync(request, call), cancellationToken);
}
