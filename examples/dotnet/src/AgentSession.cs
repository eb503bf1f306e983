using Heeler.Client;
using Heeler.V1;

namespace Heeler.AgentSessions;

/// <summary>
/// A conversation of an agent host, as agent SDKs have it, with its background on Heeler: its subagents and shells outlive a
/// crash of the host, a cancelled one is gone with everything it started, and the host is told when all of them are done.
/// </summary>
/// <remarks>
/// It owns a watch of the session's events and decides nothing by itself. Whoever starts a task in the same session, from
/// wherever, is counted. Handlers are called one at a time by the watch, or by the call that brought the news.
/// </remarks>
public sealed class AgentSession : IAsyncDisposable
{
    private readonly HeelerClient _heeler;
    private readonly CancellationTokenSource _closing = new();
    private readonly TaskCompletionSource _ready = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly Lock _lock = new();
    private readonly Quiet _quiet = new();
    private TaskCompletionSource _idle = Idling();
    private Task _watching = Task.CompletedTask;

    private AgentSession(HeelerClient heeler, string sessionId) => (_heeler, SessionId) = (heeler, sessionId);

    /// <summary>The number of live background tasks has changed.</summary>
    public event EventHandler<BackgroundTasksChangedEventArgs>? BackgroundTasksChanged;

    /// <summary>Everything in the background is done: told once each time, after the last end, and never before.</summary>
    public event EventHandler? Idle;

    /// <summary>The session's name in Heeler.</summary>
    public string SessionId { get; }

    /// <summary>How many background tasks are live, as far as this host has been told.</summary>
    public BackgroundTaskCounts BackgroundTasks
    {
        get
        {
            lock (_lock) return _quiet.Counts;
        }
    }

    /// <summary>Opens a session: a new one, or one whose tasks an earlier host has left running.</summary>
    public static async Task<AgentSession> OpenAsync(
        HeelerClient heeler, string sessionId, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(heeler);
        var session = new AgentSession(heeler, sessionId);
        session._watching = session.WatchAsync();
        try
        {
            await session._ready.Task.WaitAsync(cancellationToken).ConfigureAwait(false);
            return session;
        }
        catch
        {
            await session.DisposeAsync().ConfigureAwait(false);
            throw;
        }
    }

    /// <summary>Starts a subagent in the background, and gives its id.</summary>
    public Task<string> StartAgentAsync(
        IReadOnlyList<string> command, string? parentId = null, CancellationToken cancellationToken = default) =>
        StartAsync(
            new SpawnOptions { Argv = command, Kind = TaskKind.Agent, SessionId = SessionId, ParentId = parentId },
            cancellationToken);

    /// <summary>Starts a shell in the background, and gives its id.</summary>
    public Task<string> StartShellAsync(
        string script, string? parentId = null, CancellationToken cancellationToken = default) =>
        StartAsync(new SpawnOptions { Shell = script, SessionId = SessionId, ParentId = parentId }, cancellationToken);

    /// <summary>Stops a background task, what it has spawned, and every process of them.</summary>
    /// <param name="agentId">Which one.</param>
    /// <param name="cancellationToken">Ends the call, and not the stopping.</param>
    /// <returns>Whether it was live. One that is over, or that nobody knows, is no error.</returns>
    public async Task<bool> CancelBackgroundTaskAsync(string agentId, CancellationToken cancellationToken = default)
    {
        var options = new CancelOptions { Cascade = true, Actor = SessionId };
        try
        {
            var result = await _heeler.CancelBackgroundTaskAsync(agentId, options, cancellationToken).ConfigureAwait(false);
            return result.Outcome != CancelOutcome.AlreadyFinished;
        }
        catch (HeelerException error) when (error.Is(ErrorReason.TaskNotFound))
        {
            return false;
        }
    }

    /// <summary>Returns when nothing is left in the background: at once if there is nothing.</summary>
    public Task WaitUntilIdleAsync(CancellationToken cancellationToken = default)
    {
        lock (_lock) return _quiet.IsIdle ? Task.CompletedTask : _idle.Task.WaitAsync(cancellationToken);
    }

    /// <summary>Leaves the session. Its tasks run on, and the next host finds them.</summary>
    public async ValueTask DisposeAsync()
    {
        await _closing.CancelAsync().ConfigureAwait(false);
        await _watching.ConfigureAwait(false);
        _closing.Dispose();
    }

    private static TaskCompletionSource Idling() => new(TaskCreationOptions.RunContinuationsAsynchronously);

    private async Task<string> StartAsync(SpawnOptions options, CancellationToken cancellationToken)
    {
        Change(quiet => quiet.Starting());
        SpawnResponse answer;
        try
        {
            answer = await _heeler.SpawnAsync(options.ToRequest(), cancellationToken).ConfigureAwait(false);
        }
        catch
        {
            Change(quiet => quiet.NotStarted());
            throw;
        }
        Change(quiet => quiet.Started(answer.Revision));
        return answer.Task.Id;
    }

    /// <summary>Goes on across every restart of the daemon, until the session is left.</summary>
    private async Task WatchAsync()
    {
        var options = new WatchOptions { InitialState = true, Filter = new TaskFilter { SessionId = SessionId } };
        try
        {
            await foreach (var item in _heeler.WatchEventsAsync(options, _closing.Token).ConfigureAwait(false)) Take(item);
        }
        catch (Exception error)
        {
            // Also what a handler has thrown: whoever waits would wait for ever.
            _ready.TrySetException(error);
            lock (_lock) _idle.TrySetException(error);
        }
    }

    private void Take(WatchItem item)
    {
        switch (item)
        {
            case WatchItem.Initial(var task):
                Change(quiet => quiet.Found(task));
                break;
            case WatchItem.Happened(var happened):
                Change(quiet => quiet.Happened(happened));
                break;
            case WatchItem.Reached(var bookmark):
                Change(quiet => quiet.Reached(bookmark.Revision));
                _ready.TrySetResult();
                break;
        }
    }

    /// <summary>Takes news in, then tells of them, with nothing locked.</summary>
    private void Change(Action<Quiet> news)
    {
        BackgroundTaskCounts before, after;
        TaskCompletionSource? idle = null;
        lock (_lock)
        {
            before = _quiet.Counts;
            news(_quiet);
            after = _quiet.Counts;
            if (_quiet.BecameIdle()) (idle, _idle) = (_idle, Idling());
        }
        if (before != after) BackgroundTasksChanged?.Invoke(this, new BackgroundTasksChangedEventArgs(after));
        if (idle is null) return;
        Idle?.Invoke(this, EventArgs.Empty);
        idle.TrySetResult();
    }
}
