using Heeler.Client;
using Heeler.V1;
using Microsoft.Extensions.Logging;

namespace Heeler.AgentHosts;

/// <summary>Stops every agent that has written no output for its <c>StaleAfter</c>, and logs each stop.</summary>
public sealed partial class SilentAgents(HeelerClient heeler, ILogger log)
{
    private readonly ILogger _log = log;

    /// <summary>Works until the token ends it, across every restart of the daemon.</summary>
    public async Task RunAsync(CancellationToken cancellationToken)
    {
        var filter = new TaskFilter { Kinds = { TaskKind.Agent }, Stale = true };
        var options = new WatchOptions { InitialState = true, Filter = filter, Types = [TaskEventType.Stale] };
        await foreach (var item in heeler.WatchEventsAsync(options, cancellationToken).ConfigureAwait(false))
        {
            var silent = item switch
            {
                WatchItem.Initial(var task) => task,
                WatchItem.Happened(var happened) => happened.Task,
                _ => null,
            };
            if (silent is not null) await StopAsync(silent.Id, cancellationToken).ConfigureAwait(false);
        }
    }

    private async Task StopAsync(string agentId, CancellationToken cancellationToken)
    {
        var why = new CancelOptions { Reason = "silent for too long", Cascade = true };
        var result = await heeler.CancelBackgroundTaskAsync(agentId, why, cancellationToken).ConfigureAwait(false);
        Stopped(agentId, result.Task.State, result.Task.Survivors.Count);
    }

    [LoggerMessage(LogLevel.Information, "stopped the silent agent {Id}: {State}, {Survivors} processes survive")]
    private partial void Stopped(string id, TaskState state, int survivors);
}
