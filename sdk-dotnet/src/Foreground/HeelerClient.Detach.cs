using Heeler.V1;

namespace Heeler.Client;

/// <content>Detach.</content>
public partial class HeelerClient
{
    /// <summary>
    /// Turns a foreground task into a background task: the same processes, all of its output. Every attachment to it ends. A task
    /// that is already in the background, or finished, is not an error: the result says so.
    /// </summary>
    public virtual async Task<DetachResult> DetachAsync(
        string taskId, DetachOptions? options = null, CancellationToken cancellationToken = default) =>
        (await DetachAsync(ById(taskId), options, cancellationToken).ConfigureAwait(false)) is [var result, ..]
            ? result
            : throw new IncompleteAnswerException("results");

    /// <summary>
    /// Detaches the tasks that the filter names by id, else every foreground task that matches. Without a match: an empty list.
    /// </summary>
    public virtual async Task<IReadOnlyList<DetachResult>> DetachAsync(
        TaskFilter filter, DetachOptions? options = null, CancellationToken cancellationToken = default)
    {
        var request = (options ?? new DetachOptions()).ToRequest(filter);
        return (await DetachAsync(request, cancellationToken).ConfigureAwait(false)).Results;
    }

    /// <summary>Detaches the tasks that the request selects.</summary>
    public virtual Task<DetachResponse> DetachAsync(DetachRequest request, CancellationToken cancellationToken = default) =>
        Connection.CallAsync(Retry.Always, (raw, call) => raw.DetachAsync(request, call), cancellationToken);
}
