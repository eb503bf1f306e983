using Heeler.AgentHosts;
using Heeler.Client;
using Heeler.Client.Tests;
using Heeler.V1;
using Microsoft.Extensions.Logging.Abstractions;
using Xunit;

namespace Heeler.AgentSessions.Tests;

/// <summary>The service that stops silent agents.</summary>
public sealed class SilentAgentsTests
{
    private static readonly SpawnOptions _silent = new()
    {
        Argv = ["sleep", "600"],
        Kind = TaskKind.Agent,
        Silence = new() { StaleAfter = TimeSpan.FromMilliseconds(100) },
    };

    /// <summary>C4, E9</summary>
    [Fact]
    public async Task Agents_that_are_silent_are_stopped_and_no_other_task()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var before = await heeler.SpawnAsync(_silent, daemon.Soon);
        var events = before.EventsAsync(daemon.Soon);
        Assert.True(await events.AnyAsync(happened => happened.Type == TaskEventType.Stale, daemon.Soon));
        var shell = await heeler.SpawnAsync(_silent with { Kind = TaskKind.Shell }, daemon.Soon);
        var agent = await heeler.SpawnAsync(_silent with { Silence = null }, daemon.Soon);

        using var stop = new CancellationTokenSource();
        var working = new SilentAgents(heeler, NullLogger.Instance).RunAsync(stop.Token);
        var after = await heeler.SpawnAsync(_silent, daemon.Soon);
        foreach (var task in (HeelerTask[])[before, after])
        {
            var ended = await task.WaitAsync(daemon.Soon);
            Assert.Equal((TaskState.Cancelled, "silent for too long"), (ended.State, ended.Stop.Reason));
        }
        Assert.Equal(TaskState.Running, (await shell.GetAsync(daemon.Soon)).State);
        Assert.Equal(TaskState.Running, (await agent.GetAsync(daemon.Soon)).State);
        await stop.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => working);
    }
}
