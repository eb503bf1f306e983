using System.Runtime.CompilerServices;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// A handle on one task: an id and a client. It owns nothing, so dropping it has no effect. Every method is a call of the client.
/// </summary>
public sealed class HeelerTask
{
    private readonly HeelerClient _client;

    /// <summary>Creates a handle. It makes no call: the id may be unknown.</summary>
    /// <param name="client">The client to call.</param>
    /// <param name="id">The task's id.</param>
    /// <param name="notices">The notices of the answer to Spawn.</param>
    public HeelerTask(HeelerClient client, string id, IReadOnlyList<SpawnNotice>? notices = null)
    {
        ArgumentNullException.ThrowIfNull(client);
        ArgumentNullException.ThrowIfNull(id);
        (_client, Id, Notices) = (client, id, notices ?? []);
    }

    /// <summary>The task's id.</summary>
    public string Id { get; }

    /// <summary>Differences between the request and the task. Empty unless the handle comes from a Spawn.</summary>
    public IReadOnlyList<SpawnNotice> Notices { get; }

    /// <summary>Returns the present state of the task.</summary>
    public async Task<BackgroundTask> GetAsync(CancellationToken cancellationToken = default)
    {
        var answer = await _client.WaitAllAsync([Id], TimeSpan.Zero, cancellationToken).ConfigureAwait(false);
        return answer.Met.Concat(answer.Pending).FirstOrDefault() ?? throw new IncompleteAnswerException("task");
    }

    /// <inheritdoc cref="HeelerClient.WaitAsync(string, CancellationToken)"/>
    public Task<BackgroundTask> WaitAsync(CancellationToken cancellationToken = default) =>
        _client.WaitAsync(Id, cancellationToken);

    /// <inheritdoc cref="HeelerClient.WaitAsync(string, TimeSpan, CancellationToken)"/>
    public Task<BackgroundTask?> WaitAsync(TimeSpan timeout, CancellationToken cancellationToken = default) =>
        _client.WaitAsync(Id, timeout, cancellationToken);

    /// <inheritdoc cref="HeelerClient.WaitOutOfForegroundAsync"/>
    public Task<BackgroundTask> WaitOutOfForegroundAsync(CancellationToken cancellationToken = default) =>
        _client.WaitOutOfForegroundAsync(Id, cancellationToken);

    /// <inheritdoc cref="HeelerClient.AttachAsync"/>
    public IAsyncEnumerable<AttachItem> AttachAsync(
        AttachOptions? options = null, CancellationToken cancellationToken = default) =>
        _client.AttachAsync(Id, options, cancellationToken);

    /// <inheritdoc cref="HeelerClient.DetachAsync(string, DetachOptions, CancellationToken)"/>
    public Task<DetachResult> DetachAsync(DetachOptions? options = null, CancellationToken cancellationToken = default) =>
        _client.DetachAsync(Id, options, cancellationToken);

    /// <inheritdoc cref="HeelerClient.CancelBackgroundTaskAsync"/>
    public Task<CancelResult> CancelAsync(CancelOptions? options = null, CancellationToken cancellationToken = default) =>
        _client.CancelBackgroundTaskAsync(Id, options, cancellationToken);

    /// <inheritdoc cref="HeelerClient.InspectAsync(string, CancellationToken)"/>
    public Task<InspectResponse> InspectAsync(CancellationToken cancellationToken = default) =>
        _client.InspectAsync(Id, cancellationToken);

    /// <summary>Streams the events of the task, from the first one that is kept to its end.</summary>
    public async IAsyncEnumerable<TaskEvent> EventsAsync(
        [EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        // A watch of an unknown task would wait for ever.
        await GetAsync(cancellationToken).ConfigureAwait(false);
        var options = new WatchOptions { AfterRevision = 0, Filter = new TaskFilter { TaskIds = { Id } } };
        await foreach (var item in _client.WatchEventsAsync(options, cancellationToken).ConfigureAwait(false))
        {
            if (item is not WatchItem.Happened { Event: var happened }) continue;
            yield return happened;
            if (happened.Type == TaskEventType.Ended) yield break;
        }
    }

    /// <inheritdoc cref="HeelerClient.OpenOutput"/>
    public Stream OpenOutput(OutputOptions? options = null) => _client.OpenOutput(Id, options);

    /// <inheritdoc cref="HeelerClient.ReadChunksAsync"/>
    public IAsyncEnumerable<OutputChunk> ReadChunksAsync(
        OutputOptions? options = null, CancellationToken cancellationToken = default) =>
        _client.ReadChunksAsync(Id, options, cancellationToken);

    /// <inheritdoc cref="HeelerClient.ReadLinesAsync"/>
    public IAsyncEnumerable<OutputLine> ReadLinesAsync(
        OutputOptions? options = null, CancellationToken cancellationToken = default) =>
        _client.ReadLinesAsync(Id, options, cancellationToken);

    /// <inheritdoc cref="HeelerClient.RemoveAsync(string, CancellationToken)"/>
    public Task RemoveAsync(CancellationToken cancellationToken = default) => _client.RemoveAsync(Id, cancellationToken);

    /// <summary>Returns the id.</summary>
    public override string ToString() => Id;
}
