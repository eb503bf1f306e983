using Heeler.V1;

namespace Heeler.Client;

/// <content>UpdateQueue and ListQueues.</content>
public partial class HeelerClient
{
    /// <summary>
    /// Changes the settings of a queue and returns the queue. It need not exist yet; running tasks are not affected.
    /// </summary>
    /// <example><code>await heeler.UpdateQueueAsync("builds", new UpdateQueueOptions { Slots = 4 });</code></example>
    public virtual async Task<Queue> UpdateQueueAsync(
        string name, UpdateQueueOptions options, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(options);
        return Present((await UpdateQueueAsync(options.ToRequest(name), cancellationToken).ConfigureAwait(false)).Queue, "queue");
    }

    /// <summary>Changes the queue of the request.</summary>
    public virtual Task<UpdateQueueResponse> UpdateQueueAsync(
        UpdateQueueRequest request, CancellationToken cancellationToken = default) =>
        Connection.CallAsync(Retry.Always, (raw, call) => raw.UpdateQueueAsync(request, call), cancellationToken);

    /// <summary>Returns the queues that have live tasks or settings other than the defaults, by name.</summary>
    public virtual async Task<IReadOnlyList<Queue>> ListQueuesAsync(CancellationToken cancellationToken = default) =>
        (await ListQueuesAsync(new ListQueuesRequest(), cancellationToken).ConfigureAwait(false)).Queues;

    /// <summary>Returns the queues that the request asks for.</summary>
    public virtual Task<ListQueuesResponse> ListQueuesAsync(
        ListQueuesRequest request, CancellationToken cancellationToken = default) =>
        Connection.CallAsync(Retry.Always, (raw, call) => raw.ListQueuesAsync(request, call), cancellationToken);
}
