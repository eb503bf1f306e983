using System.Runtime.CompilerServices;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// A handle on one session: the tasks of one conversation of a host. It owns nothing, so dropping it has no effect. Every method
/// is a call of the client. Tasks that other programs start in the same session belong to it as well.
/// </summary>
public class HeelerSession
{
    private readonly HeelerClient? _client;

    /// <summary>Creates a handle. It makes no call.</summary>
    /// <param name="client">The client to call.</param>
    /// <param name="id">The session: any text from 1 to 256 bytes.</param>
    public HeelerSession(HeelerClient client, string id)
    {
        ArgumentNullException.ThrowIfNull(client);
        // An empty filter would select the tasks of every session.
        ArgumentException.ThrowIfNullOrEmpty(id);
        (_client, Id) = (client, id);
    }

    /// <summary>Creates a handle without a client, as the base of a fake.</summary>
    protected HeelerSession() => Id = "";

    /// <summary>The id of the session.</summary>
    public virtual string Id { get; }

    private HeelerClient Client => _client
        ?? throw new InvalidOperationException("this handle has no client: override the member that was called");

    /// <inheritdoc cref="HeelerClient.SpawnAsync(SpawnOptions, CancellationToken)"/>
    /// <exception cref="ArgumentException">The options name another session.</exception>
    public virtual Task<HeelerTask> SpawnAsync(SpawnOptions options, CancellationToken cancellationToken = default) =>
        Client.SpawnAsync(Here(options), cancellationToken);

    /// <inheritdoc cref="HeelerClient.RunAsync"/>
    /// <exception cref="ArgumentException">The command names another session.</exception>
    public virtual Task<RunResult> RunAsync(
        SpawnOptions command, RunOptions? options = null, CancellationToken cancellationToken = default) =>
        Client.RunAsync(Here(command), options, cancellationToken);

    /// <inheritdoc cref="HeelerClient.HostAsync(HostOptions, Func{HeelerWork, CancellationToken, Task{WorkResult}}, CancellationToken)"/>
    /// <exception cref="ArgumentException">The options name another session.</exception>
    public virtual Task<BackgroundTask> HostAsync(
        HostOptions options,
        Func<HeelerWork, CancellationToken, Task<WorkResult>> body,
        CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(options);
        var here = options with { SessionId = Only(options.SessionId, nameof(options)), Original = options };
        return Client.HostAsync(here, body, cancellationToken);
    }

    /// <summary>Lists the tasks of the session: live ones first, then newest first.</summary>
    /// <param name="request">The tasks to list. Null: every live task of the session.</param>
    /// <param name="cancellationToken">Ends the listing.</param>
    /// <exception cref="ArgumentException">The request names another session.</exception>
    public virtual IAsyncEnumerable<BackgroundTask> ListAsync(
        ListRequest? request = null, CancellationToken cancellationToken = default)
    {
        var here = request?.Clone() ?? new ListRequest();
        here.Filter = Here(here.Filter);
        return Client.ListAsync(here, cancellationToken);
    }

    /// <summary>
    /// Stops every live task of the session with its whole tree, and returns when all trees are proven empty. Without a live
    /// task: an empty list.
    /// </summary>
    /// <param name="options">The way to stop. Null: each task's own stop policy.</param>
    /// <param name="cancellationToken">Ends the call, not the stop.</param>
    public virtual Task<IReadOnlyList<CancelResult>> CancelAsync(
        CancelOptions? options = null, CancellationToken cancellationToken = default) =>
        CancelAsync(new TaskFilter(), options, cancellationToken);

    /// <summary>Stops the live tasks of the session that match, such as its agents.</summary>
    /// <param name="filter">The tasks to stop. One without a condition matches every task of the session.</param>
    /// <param name="options">The way to stop. Null: each task's own stop policy.</param>
    /// <param name="cancellationToken">Ends the call, not the stop.</param>
    /// <exception cref="ArgumentException">The filter names another session.</exception>
    public virtual Task<IReadOnlyList<CancelResult>> CancelAsync(
        TaskFilter filter, CancelOptions? options = null, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(filter);
        return Client.CancelAsync(Here(filter), options, cancellationToken);
    }

    /// <summary>
    /// Returns when the session has no live task: at once if there is none now. It waits for a daemon that restarts.
    /// </summary>
    /// <param name="cancellationToken">Ends the wait, not the tasks.</param>
    public virtual async Task WaitUntilIdleAsync(CancellationToken cancellationToken = default)
    {
        while (true)
        {
            try
            {
                await IdleAsync(cancellationToken).ConfigureAwait(false);
                return;
            }
            catch (HeelerException error)
                when (error.Is(ErrorReason.RevisionOutOfRange) || error.Is(ErrorReason.EpochMismatch))
            {
                // The daemon was away for so long that it has lost the events since: the live tasks tell the same.
            }
        }
    }

    /// <summary>
    /// Streams the events of the session, across every restart of the daemon. The first item is a bookmark, after the initial
    /// state if the options ask for it: the stream is established.
    /// </summary>
    /// <param name="options">The events to watch. Null: every event of the session from now on.</param>
    /// <param name="cancellationToken">Ends the stream.</param>
    /// <exception cref="ArgumentException">The filter names another session.</exception>
    public virtual IAsyncEnumerable<WatchItem> WatchAsync(
        WatchOptions? options = null, CancellationToken cancellationToken = default)
    {
        options ??= new WatchOptions();
        return Client.WatchEventsAsync(options with { Filter = Here(options.Filter) }, cancellationToken);
    }

    /// <summary>
    /// Returns the live tasks of the session by kind, with their ids, their age and their latest sign of life. Null: there is none.
    /// </summary>
    public virtual async Task<SessionInfo?> GetAsync(CancellationToken cancellationToken = default)
    {
        var request = new ListSessionsRequest { SessionId = Id };
        return (await Client.ListSessionsAsync(request, cancellationToken).ConfigureAwait(false)).Sessions.FirstOrDefault();
    }

    /// <summary>Returns the number of live tasks of the session now, by kind.</summary>
    public virtual async Task<SessionCounts> CountsAsync(CancellationToken cancellationToken = default) =>
        (await GetAsync(cancellationToken).ConfigureAwait(false))?.Activity is { } live ? SessionCounts.Of(live) : default;

    /// <summary>Returns the id.</summary>
    public override string ToString() => Id;

    private async Task IdleAsync(CancellationToken cancellation)
    {
        var options = new WatchOptions { InitialState = true, Types = [TaskEventType.SessionIdle] };
        var live = false;
        await foreach (var item in WatchAsync(options, cancellation).ConfigureAwait(false))
        {
            switch (item)
            {
                case WatchItem.Initial:
                    live = true;
                    break;
                case WatchItem.Reached when !live:
                case WatchItem.Happened { Event.Type: TaskEventType.SessionIdle }:
                    return;
            }
        }
    }

    private SpawnOptions Here(SpawnOptions options, [CallerArgumentExpression(nameof(options))] string name = "")
    {
        ArgumentNullException.ThrowIfNull(options, name);
        return options with { SessionId = Only(options.SessionId, name) };
    }

    private TaskFilter Here(TaskFilter? filter)
    {
        var here = filter?.Clone() ?? new TaskFilter();
        here.SessionId = Only(here.SessionId, nameof(filter));
        return here;
    }

    private string Only(string? named, string name) =>
        string.IsNullOrEmpty(named) || named == Id
            ? Id
            : throw new ArgumentException($"the session is {Id}, and {nameof(SpawnOptions.SessionId)} names {named}", name);
}
