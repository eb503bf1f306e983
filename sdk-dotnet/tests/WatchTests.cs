using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>The event stream, also across the death of the daemon.</summary>
public sealed class WatchTests
{
    /// <summary>E2</summary>
    [Fact]
    public async Task A_watch_goes_on_across_crashes_without_loss_or_repeats()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var last = "";
        var seen = new List<TaskEvent>();
        var watching = Task.Run(
            async () =>
            {
                await foreach (var item in heeler.WatchEventsAsync(new WatchOptions { AfterRevision = 0 }, daemon.Soon))
                {
                    if (item is not WatchItem.Happened(var happened)) continue;
                    seen.Add(happened);
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

        // Revisions have no gap: whatever is missing or comes twice shows. The twelve others may still be ending.
        Assert.Equal(Enumerable.Range(1, seen.Count).Select(revision => (ulong)revision), seen.Select(item => item.Revision));
        Assert.Equal(13, seen.Count(item => item.Type == TaskEventType.Created));
    }

    /// <summary>E3</summary>
    [Fact]
    public async Task The_initial_state_comes_first_and_then_what_happens()
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
    public async Task A_session_tells_what_is_live_and_when_it_is_idle()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var sleeping = new SpawnOptions { Argv = ["sleep", "600"], SessionId = "s", Kind = TaskKind.Agent };
        var agent = await heeler.SpawnAsync(sleeping, daemon.Soon);
        var shell = await heeler.SpawnAsync(new SpawnOptions { Argv = ["true"], SessionId = "s" }, daemon.Soon);
        await heeler.WaitAsync(shell.Id, daemon.Soon);
        await agent.CancelAsync(null, daemon.Soon);
        var options = new WatchOptions { AfterRevision = 0, Filter = new TaskFilter { SessionId = "s" } };
        var told = new List<string>();
        await foreach (var item in heeler.WatchEventsAsync(options, daemon.Soon))
        {
            if (item is not WatchItem.Happened({ SessionActivity: { } activity } happened)) continue;
            told.Add($"{activity.Agents} {activity.Shells} {(happened.Task is null ? "no task" : "")}".Trim());
            if (happened.Type == TaskEventType.SessionIdle) break;
        }
        Assert.Equal(["1 0", "1 1", "1 0", "0 0", "0 0 no task"], told);
    }

    /// <summary>E2, E4</summary>
    [Fact]
    public async Task A_bookmark_that_was_kept_resumes_and_one_of_another_state_is_refused()
    {
        await using var daemon = await Daemon.StartAsync();
        await using var other = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var first = await heeler.WatchEventsAsync(new WatchOptions(), daemon.Soon).FirstAsync(daemon.Soon);
        var kept = Assert.IsType<WatchItem.Reached>(first).Bookmark;
        var task = await heeler.SpawnAsync(new SpawnOptions { Argv = ["true"] }, daemon.Soon);
        var resumed = heeler.WatchEventsAsync(new WatchOptions { AfterBookmark = kept }, daemon.Soon);
        var happened = await resumed.OfType<WatchItem.Happened>().FirstAsync(daemon.Soon);
        Assert.Equal((task.Id, TaskEventType.Created), (happened.Event.Task.Id, happened.Event.Type));

        var foreign = other.Client().WatchEventsAsync(new WatchOptions { AfterBookmark = kept }, daemon.Soon);
        var error = await Assert.ThrowsAsync<HeelerRefusedException>(async () => await foreign.FirstAsync(daemon.Soon));
        Assert.True(error.Is(ErrorReason.ForeignState));
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
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "echo last words" }, daemon.Soon);
        var events = await task.EventsAsync().ToListAsync(daemon.Soon);
        Assert.Equal(
            [TaskEventType.Created, TaskEventType.Started, TaskEventType.Ended],
            events.Select(item => item.Type));
        Assert.Equal("last words\n", events[^1].OutputTail.Chunks[0].Data.ToStringUtf8());
        var unknown = heeler.GetTask("shell-aaaaaaaaaa").EventsAsync();
        await Assert.ThrowsAsync<HeelerRefusedException>(async () => await unknown.FirstAsync(daemon.Soon));
    }

    [Fact]
    public async Task A_watch_gives_up_when_it_was_told_to()
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
