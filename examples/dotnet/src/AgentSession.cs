using Heeler.Client;
using Heeler.V1;

namespace Heeler.AgentSessions;

/// <summary>
/// A conversation of an agent host, with its background tasks on Heeler: subagents and shells outlive a crash of the host, a
/// cancelled one is gone with everything it started, and an event tells the host when all of them have finished.
/// </summary>
/// <remarks>
/// It owns a watch of the session's events. Tasks that another program starts in the same session count as well. Handlers are
/// called one at a time, by the watch.
/// </remarks>
public sealed class AgentSession : IAsyncDisposable
{
    private readonly HeelerClient _heeler;
    private readonly HeelerSession _session;
    private readonly CancellationTokenSource _closing = new();
    private readonly TaskCompletionSource _ready = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly Lock _lock = new();
    private SessionCounts _counts;

    private AgentSession(HeelerClient heeler, string sessionId) =>
        (_heeler, _session, Completion) = (heeler, heeler.Session(sessionId), Task.CompletedTask);

    /// <summary>Raised when the number of live background tasks has changed.</summary>
    public event EventHandler<BackgroundTasksChangedEventArgs>? BackgroundTasksChanged;

    /// <summary>Raised each time the last live task has ended.</summary>
    public event EventHandler? Idle;

    /// <summary>The id of the session in Heeler.</summary>
    public string SessionId => _session.Id;

    /// <summary>
    /// Completes when the session is closed. It fails if a handler throws or the watch cannot go on: no event follows.
    /// </summary>
    public Task Completion { get; private set; }

    /// <summary>The number of live background tasks, as far as the watch has come.</summary>
    public SessionCounts BackgroundTasks
    {
        get
        {
            lock (_lock) return _counts;
        }
    }

    /// <summary>Opens a session: a new one, or one whose tasks run on from an earlier host.</summary>
    public static async Task<AgentSession> OpenAsync(
        HeelerClient heeler, string sessionId, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(heeler);
        var session = new AgentSession(heeler, sessionId);
        session.Completion = session.WatchAsync();
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
        StartAsync(new SpawnOptions { Argv = command, Kind = TaskKind.Agent, ParentId = parentId }, cancellationToken);

    /// <summary>Starts a shell in the background and returns its id.</summary>
    public Task<string> StartShellAsync(
        string script, string? parentId = null, CancellationToken cancellationToken = default) =>
        StartAsync(new SpawnOptions { Shell = script, ParentId = parentId }, cancellationToken);

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
    public Task WaitUntilIdleAsync(CancellationToken cancellationToken = default) =>
        _session.WaitUntilIdleAsync(cancellationToken);

    /// <summary>Closes the session. Its tasks run on, and the next host finds them.</summary>
    public async ValueTask DisposeAsync()
    {
        await _closing.CancelAsync().ConfigureAwait(false);
        await Completion.ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        _closing.Dispose();
    }

    private async Task<string> StartAsync(SpawnOptions options, CancellationToken cancellationToken) =>
        (await _session.SpawnAsync(options, cancellationToken).ConfigureAwait(false)).Id;

    /// <summary>Watches across every restart of the daemon, until the session is closed.</summary>
    private async Task WatchAsync()
    {
        var options = new WatchOptions { InitialState = true };
        try
        {
            await foreach (var item in _session.WatchAsync(options, _closing.Token).ConfigureAwait(false)) Take(item);
        }
        catch (OperationCanceledException) when (_closing.IsCancellationRequested)
        {
            _ready.TrySetCanceled();
        }
        catch (Exception error)
        {
            _ready.TrySetException(error);
            throw;
        }
    }

    private void Take(WatchItem item)
    {
        switch (item)
        {
            case WatchItem.Initial(var task):
                Change(_counts.With(task.Spec.Kind));
                break;
            case WatchItem.Happened(var happened):
                if (happened.Counts is { } counts) Change(counts);
                if (happened.Type == TaskEventType.SessionIdle) Idle?.Invoke(this, EventArgs.Empty);
                break;
            case WatchItem.Reached:
                // The stream is established.
                _ready.TrySetResult();
                break;
        }
    }

    private void Change(SessionCounts counts)
    {
        lock (_lock)
        {
            if (_counts == counts) return;
            _counts = counts;
        }
        BackgroundTasksChanged?.Invoke(this, new BackgroundTasksChangedEventArgs(counts));
    }
}
