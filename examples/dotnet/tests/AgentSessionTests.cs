using System.Collections.Concurrent;
using Heeler.Client;
using Heeler.Client.Tests;
using Heeler.V1;
using Xunit;

namespace Heeler.AgentSessions.Tests;

/// <summary>A host's session over the real daemon.</summary>
public sealed class AgentSessionTests
{
    private static readonly string[] _agent = ["sleep", "600"];

    /// <summary>What was told, in order: counts as agents, shells and hosted; idle as itself.</summary>
    private readonly ConcurrentQueue<string> _told = new();

    /// <summary>E9</summary>
    [Fact]
    public async Task Counts_by_kind_are_told_as_they_change_and_idle_after_the_last_end()
    {
        await using var daemon = await Daemon.StartAsync();
        await using var session = await OpenAsync(daemon);
        await session.WaitUntilIdleAsync(daemon.Soon);
        var agent = await session.StartAgentAsync(_agent, null, daemon.Soon);
        var idle = session.WaitUntilIdleAsync(daemon.Soon);
        var shell = await session.StartShellAsync("sleep 600", null, daemon.Soon);
        Assert.True(await session.CancelBackgroundTaskAsync(agent, daemon.Soon));
        Assert.False(idle.IsCompleted);
        Assert.True(await session.CancelBackgroundTaskAsync(shell, daemon.Soon));
        await idle;
        Assert.Equal(["1 0 0", "1 1 0", "0 1 0", "0 0 0", "idle"], _told);
        Assert.Equal(0, session.BackgroundTasks.Total);
    }

    /// <summary>C4, C12</summary>
    [Fact]
    public async Task A_cancelled_agent_is_gone_with_all_it_started_and_the_session_goes_on()
    {
        await using var daemon = await Daemon.StartAsync();
        await using var session = await OpenAsync(daemon);
        var agent = await session.StartAgentAsync(["sh", "-c", "setsid sleep 600 & sleep 600"], null, daemon.Soon);
        var child = await session.StartShellAsync("sleep 600", agent, daemon.Soon);
        Assert.True(await session.CancelBackgroundTaskAsync(agent, daemon.Soon));
        var heeler = daemon.Client();
        Assert.Equal(TaskState.Cancelled, (await heeler.WaitAsync(child, daemon.Soon)).State);
        Assert.Empty(await heeler.ListAsync(cancellationToken: daemon.Soon).ToListAsync(daemon.Soon));
        Assert.False(await session.CancelBackgroundTaskAsync(agent, daemon.Soon));
        Assert.False(await session.CancelBackgroundTaskAsync("agent-aaaaaaaaaa", daemon.Soon));

        var next = await session.StartShellAsync("exit 3", null, daemon.Soon);
        await session.WaitUntilIdleAsync(daemon.Soon);
        Assert.Equal(3, (await heeler.WaitAsync(next, daemon.Soon)).Outcome.ExitCode);
    }

    /// <summary>E2, E9</summary>
    [Fact]
    public async Task Idle_is_told_once_also_when_the_daemon_dies_in_between()
    {
        await using var daemon = await Daemon.StartAsync();
        await using var session = await OpenAsync(daemon);
        var script = $"until [ -e {daemon.Path("go")} ]; do sleep 0.01; done";
        await session.StartShellAsync(script, null, daemon.Soon);
        await session.StartShellAsync(script, null, daemon.Soon);
        var idle = session.WaitUntilIdleAsync(daemon.Soon);
        await daemon.KillAsync();
        await File.WriteAllTextAsync(daemon.Path("go"), "", daemon.Soon);
        await daemon.RestartAsync();
        await idle;
        Assert.Equal(["0 1 0", "0 2 0", "0 1 0", "0 0 0", "idle"], _told);
    }

    /// <summary>E3</summary>
    [Fact]
    public async Task A_host_that_comes_back_finds_what_it_left_running()
    {
        await using var daemon = await Daemon.StartAsync();
        string agent;
        await using (var first = await AgentSession.OpenAsync(daemon.Client(), "s", daemon.Soon))
            agent = await first.StartAgentAsync(_agent, null, daemon.Soon);
        await using var session = await OpenAsync(daemon);
        Assert.Equal(new BackgroundTaskCounts(1, 0, 0), session.BackgroundTasks);
        var idle = session.WaitUntilIdleAsync(daemon.Soon);
        Assert.True(await session.CancelBackgroundTaskAsync(agent, daemon.Soon));
        await idle;
    }

    [Fact]
    public async Task A_start_that_is_refused_leaves_the_session_as_it_was()
    {
        await using var daemon = await Daemon.StartAsync();
        await using var session = await OpenAsync(daemon);
        var error = await Assert.ThrowsAsync<HeelerRefusedException>(
            () => session.StartAgentAsync(["/no/such/program"], null, daemon.Soon));
        Assert.Equal(ErrorReason.ProgramUnusable, error.Reason);
        await session.WaitUntilIdleAsync(daemon.Soon);
    }

    [Fact]
    public async Task A_session_without_a_daemon_says_how_to_start_one()
    {
        using var heeler = HeelerClient.Connect(HeelerAddress.Unix("/nowhere/s.sock"));
        var error = await Assert.ThrowsAsync<DaemonNotRunningException>(() => AgentSession.OpenAsync(heeler, "s"));
        Assert.Contains("heeler serve", error.Message, StringComparison.Ordinal);
    }

    private async Task<AgentSession> OpenAsync(Daemon daemon)
    {
        var session = await AgentSession.OpenAsync(daemon.Client(), "s", daemon.Soon);
        session.BackgroundTasksChanged += (_, changed) =>
            _told.Enqueue($"{changed.Counts.Agents} {changed.Counts.Shells} {changed.Counts.Hosted}");
        session.Idle += (_, _) => _told.Enqueue("idle");
        return session;
    }
}
