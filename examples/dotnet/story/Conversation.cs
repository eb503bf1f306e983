using Heeler.Client;
using Heeler.V1;

namespace Heeler.AgentStory;

/// <summary>
/// A conversation of a host that is idle only once its turn is over and its background is quiet. A subagent that falls silent must
/// not keep it from that: it is stopped, and the conversation goes on.
/// </summary>
/// <param name="heeler">The client.</param>
/// <param name="sessionId">The session in Heeler.</param>
/// <param name="silence">Time without progress after which a subagent is taken for a zombie.</param>
public sealed class Conversation(HeelerClient heeler, string sessionId, TimeSpan silence)
{
    private static readonly StopOptions _quickly =
        new() { SoftGrace = TimeSpan.FromMilliseconds(500), Grace = TimeSpan.FromMilliseconds(500) };

    private readonly HeelerSession _session = heeler.Session(sessionId);

    /// <summary>Raised with each zombie that was stopped.</summary>
    public event EventHandler<BackgroundTask>? ZombieStopped;

    /// <summary>Starts a subagent. The task ends with the subagent; a body that hangs for ever never returns.</summary>
    public Task<BackgroundTask> StartAsync(Subagent agent, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(agent);
        var options = new HostOptions { Name = agent.Name, Silence = new() { StaleAfter = silence }, Stop = _quickly };
        return _session.HostAsync(options, agent.RunAsync, cancellationToken);
    }

    /// <summary>Starts a command in the background.</summary>
    public Task<HeelerTask> StartShellAsync(string script, CancellationToken cancellationToken = default) =>
        _session.SpawnAsync(new SpawnOptions { Shell = script, Name = script }, cancellationToken);

    /// <summary>
    /// Ends the turn: returns when the background is quiet, with every task of the session, oldest first. Zombies are stopped
    /// meanwhile.
    /// </summary>
    public async Task<IReadOnlyList<BackgroundTask>> EndTurnAsync(CancellationToken cancellationToken = default)
    {
        using var quiet = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        var stopping = StopZombiesAsync(quiet.Token);
        var idle = _session.WaitUntilIdleAsync(quiet.Token);
        // A watch that fails is an error of the turn, not a turn without an end.
        await await Task.WhenAny(idle, stopping).ConfigureAwait(false);
        await quiet.CancelAsync().ConfigureAwait(false);
        await stopping.ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        var all = _session.ListAsync(new ListRequest { IncludeFinished = true }, cancellationToken);
        return await all.OrderBy(task => task.CreateTime).ToListAsync(cancellationToken).ConfigureAwait(false);
    }

    private async Task StopZombiesAsync(CancellationToken cancellation)
    {
        var silent = new TaskFilter { Kinds = { TaskKind.Hosted, TaskKind.Agent }, Stale = true };
        var options = new WatchOptions { Filter = silent, InitialState = true, Types = [TaskEventType.Stale] };
        await foreach (var item in _session.WatchAsync(options, cancellation).ConfigureAwait(false))
        {
            var zombie = item switch
            {
                WatchItem.Initial(var task) => task,
                WatchItem.Happened(var happened) => happened.Task,
                _ => null,
            };
            if (zombie is null) continue;
            var why = new CancelOptions { Reason = $"no progress for {silence.TotalSeconds:0.#} s", Actor = "the host" };
            // The stop goes on if the turn ends first: the intent is durable.
            var result = await heeler.CancelBackgroundTaskAsync(zombie.Id, why, CancellationToken.None).ConfigureAwait(false);
            ZombieStopped?.Invoke(this, result.Task);
        }
    }
}
