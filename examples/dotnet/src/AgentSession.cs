using Heeler.Client;
using Heeler.V1;

namespace Heeler.AgentSessions;

/// <summary>
/// A conversation of an agent host, with its background tasks on Heeler: subagents and shells outlive a crash of the host, a
/// cancelled one is gone with everything it started, and an event tells the host when all of them have finished.
/// </summary>
/// <remarks>
/// It owns a watch of the session's events. Tasks that another program starts in the same session count as well. Handlers are
/// called one at a time, by the watch or by the call that caused the change.
/// </remarks>
public sealed class AgentSession : IAsyncDisposable
{
    private readonly HeelerClient _heeler;
    private readonly CancellationTokenSource _closing = new();
    private readonly TaskCompletionSource _ready = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly Lock _lock = new();
    private readonly SessionActivityTracker _activity = new();
    private TaskCompletionSource _idle = NewSource();
    private Task _watching = Task.CompletedTask;

    private AgentSession(HeelerClient heeler, string sessionId) => (_heeler, SessionId) = (heeler, sessionId);

    /// <summary>Raised when the number of live background tasks has changed.</summary>
    public event EventHandler<BackgroundTasksChangedEventArgs>? BackgroundTasksChanged;

    /// <summary>Raised once when the last live task has ended.</summary>
    public event EventHandler? Idle;

    /// <summary>The id of the session in Heeler.</summary>
    public string SessionId { get; }

    /// <summary>The number of live background tasks, as far as the watch has come.</summary>
    public BackgroundTaskCounts BackgroundTasks
    {
        get
        {
            lock (_lock) return _activity.Counts;
        }
    }

    /// <summary>Opens a session: a new one, or one whose tasks run on from an earlier host.</summary>
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

    /// <summary>Starts a subagent in the background and returns its id.</summary>
    public Task<string> StartAgentAsync(
        IReadOnlyList<string> command, string? parentId = null, CancellationToken cancellationToken = default) =>
        StartAsync(
            new SpawnOptions { Argv = command, Kind = TaskKind.Agent, SessionId = SessionId, ParentId = parentId },
            cancellationToken);

    /// <summary>Starts a shell in the background and returns its id.</summary>
    public Task<string> StartShellAsync(
        string script, string? parentId = null, CancellationToken cancellationToken = default) =>
        StartAsync(new SpawnOptions { Shell = script, SessionId = SessionId, ParentId = parentId }, cancellationToken);

    /// <summary>Stops a background task and the tasks that it spawned, with all their processes.</summary>
    /// <param name="agentId">The task.</param>
    /// <param name="cancellationToken">Ends the call, not the stop.</param>
    /// <returns>True if the task was live. A finished or unknown task is not an error.</returns>
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

    /// <summary>Returns when the session has no live task: at once if there is none now.</summary>
    public Task WaitUntilIdleAsync(CancellationToken cancellationToken = default)
    {
        lock (_lock) return _activity.IsIdle ? Task.CompletedTask : _idle.Task.WaitAsync(cancellationToken);
    }

    /// <summary>Closes the session. Its tasks run on, and the next host finds them.</summary>
    public async ValueTask DisposeAsync()
    {
        await _closing.CancelAsync().ConfigureAwait(false);
        await _watching.ConfigureAwait(false);
        _closing.Dispose();
    }

    private static TaskCompletionSource NewSource() => new(TaskCreationOptions.RunContinuationsAsynchronously);

    private async Task<string> StartAsync(SpawnOptions options, CancellationToken cancellationToken)
    {
        Change(activity => activity.Starting());
        SpawnResponse answer;
        try
        {
            answer = await _heeler.SpawnAsync(options.ToRequest(), cancellationToken).ConfigureAwait(false);
        }
        catch
        {
            Change(activity => activity.NotStarted());
            throw;
        }
        Change(activity => activity.Started(answer.Task.Revision));
        return answer.Task.Id;
    }

    /// <summary>Watches across every restart of the daemon, until the session is closed.</summary>
    private async Task WatchAsync()
    {
        var options = new WatchOptions { InitialState = true, Filter = new TaskFilter { SessionId = SessionId } };
        try
        {
            await foreach (var item in _heeler.WatchEventsAsync(options, _closing.Token).ConfigureAwait(false)) Take(item);
        }
        catch (Exception error)
        {
            // A handler may have thrown, too: without the error a waiting caller would wait for ever.
            _ready.TrySetException(error);
            lock (_lock) _idle.TrySetException(error);
        }
    }

    private void Take(WatchItem item)
    {
        switch (item)
        {
            case WatchItem.Initial(var task):
                Change(activity => activity.Found(task));
                break;
            case WatchItem.Happened(var happened):
                Change(activity => activity.Happened(happened));
                break;
            case WatchItem.Reached(var bookmark):
                Change(activity => activity.Reached(bookmark.Revision));
                _ready.TrySetResult();
                break;
        }
    }

    /// <summary>Applies a change, then raises the events outside the lock.</summary>
    private void Change(Action<SessionActivityTracker> change)
    {
        BackgroundTaskCounts before, after;
        TaskCompletionSource? idle = null;
        lock (_lock)
        {
            before = _activity.Counts;
            change(_activity);
            after = _activity.Counts;
            if (_activity.BecameIdle()) (idle, _idle) = (_idle, NewSource());
        }
        if (before != after) BackgroundTasksChanged?.Invoke(this, new BackgroundTasksChangedEventArgs(after));
        if (idle is null) return;
        Idle?.Invoke(this, EventArgs.Empty);
        idle.TrySetResult();
    }
}
