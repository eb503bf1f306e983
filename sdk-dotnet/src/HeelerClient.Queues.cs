using Heeler.V1;

namespace Heeler.Client;

/// <content>The calls about queues.</content>
public sealed partial class HeelerClient
{
    /// <summary>
    /// Changes a queue, which need not have been used before, and gives it as it is then. What runs is not touched.
    /// </summary>
    /// <example><code>await heeler.UpdateQueueAsync("builds", new QueueChange { Slots = 4 });</code></example>
    public async Task<Queue> UpdateQueueAsync(
        string name, QueueChange change, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(change);
        return Present((await UpdateQueueAsync(change.For(name), cancellationToken).ConfigureAwait(false)).Queue, "queue");
    }

    /// <summary>Changes a queue as the request says.</summary>
    public Task<UpdateQueueResponse> UpdateQueueAsync(
        UpdateQueueRequest request, CancellationToken cancellationToken = default) =>
        CallAsync(Repeat.Always, call => Raw.UpdateQueueAsync(request, call), cancellationToken);

    /// <summary>The queues that have live tasks, or settings that differ from the defaults, by name.</summary>
    public async Task<IReadOnlyList<Queue>> ListQueuesAsync(CancellationToken cancellationToken = default)
    {
        var request = new ListQueuesRequest();
        var answer = await CallAsync(Repeat.Always, call => Raw.ListQueuesAsync(request, call), cancellationToken)
            .ConfigureAwait(false);
        return answer.Queues;
    }
}
