using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>The handle on a session.</summary>
public sealed class SessionTests
{
    /// <summary>E9, T5</summary>
    [Fact]
    public async Task Sessions_are_listed_with_their_live_tasks_and_one_that_waits_for_a_zombie_says_so()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        Assert.Empty(await heeler.ListSessionsAsync(daemon.Soon));
        Assert.Null(await heeler.Session("b").GetAsync(daemon.Soon));
        var shell = await heeler.Session("a").SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, daemon.Soon);
        var silence = new SilenceOptions { StaleAfter = TimeSpan.FromMilliseconds(200) };
        await using var zombie = await heeler.RegisterAsync(new HostOptions { SessionId = "b", Silence = silence }, daemon.Soon);
        var events = zombie.Handle.EventsAsync(daemon.Soon);
        var stale = await events.FirstAsync(happened => happened.Type == TaskEventType.Stale, daemon.Soon);
        Assert.True(stale.SessionActivity.IsOnlyStale);
        var (a, b) = await heeler.ListSessionsAsync(daemon.Soon) is [var first, var second] ? (first, second) : default;
        Assert.Equal(("a", 1u, false), (a.Activity.SessionId, a.Activity.Shells, a.OnlyStale));
        Assert.Equal(shell.Id, Assert.Single(a.Activity.TaskIds));
        Assert.Equal(("b", 1u, true), (b.Activity.SessionId, b.Activity.Hosted, b.OnlyStale));
        Assert.Equal([zombie.Handle.Id], b.Activity.HostedIds);
        Assert.Equal(new SessionCounts(0, 0, 1), await heeler.Session("b").CountsAsync(daemon.Soon));
        await zombie.FinishAsync("", daemon.Soon);
        Assert.Equal(0, (await heeler.Session("b").CountsAsync(daemon.Soon)).Total);
    }

    /// <summary>E10</summary>
    [Fact]
    public async Task The_tasks_of_a_session_end_with_the_watch_that_owns_it()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var own = new SessionOwnershipOptions { SessionId = "s", ReattachWindow = TimeSpan.FromMilliseconds(200) };
        await using var owner = heeler.WatchEventsAsync(new WatchOptions { OwnSession = own }, daemon.Soon).GetAsyncEnumerator(daemon.Soon);
        Assert.True(await owner.MoveNextAsync());
        var task = await heeler.Session("s").SpawnAsync(_sleep, daemon.Soon);
        Assert.Equal(1u, (await heeler.Session("s").GetAsync(daemon.Soon))!.Owners);
        await owner.DisposeAsync();
        var ended = await task.WaitAsync(daemon.Soon);
        Assert.Equal(TaskState.Cancelled, ended.State);
        Assert.Equal("the last owner of session \"s\" is gone", ended.Stop.Reason);
    }

    private static readonly SpawnOptions _sleep = new() { Argv = ["sleep", "600"] };

    /// <summary>C12, E9</summary>
    [Fact]
    public async Task A_session_has_its_own_tasks_only()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var session = heeler.Session("a");
        var other = await heeler.Session("b").SpawnAsync(_sleep, daemon.Soon);
        var agent = await session.SpawnAsync(_sleep with { Kind = TaskKind.Agent }, daemon.Soon);
        var shell = await session.SpawnAsync(_sleep, daemon.Soon);
        Assert.Equal(new SessionCounts(1, 1), await session.CountsAsync(daemon.Soon));

        var listed = await session.ListAsync(null, daemon.Soon).Select(task => task.Id).ToListAsync(daemon.Soon);
        Assert.Equal([agent.Id, shell.Id], listed.Order());
        var agents = new ListRequest { Filter = new TaskFilter { Kinds = { TaskKind.Agent } } };
        Assert.Equal(agent.Id, (await session.ListAsync(agents, daemon.Soon).SingleAsync(daemon.Soon)).Id);

        var run = await session.RunAsync(new SpawnOptions { Shell = "echo out; exit 3" }, null, daemon.Soon);
        Assert.Equal((3, "out\n", "a"), (run.ExitCode, run.Stdout, run.Task.Spec.SessionId));

        var third = await session.SpawnAsync(_sleep, daemon.Soon);
        var byKind = await session.CancelAsync(agents.Filter, null, daemon.Soon);
        Assert.Equal(agent.Id, Assert.Single(byKind).Task.Id);
        var cancelled = await session.CancelAsync(new CancelOptions { Force = true }, daemon.Soon);
        Assert.Equal(new[] { third.Id, shell.Id }.Order(), cancelled.Select(result => result.Task.Id).Order());
        Assert.All(cancelled, result => Assert.Equal(TaskState.Cancelled, result.Task.State));
        Assert.Empty(await session.CancelAsync(cancellationToken: daemon.Soon));
        Assert.Equal(new SessionCounts(0, 0), await session.CountsAsync(daemon.Soon));
        Assert.Equal(TaskState.Running, (await other.GetAsync(daemon.Soon)).State);
    }

    /// <summary>E9</summary>
    [Fact]
    public async Task A_wait_for_idle_returns_at_once_or_with_the_last_end_across_a_crash()
    {
        await using var daemon = await Daemon.StartAsync();
        var session = daemon.Client().Session("s");
        await session.WaitUntilIdleAsync(daemon.Soon);

        var script = $"until [ -e {daemon.Path("go")} ]; do sleep 0.01; done";
        await session.SpawnAsync(new SpawnOptions { Shell = script }, daemon.Soon);
        var last = await session.SpawnAsync(_sleep, daemon.Soon);
        var idle = session.WaitUntilIdleAsync(daemon.Soon);
        await daemon.KillAsync();
        await File.WriteAllTextAsync(daemon.Path("go"), "", daemon.Soon);
        await daemon.RestartAsync();
        Assert.False(idle.IsCompleted);
        await last.CancelAsync(daemon.Soon);
        await idle;
        Assert.Equal(0, (await session.CountsAsync(daemon.Soon)).Total);
    }

    /// <summary>E9</summary>
    [Fact]
    public async Task A_watch_is_established_with_its_first_item_and_its_events_have_counts()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var session = heeler.Session("s");
        await using var watch = session.WatchAsync(null, daemon.Soon).GetAsyncEnumerator(daemon.Soon);
        Assert.True(await watch.MoveNextAsync());
        Assert.IsType<WatchItem.Reached>(watch.Current);

        await heeler.SpawnAsync(new SpawnOptions { Argv = ["true"] }, daemon.Soon);
        await session.SpawnAsync(new SpawnOptions { Argv = ["true"], Kind = TaskKind.Agent }, daemon.Soon);
        var seen = new List<(TaskEventType, SessionCounts?)>();
        while (await watch.MoveNextAsync())
        {
            if (watch.Current is not WatchItem.Happened { Event: var happened }) continue;
            seen.Add((happened.Type, happened.Counts));
            if (happened.Type == TaskEventType.SessionIdle) break;
        }
        var (one, none) = (new SessionCounts(1, 0), new SessionCounts(0, 0));
        (TaskEventType, SessionCounts?)[] expected =
        [
            (TaskEventType.Created, one),
            (TaskEventType.Started, null),
            (TaskEventType.Ended, none),
            (TaskEventType.SessionIdle, none),
        ];
        Assert.Equal(expected, seen);
    }

    [Fact]
    public async Task Another_session_in_the_options_is_refused()
    {
        using var heeler = HeelerClient.Connect(HeelerAddress.Unix("/nowhere/s.sock"));
        var session = heeler.Session("s");
        var other = new TaskFilter { SessionId = "other" };
        await Assert.ThrowsAsync<ArgumentException>(() => session.SpawnAsync(_sleep with { SessionId = "other" }));
        await Assert.ThrowsAsync<ArgumentException>(() => session.CancelAsync(other));
        Assert.Throws<ArgumentException>(() => session.WatchAsync(new WatchOptions { Filter = other }));
        Assert.Throws<ArgumentException>(() => session.ListAsync(new ListRequest { Filter = other }));
        Assert.Throws<ArgumentException>(() => heeler.Session(""));
    }
}
