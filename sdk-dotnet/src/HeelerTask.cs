using System.Runtime.CompilerServices;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>A handle on one task: its id and a client. It owns nothing: losing it does nothing.</summary>
public sealed class HeelerTask
{
    private readonly HeelerClient _client;

    internal HeelerTask(HeelerClient client, string id, IReadOnlyList<SpawnNotice> notices) =>
        (_client, Id, Notices) = (client, id, notices);

    /// <summary>Its id.</summary>
    public string Id { get; }

    /// <summary>
    /// What the daemon did differently from what was asked for when it was spawned. Empty where this handle did not come from
    /// the spawning.
    /// </summary>
    public IReadOnlyList<SpawnNotice> Notices { get; }

    /// <summary>Its state now.</summary>
    public async Task<BackgroundTask> GetAsync(CancellationToken cancellationToken = default)
    {
        var answer = await _client.WaitAllAsync([Id], TimeSpan.Zero, cancellationToken).ConfigureAwait(false);
        return answer.Met.Concat(answer.Pending).FirstOrDefault() ?? throw new IncompleteAnswerException("task");
    }

    /// <summary>Waits until it is over, for as long as it takes, and gives its last state.</summary>
    public Task<BackgroundTask> WaitAsync(CancellationToken cancellationToken = default) =>
        _client.WaitAsync(Id, cancellationToken);

    /// <summary>Waits until it is over, or this long; none: it is not over yet.</summary>
    public Task<BackgroundTask?> WaitAsync(TimeSpan timeout, CancellationToken cancellationToken = default) =>
        _client.WaitAsync(Id, timeout, cancellationToken);

    /// <summary>Waits until it holds nobody: it is in the background, or over.</summary>
    public Task<BackgroundTask> WaitReleasedAsync(CancellationToken cancellationToken = default) =>
        _client.WaitReleasedAsync(Id, cancellationToken);

    /// <summary>Holds it, if it is in the foreground, and gives its output and then its release.</summary>
    public IAsyncEnumerable<AttachItem> AttachAsync(
        AttachOptions? options = null, CancellationToken cancellationToken = default) =>
        _client.AttachAsync(Id, options, cancellationToken);

    /// <summary>Puts it into the background. One that is there already, or over, is no error: the result says so.</summary>
    public Task<DetachResult> DetachAsync(DetachOptions? options = null, CancellationToken cancellationToken = default) =>
        _client.DetachAsync(Id, options, cancellationToken);

    /// <summary>Stops it and its whole tree. One that is over already is no error: the result says so.</summary>
    public Task<CancelResult> CancelAsync(CancelOptions? options = null, CancellationToken cancellationToken = default) =>
        _client.CancelBackgroundTaskAsync(Id, options, cancellationToken);

    /// <summary>Shows it whole, with its processes, its resource use and the end of its output.</summary>
    public Task<InspectResponse> InspectAsync(CancellationToken cancellationToken = default) =>
        _client.InspectAsync(Id, cancellationToken);

    /// <summary>Its events, from the first that there is record of to its end.</summary>
    public async IAsyncEnumerable<TaskEvent> EventsAsync(
        [EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        // A watch of an unknown task would wait for ever for it to appear.
        await GetAsync(cancellationToken).ConfigureAwait(false);
        var options = new WatchOptions { AfterRevision = 0, Filter = new TaskFilter { TaskIds = { Id } } };
        await foreach (var item in _client.WatchEventsAsync(options, cancellationToken).ConfigureAwait(false))
        {
            if (item is not WatchItem.Happened { Event: var happened }) continue;
            yield return happened;
            if (happened.Type == TaskEventType.Ended) yield break;
        }
    }

    /// <summary>Its output as a stream of bytes, followed to its end.</summary>
    public Stream OpenOutput(OutputOptions? options = null) => _client.OpenOutput(Id, options);

    /// <summary>Its output in the pieces in which it arrived, followed to its end.</summary>
    public IAsyncEnumerable<OutputChunk> ReadChunksAsync(
        OutputOptions? options = null, CancellationToken cancellationToken = default) =>
        _client.ReadChunksAsync(Id, options, cancellationToken);

    /// <summary>Its output line by line, followed to its end.</summary>
    public IAsyncEnumerable<OutputLine> ReadLinesAsync(
        OutputOptions? options = null, CancellationToken cancellationToken = default) =>
        _client.ReadLinesAsync(Id, options, cancellationToken);

    /// <summary>Forgets it and its output. It must be over.</summary>
    public Task RemoveAsync(CancellationToken cancellationToken = default) =>
        _client.RemoveAsync(Id, cancellationToken);

    /// <summary>Its id.</summary>
    public override string ToString() => Id;
}
