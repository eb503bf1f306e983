using System.Runtime.CompilerServices;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// A handle on one task: an id and a client. It owns nothing, so dropping it has no effect. Every method is a call of the client.
/// </summary>
public class HeelerTask
{
    private readonly HeelerClient? _client;

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

    /// <summary>Creates a handle without a client, as the base of a fake.</summary>
    protected HeelerTask() => (Id, Notices) = ("", []);

    /// <summary>The task's id.</summary>
    public virtual string Id { get; }

    /// <summary>Differences between the request and the task. Empty unless the handle comes from a Spawn.</summary>
    public virtual IReadOnlyList<SpawnNotice> Notices { get; }

    private HeelerClient Client => _client
        ?? throw new InvalidOperationException("this handle has no client: override the member that was called");

    /// <summary>Returns the present state of the task.</summary>
    public virtual async Task<BackgroundTask> GetAsync(CancellationToken cancellationToken = default)
    {
        var answer = await Client.WaitAllAsync([Id], TimeSpan.Zero, cancellationToken).ConfigureAwait(false);
        return answer.Met.Concat(answer.Pending).FirstOrDefault() ?? throw new IncompleteAnswerException("task");
    }

    /// <inheritdoc cref="HeelerClient.WaitAsync(string, CancellationToken)"/>
    public virtual Task<BackgroundTask> WaitAsync(CancellationToken cancellationToken = default) =>
        Client.WaitAsync(Id, cancellationToken);

    /// <inheritdoc cref="HeelerClient.WaitAsync(string, TimeSpan, CancellationToken)"/>
    public virtual Task<BackgroundTask?> WaitAsync(TimeSpan timeout, CancellationToken cancellationToken = default) =>
        Client.WaitAsync(Id, timeout, cancellationToken);

    /// <inheritdoc cref="HeelerClient.WaitOutOfForegroundAsync"/>
    public virtual Task<BackgroundTask> WaitOutOfForegroundAsync(CancellationToken cancellationToken = default) =>
        Client.WaitOutOfForegroundAsync(Id, cancellationToken);

    /// <inheritdoc cref="HeelerClient.WaitForLineAsync"/>
    public virtual Task<MatchedLine?> WaitForLineAsync(
        string regex, TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
        Client.WaitForLineAsync(Id, regex, timeout, cancellationToken);

    /// <inheritdoc cref="HeelerClient.UpdateTaskAsync(string, UpdateTaskOptions, CancellationToken)"/>
    public virtual Task<BackgroundTask> UpdateAsync(UpdateTaskOptions options, CancellationToken cancellationToken = default) =>
        Client.UpdateTaskAsync(Id, options, cancellationToken);

    /// <inheritdoc cref="HeelerClient.AttachAsync"/>
    public virtual IAsyncEnumerable<AttachItem> AttachAsync(
        AttachOptions? options = null, CancellationToken cancellationToken = default) =>
        Client.AttachAsync(Id, options, cancellationToken);

    /// <inheritdoc cref="HeelerClient.DetachAsync(string, DetachOptions, CancellationToken)"/>
    public virtual Task<DetachResult> DetachAsync(DetachOptions? options = null, CancellationToken cancellationToken = default) =>
        Client.DetachAsync(Id, options, cancellationToken);

    /// <inheritdoc cref="HeelerClient.CancelBackgroundTaskAsync(string, CancellationToken)"/>
    public virtual Task<CancelResult> CancelAsync(CancellationToken cancellationToken) =>
        Client.CancelBackgroundTaskAsync(Id, cancellationToken);

    /// <inheritdoc cref="HeelerClient.CancelBackgroundTaskAsync(string, CancelOptions, CancellationToken)"/>
    public virtual Task<CancelResult> CancelAsync(CancelOptions? options = null, CancellationToken cancellationToken = default) =>
        Client.CancelBackgroundTaskAsync(Id, options, cancellationToken);

    /// <inheritdoc cref="HeelerClient.InspectAsync(string, CancellationToken)"/>
    public virtual Task<InspectResponse> InspectAsync(CancellationToken cancellationToken = default) =>
        Client.InspectAsync(Id, cancellationToken);

    /// <summary>Streams the events of the task, from the first one that is kept to its end.</summary>
    public virtual async IAsyncEnumerable<TaskEvent> EventsAsync(
        [EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        // A watch of an unknown task would wait for ever.
        await GetAsync(cancellationToken).ConfigureAwait(false);
        var options = new WatchOptions { AfterRevision = 0, Filter = new TaskFilter { TaskIds = { Id } } };
        await foreach (var item in Client.WatchEventsAsync(options, cancellationToken).ConfigureAwait(false))
        {
            if (item is not WatchItem.Happened { Event: var happened }) continue;
            yield return happened;
            if (happened.Type == TaskEventType.Ended) yield break;
        }
    }

    /// <inheritdoc cref="HeelerClient.OpenOutput"/>
    public virtual Stream OpenOutput(OutputOptions? options = null) => Client.OpenOutput(Id, options);

    /// <inheritdoc cref="HeelerClient.ReadChunksAsync"/>
    public virtual IAsyncEnumerable<OutputChunk> ReadChunksAsync(
        OutputOptions? options = null, CancellationToken cancellationToken = default) =>
        Client.ReadChunksAsync(Id, options, cancellationToken);

    /// <inheritdoc cref="HeelerClient.ReadLinesAsync"/>
    public virtual IAsyncEnumerable<OutputLine> ReadLinesAsync(
        OutputOptions? options = null, CancellationToken cancellationToken = default) =>
        Client.ReadLinesAsync(Id, options, cancellationToken);

    /// <inheritdoc cref="HeelerClient.OpenInput"/>
    public virtual Stream OpenInput(OpenInputOptions? options = null) => Client.OpenInput(Id, options);

    /// <inheritdoc cref="HeelerClient.ResizeTerminalAsync(string, uint, uint, CancellationToken)"/>
    public virtual Task ResizeTerminalAsync(uint columns, uint rows, CancellationToken cancellationToken = default) =>
        Client.ResizeTerminalAsync(Id, columns, rows, cancellationToken);

    /// <inheritdoc cref="HeelerClient.RemoveAsync(string, CancellationToken)"/>
    public virtual Task RemoveAsync(CancellationToken cancellationToken = default) => Client.RemoveAsync(Id, cancellationToken);

    /// <summary>Returns the id.</summary>
    public override string ToString() => Id;
}
