using System.Collections.Concurrent;
using Heeler.Client;
using Heeler.Client.Tests;
using Heeler.V1;
using Xunit;

namespace Heeler.AgentSessions.Tests;

/// <summary>A session against the real daemon.</summary>
public sealed class AgentSessionTests
{
    private static readonly string[] _agent = ["sleep", "600"];

    /// <summary>The raised events in order: the counts as agents and shells, or `idle`.</summary>
    private readonly ConcurrentQueue<string> _raised = new();

    /// <summary>E9</summary>
    [Fact]
    public async Task Counts_by_kind_are_raised_as_they_change_and_idle_after_the_last_end()
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
        await daemon.UntilAsync(() => _raised.Contains("idle"));
        Assert.Equal(["1 0", "1 1", "0 1", "0 0", "idle"], _raised);
        Assert.Equal(0, session.BackgroundTasks.Total);
    }

    /// <summary>C4, C12</summary>
    [Fact]
    public async Task Cancel_ends_an_agent_with_all_it_started_and_the_session_continues()
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
        Assert.Equal(3, (await heeler.WaitAsync(next, daemon.Soon)).ExitCode);
    }

    /// <summary>E2, E9</summary>
    [Fact]
    public async Task Idle_is_raised_once_across_a_crash_of_the_daemon()
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
        await daemon.UntilAsync(() => _raised.Contains("idle"));
        Assert.Equal(["0 1", "0 2", "0 1", "0 0", "idle"], _raised);
    }

    /// <summary>E3</summary>
    [Fact]
    public async Task A_new_host_finds_the_running_tasks_of_the_session()
    {
        await using var daemon = await Daemon.StartAsync();
        string agent;
        await using (var first = await AgentSession.OpenAsync(daemon.Client(), "s", daemon.Soon))
            agent = await first.StartAgentAsync(_agent, null, daemon.Soon);
        await using var session = await OpenAsync(daemon);
        Assert.Equal(new SessionCounts(1, 0), session.BackgroundTasks);
        var idle = session.WaitUntilIdleAsync(daemon.Soon);
        Assert.True(await session.CancelBackgroundTaskAsync(agent, daemon.Soon));
        await idle;
    }

    [Fact]
    public async Task A_refused_start_leaves_the_session_idle()
    {
        await using var daemon = await Daemon.StartAsync();
        await using var session = await OpenAsync(daemon);
        var error = await Assert.ThrowsAsync<HeelerRefusedException>(
            () => session.StartAgentAsync(["/no/such/program"], null, daemon.Soon));
        Assert.Equal(ErrorReason.ProgramUnusable, error.Reason);
        await session.WaitUntilIdleAsync(daemon.Soon);
    }

    [Fact]
    public async Task A_handler_that_throws_ends_the_watch_and_is_reported()
    {
        await using var daemon = await Daemon.StartAsync();
        await using var session = await AgentSession.OpenAsync(daemon.Client(), "s", daemon.Soon);
        session.BackgroundTasksChanged += (_, _) => throw new NotSupportedException("not now");
        await session.StartShellAsync("true", null, daemon.Soon);
        await Assert.ThrowsAsync<NotSupportedException>(() => session.Completion.WaitAsync(daemon.Soon));
    }

    [Fact]
    public async Task Opening_without_a_daemon_says_how_to_start_one()
    {
        using var heeler = HeelerClient.Connect(HeelerAddress.Unix("/nowhere/s.sock"));
        var error = await Assert.ThrowsAsync<DaemonNotRunningException>(() => AgentSession.OpenAsync(heeler, "s"));
        Assert.Contains("heeler serve", error.Message, StringComparison.Ordinal);
    }

    private async Task<AgentSession> OpenAsync(Daemon daemon)
    {
        var session = await AgentSession.OpenAsync(daemon.Client(), "s", daemon.Soon);
        session.BackgroundTasksChanged += (_, changed) =>
            _raised.Enqueue($"{changed.Counts.Agents} {changed.Counts.Shells}");
        session.Idle += (_, _) => _raised.Enqueue("idle");
        return session;
    }
}
