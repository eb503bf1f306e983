using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>Tasks that hold a caller: attached to, detached, let go.</summary>
public sealed class ForegroundTests
{
    private static readonly TimeSpan _long = TimeSpan.FromMinutes(2);

    /// <summary>F11</summary>
    [Fact]
    public async Task A_hold_is_the_task_then_its_output_then_the_release()
    {
        await using var daemon = await Daemon.StartAsync();
        var task = await daemon.Client().SpawnAsync(Held(daemon, "printf out; exit 3"), daemon.Soon);
        var items = await task.AttachAsync().ToListAsync(daemon.Soon);
        Assert.Equal(Placement.Foreground, Assert.IsType<AttachItem.Attached>(items[0]).Task.Placement);
        Assert.Equal("out", Text(items));
        var released = Assert.IsType<AttachItem.Released>(items[^1]);
        Assert.Equal((ReleaseReason.Finished, 3), (released.Reason, released.Task.Outcome.ExitCode));
        var again = await task.AttachAsync(new AttachOptions { TailBytes = 1 }).ToListAsync(daemon.Soon);
        Assert.Equal("t", Text(again));
    }

    /// <summary>F6</summary>
    [Fact]
    public async Task A_hold_goes_on_across_crashes_behind_the_last_byte()
    {
        await using var daemon = await Daemon.StartAsync();
        var task = await daemon.Client().SpawnAsync(
            Held(daemon, "echo one; until [ -e go ]; do sleep 0.01; done; echo two"), daemon.Soon);
        var items = new List<AttachItem>();
        await foreach (var item in task.AttachAsync(cancellationToken: daemon.Soon))
        {
            items.Add(item);
            if (items.Count != 2) continue;
            await daemon.KillAsync();
            await daemon.RestartAsync();
            await File.WriteAllTextAsync(daemon.Path("go"), "", daemon.Soon);
        }
        Assert.Single(items.OfType<AttachItem.Attached>());
        Assert.Equal("one\ntwo\n", Text(items));
        Assert.Equal(TaskState.Completed, Assert.IsType<AttachItem.Released>(items[^1]).Task.State);
    }

    /// <summary>F1, F6</summary>
    [Fact]
    public async Task A_task_that_is_detached_while_its_holder_is_cut_off_releases_it()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(Held(daemon, "echo one; sleep 600"), daemon.Soon);
        await using var hold = task.AttachAsync(null, daemon.Soon).GetAsyncEnumerator();
        Assert.True(await hold.MoveNextAsync() && await hold.MoveNextAsync());
        await daemon.KillAsync();
        await daemon.RestartAsync();
        await daemon.Client().DetachAsync(task.Id, null, daemon.Soon);
        Assert.True(await hold.MoveNextAsync());
        var released = Assert.IsType<AttachItem.Released>(hold.Current);
        Assert.Equal((ReleaseReason.Detached, TaskState.Running), (released.Reason, released.Task.State));
        Assert.False(await hold.MoveNextAsync());
    }

    /// <summary>F1, F7</summary>
    [Fact]
    public async Task A_detach_says_what_it_found()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(Held(daemon, "sleep 600", session: "s"), daemon.Soon);
        var waiting = task.WaitReleasedAsync(daemon.Soon);
        var options = new DetachOptions { Timeout = TimeSpan.FromHours(1), Reason = "a key", Actor = "a test" };
        var result = await task.DetachAsync(options, daemon.Soon);
        Assert.Equal((DetachOutcome.Detached, 3600L), (result.Outcome, result.Task.Timeout.Seconds));
        var how = result.Task.Detached;
        Assert.Equal((DetachCause.Requested, "a key", "a test"), (how.Cause, how.Reason, how.Actor.Name));
        Assert.Equal((task.Id, Placement.Background), ((await waiting).Id, (await waiting).Placement));

        Assert.Equal(DetachOutcome.AlreadyBackground, (await task.DetachAsync(null, daemon.Soon)).Outcome);
        Assert.Empty(await heeler.DetachSessionAsync("s", null, daemon.Soon));
        await task.CancelAsync(null, daemon.Soon);
        Assert.Equal(DetachOutcome.AlreadyFinished, (await task.DetachAsync(null, daemon.Soon)).Outcome);
        var other = await heeler.SpawnAsync(Held(daemon, "sleep 600", session: "s"), daemon.Soon);
        Assert.Equal(other.Id, Assert.Single(await heeler.DetachSessionAsync("s", null, daemon.Soon)).Task.Id);
        var events = await heeler.WatchEventsAsync(new WatchOptions { AfterRevision = 0, Types = { TaskEventType.Detached } })
            .OfType<WatchItem.Happened>().Take(2).ToListAsync(daemon.Soon);
        Assert.Equal([task.Id, other.Id], events.Select(item => item.Event.Task.Id));
    }

    /// <summary>F6</summary>
    [Fact]
    public async Task Whoever_stops_listening_lets_go()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var options = new SpawnOptions
        {
            Argv = ["sleep", "600"],
            Placement = Placement.Foreground,
            HolderWindow = TimeSpan.FromSeconds(1),
            Grace = TimeSpan.Zero,
        };
        var task = await heeler.SpawnAsync(options, daemon.Soon);
        await task.AttachAsync().FirstAsync(daemon.Soon);
        Assert.Equal(EndReason.OwnerGone, (await task.WaitAsync(daemon.Soon)).EndReason);
    }

    /// <summary>C9</summary>
    [Fact]
    public async Task What_nobody_knows_is_told_at_once()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        Func<Task>[] calls =
        [
            async () => await heeler.AttachAsync("shell-aaaaaaaaaa").ToListAsync(daemon.Soon),
            () => heeler.DetachAsync("shell-aaaaaaaaaa", null, daemon.Soon),
            () => heeler.WaitReleasedAsync("shell-aaaaaaaaaa", daemon.Soon),
        ];
        foreach (var call in calls)
            Assert.True((await Assert.ThrowsAsync<HeelerRefusedException>(call)).Is(ErrorReason.TaskNotFound));
        Assert.Throws<ArgumentNullException>(() => heeler.AttachAsync(null!));
    }

    [Fact]
    public async Task A_hold_gives_up_when_it_was_told_to()
    {
        await using var daemon = await Daemon.StartAsync();
        var task = await daemon.Client().SpawnAsync(Held(daemon, "sleep 600"), daemon.Soon);
        var options = new AttachOptions { GiveUpAfter = TimeSpan.FromMilliseconds(100) };
        await using var hold = task.AttachAsync(options, daemon.Soon).GetAsyncEnumerator();
        Assert.True(await hold.MoveNextAsync());
        await daemon.KillAsync();
        await Assert.ThrowsAsync<DaemonNotRunningException>(async () => await hold.MoveNextAsync());
    }

    /// <summary>T4, T5</summary>
    [Fact]
    public async Task Every_rule_that_is_given_is_in_force()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(
            new SpawnOptions
            {
                Argv = ["sleep", "600"],
                Placement = Placement.Foreground,
                ForegroundTimeout = Timeout.InfiniteTimeSpan,
                OnForegroundTimeout = ForegroundTimeoutAction.Cancel,
                OnHolderGone = HolderGoneAction.Keep,
                HolderWindow = TimeSpan.Zero,
                Lingering = LingeringPolicy.Kill,
                IdleTimeout = TimeSpan.FromHours(2),
                StaleAfter = TimeSpan.FromMilliseconds(1),
                StaleAction = StaleAction.Notify,
            },
            daemon.Soon);
        var now = await task.GetAsync(daemon.Soon);
        Assert.True(now.ForegroundTimeout.Seconds > 100_000_000_000);
        Assert.Equal(
            (ForegroundTimeoutAction.Cancel, HolderGoneAction.Keep, 0L),
            (now.OnForegroundTimeout, now.OnHolderGone, now.HolderWindow.Seconds));
        Assert.Equal(
            (LingeringPolicy.Kill, 7200L, StaleAction.Notify),
            (now.Lingering, now.IdleTimeout.Seconds, now.StaleAction));
        var stale = new WatchOptions { AfterRevision = 0, Types = { TaskEventType.Stale } };
        var told = await heeler.WatchEventsAsync(stale).OfType<WatchItem.Happened>().FirstAsync(daemon.Soon);
        Assert.Equal((task.Id, true), (told.Event.Task.Id, told.Event.Task.Stale));
    }

    /// <summary>A1</summary>
    [Fact]
    public async Task What_was_done_differently_is_noticed()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "sleep 600 &" }, daemon.Soon);
        var notice = Assert.Single(task.Notices);
        Assert.Equal(SpawnNoticeType.TrailingAmpersand, notice.Type);
        Assert.NotEmpty(notice.Message);
        Assert.Empty(heeler.GetTask(task.Id).Notices);
    }

    /// <summary>In the foreground for long, with a window that a slow machine keeps.</summary>
    private static SpawnOptions Held(Daemon daemon, string script, string? session = null) => new()
    {
        Shell = script,
        SessionId = session,
        WorkingDirectory = daemon.Path(""),
        Placement = Placement.Foreground,
        ForegroundTimeout = Timeout.InfiniteTimeSpan,
        HolderWindow = _long,
    };

    private static string Text(IEnumerable<AttachItem> items) => string.Concat(
        items.OfType<AttachItem.Output>().SelectMany(item => item.Chunks).Select(chunk => chunk.Data.ToStringUtf8()));
}
