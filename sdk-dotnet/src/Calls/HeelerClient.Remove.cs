using Heeler.V1;

namespace Heeler.Client;

/// <content>Remove.</content>
public partial class HeelerClient
{
    /// <summary>Removes a finished task and deletes its output.</summary>
    public virtual Task RemoveAsync(string taskId, CancellationToken cancellationToken = default) =>
        RemoveAsync(ById(taskId), cancellationToken);

    /// <summary>
    /// Removes tasks, deletes their output, and returns their ids. Tasks named by id are removed together: if one is not finished
    /// or not known, none is removed. Without ids, every finished task that matches is removed; an empty filter matches all.
    /// </summary>
    public virtual async Task<IReadOnlyList<string>> RemoveAsync(
        TaskFilter filter, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(filter);
        var request = new RemoveRequest { Filter = filter };
        return (await RemoveAsync(request, cancellationToken).ConfigureAwait(false)).RemovedTaskIds;
    }

    /// <summary>Removes the tasks that the request selects.</summary>
    public virtual Task<RemoveResponse> RemoveAsync(RemoveRequest request, CancellationToken cancellationToken = default) =>
        Connection.CallAsync(Retry.IfUnprocessed, (raw, call) => raw.RemoveAsync(request, call), cancellationToken);
}
