using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>WatchEvents, also across crashes of the daemon.</summary>
public sealed class WatchTests
{
    /// <summary>E2</summary>
    [Fact]
    public async Task A_watch_continues_across_crashes_without_loss_or_repeats()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var last = "";
        var received = new List<TaskEvent>();
        var watching = Task.Run(
            async () =>
            {
                await foreach (var item in heeler.WatchEventsAsync(new WatchOptions { AfterRevision = 0 }, daemon.Soon))
                {
                    if (item is not WatchItem.Happened(var happened)) continue;
                    received.Add(happened);
                    if (happened.Type == TaskEventType.Ended && happened.Task.Id == Volatile.Read(ref last)) return;
                }
            },
            daemon.Soon);
        for (var crash = 0; crash < 4; crash++)
        {
            for (var i = 0; i < 3; i++)
                await heeler.SpawnAsync(new SpawnOptions { Argv = ["true"] }, daemon.Soon);
            await daemon.KillAsync();
            await daemon.RestartAsync();
        }
        var final = await heeler.SpawnAsync(
            new SpawnOptions { Shell = "until [ -e go ]; do sleep 0.01; done", WorkingDirectory = daemon.Path("") },
            daemon.Soon);
        Volatile.Write(ref last, final.Id);
        await File.WriteAllTextAsync(daemon.Path("go"), "", daemon.Soon);
        await watching;

        // Revisions have no gap, so a lost or repeated event shows. The twelve others may still be ending.
        Assert.Equal(Enumerable.Range(1, received.Count).Select(revision => (ulong)revision), received.Select(item => item.Revision));
        Assert.Equal(13, received.Count(item => item.Type == TaskEventType.Created));
    }

    /// <summary>E3</summary>
    [Fact]
    public async Task The_initial_state_comes_before_the_events()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, daemon.Soon);
        var options = new WatchOptions { InitialState = true, Types = { TaskEventType.Ended } };
        await using var watch = heeler.WatchEventsAsync(options, daemon.Soon).GetAsyncEnumerator();
        Assert.True(await watch.MoveNextAsync());
        Assert.Equal(task.Id, Assert.IsType<WatchItem.Initial>(watch.Current).Task.Id);
        Assert.True(await watch.MoveNextAsync());
        Assert.IsType<WatchItem.Reached>(watch.Current);
        await task.CancelAsync(null, daemon.Soon);
        Assert.True(await watch.MoveNextAsync());
        var happened = Assert.IsType<WatchItem.Happened>(watch.Current).Event;
        Assert.Equal((task.Id, TaskEventType.Ended), (happened.Task.Id, happened.Type));
    }

    /// <summary>E9</summary>
    [Fact]
    public async Task A_session_reports_its_live_tasks_and_when_it_is_idle()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var sleeping = new SpawnOptions { Argv = ["sleep", "600"], SessionId = "s", Kind = TaskKind.Agent };
        var agent = await heeler.SpawnAsync(sleeping, daemon.Soon);
        var shell = await heeler.SpawnAsync(new SpawnOptions { Argv = ["true"], SessionId = "s" }, daemon.Soon);
        await heeler.WaitAsync(shell.Id, daemon.Soon);
        await agent.CancelAsync(null, daemon.Soon);
        var options = new WatchOptions { AfterRevision = 0, Filter = new TaskFilter { SessionId = "s" } };
        var counts = new List<string>();
        await foreach (var item in heeler.WatchEventsAsync(options, daemon.Soon))
        {
            if (item is not WatchItem.Happened({ SessionActivity: { } activity } happened)) continue;
            counts.Add($"{activity.Agents} {activity.Shells} {(happened.Task is null ? "no task" : "")}".Trim());
            if (happened.Type == TaskEventType.SessionIdle) break;
        }
        Assert.Equal(["1 0", "1 1", "1 0", "0 0", "0 0 no task"], counts);
    }

    /// <summary>E2, E4</summary>
    [Fact]
    public async Task A_stored_bookmark_resumes_and_one_of_another_epoch_is_refused()
    {
        await using var daemon = await Daemon.StartAsync();
        await using var other = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var first = await heeler.WatchEventsAsync(new WatchOptions(), daemon.Soon).FirstAsync(daemon.Soon);
        var stored = Assert.IsType<WatchItem.Reached>(first).Bookmark;
        var task = await heeler.SpawnAsync(new SpawnOptions { Argv = ["true"] }, daemon.Soon);
        var resumed = heeler.WatchEventsAsync(new WatchOptions { AfterBookmark = stored }, daemon.Soon);
        var happened = await resumed.OfType<WatchItem.Happened>().FirstAsync(daemon.Soon);
        Assert.Equal((task.Id, TaskEventType.Created), (happened.Event.Task.Id, happened.Event.Type));

        var foreign = other.Client().WatchEventsAsync(new WatchOptions { AfterBookmark = stored }, daemon.Soon);
        var error = await Assert.ThrowsAsync<HeelerRefusedException>(async () => await foreign.FirstAsync(daemon.Soon));
        Assert.True(error.Is(ErrorReason.EpochMismatch));
        var ahead = heeler.WatchEventsAsync(new WatchOptions { AfterRevision = 1_000_000 }, daemon.Soon);
        error = await Assert.ThrowsAsync<HeelerRefusedException>(async () => await ahead.FirstAsync(daemon.Soon));
        Assert.True(error.Is(ErrorReason.RevisionOutOfRange));
    }

    /// <summary>E1, E5</summary>
    [Fact]
    public async Task The_events_of_one_task_end_with_its_end()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "echo goodbye" }, daemon.Soon);
        var events = await task.EventsAsync().ToListAsync(daemon.Soon);
        Assert.Equal(
            [TaskEventType.Created, TaskEventType.Started, TaskEventType.Ended],
            events.Select(item => item.Type));
        Assert.Equal("goodbye\n", events[^1].OutputTail.Chunks[0].Data.ToStringUtf8());
        var unknown = heeler.GetTask("shell-aaaaaaaaaa").EventsAsync();
        await Assert.ThrowsAsync<HeelerRefusedException>(async () => await unknown.FirstAsync(daemon.Soon));
    }

    [Fact]
    public async Task A_watch_gives_up_after_its_limit()
    {
        await using var daemon = await Daemon.StartAsync();
        var options = new WatchOptions { GiveUpAfter = TimeSpan.FromMilliseconds(100) };
        await using var watch = daemon.Client().WatchEventsAsync(options, daemon.Soon).GetAsyncEnumerator();
        Assert.True(await watch.MoveNextAsync());
        await daemon.KillAsync();
        await Assert.ThrowsAsync<DaemonNotRunningException>(async () => await watch.MoveNextAsync());
    }

    [Fact]
    public async Task A_watch_ends_with_its_token()
    {
        await using var daemon = await Daemon.StartAsync();
        using var end = new CancellationTokenSource();
        await using var watch = daemon.Client().WatchEventsAsync(null, end.Token).GetAsyncEnumerator();
        Assert.True(await watch.MoveNextAsync());
        var next = watch.MoveNextAsync();
        await end.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(async () => await next);
    }
}
