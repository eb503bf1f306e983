using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>Foreground tasks: Attach, Detach, and clients that disconnect.</summary>
public sealed class AttachTests
{
    private static readonly TimeSpan _long = TimeSpan.FromMinutes(2);

    /// <summary>F11</summary>
    [Fact]
    public async Task Attach_returns_the_task_then_its_output_then_the_end()
    {
        await using var daemon = await Daemon.StartAsync();
        var task = await daemon.Client().SpawnAsync(Foreground(daemon, "printf out; exit 3"), daemon.Soon);
        var items = await task.AttachAsync().ToListAsync(daemon.Soon);
        Assert.Equal(Placement.Foreground, Assert.IsType<AttachItem.Attached>(items[0]).Task.Placement);
        Assert.Equal("out", Text(items));
        var ended = Assert.IsType<AttachItem.Ended>(items[^1]);
        Assert.Equal((AttachEndReason.Finished, 3), (ended.Reason, ended.Task.ExitCode));
        var again = await task.AttachAsync(new AttachOptions { TailBytes = 1 }).ToListAsync(daemon.Soon);
        Assert.Equal("t", Text(again));
    }

    /// <summary>F6</summary>
    [Fact]
    public async Task Attach_continues_after_the_last_byte_across_a_crash()
    {
        await using var daemon = await Daemon.StartAsync();
        var task = await daemon.Client().SpawnAsync(
            Foreground(daemon, "echo one; until [ -e go ]; do sleep 0.01; done; echo two"), daemon.Soon);
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
        Assert.Equal(TaskState.Completed, Assert.IsType<AttachItem.Ended>(items[^1]).Task.State);
    }

    /// <summary>F1, F6</summary>
    [Fact]
    public async Task A_task_detached_while_its_client_is_disconnected_ends_the_attachment()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(Foreground(daemon, "echo one; sleep 600"), daemon.Soon);
        await using var attached = task.AttachAsync(null, daemon.Soon).GetAsyncEnumerator();
        Assert.True(await attached.MoveNextAsync() && await attached.MoveNextAsync());
        await daemon.KillAsync();
        await daemon.RestartAsync();
        await daemon.Client().DetachAsync(task.Id, null, daemon.Soon);
        Assert.True(await attached.MoveNextAsync());
        var ended = Assert.IsType<AttachItem.Ended>(attached.Current);
        Assert.Equal((AttachEndReason.Detached, TaskState.Running), (ended.Reason, ended.Task.State));
        Assert.False(await attached.MoveNextAsync());
    }

    /// <summary>F1, F7</summary>
    [Fact]
    public async Task Detach_reports_its_effect()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(Foreground(daemon, "sleep 600", session: "s"), daemon.Soon);
        var session = new TaskFilter { SessionId = "s" };
        var waiting = task.WaitOutOfForegroundAsync(daemon.Soon);
        var options = new DetachOptions { Timeout = TimeSpan.FromHours(1), Reason = "a key", Actor = "a test" };
        var result = await task.DetachAsync(options, daemon.Soon);
        Assert.Equal((DetachOutcome.Detached, 3600L), (result.Outcome, result.Task.Detachment.Timeout.Seconds));
        var how = result.Task.Detachment;
        Assert.Equal((DetachCause.Requested, "a key", "a test"), (how.Cause, how.Reason, how.Actor.Name));
        Assert.Equal((task.Id, Placement.Background), ((await waiting).Id, (await waiting).Placement));

        Assert.Equal(DetachOutcome.AlreadyBackground, (await task.DetachAsync(null, daemon.Soon)).Outcome);
        Assert.Empty(await heeler.DetachAsync(session, null, daemon.Soon));
        await task.CancelAsync(null, daemon.Soon);
        Assert.Equal(DetachOutcome.AlreadyFinished, (await task.DetachAsync(null, daemon.Soon)).Outcome);
        var other = await heeler.SpawnAsync(Foreground(daemon, "sleep 600", session: "s"), daemon.Soon);
        Assert.Equal(other.Id, Assert.Single(await heeler.DetachAsync(session, null, daemon.Soon)).Task.Id);
        var events = await heeler.WatchEventsAsync(new WatchOptions { AfterRevision = 0, Types = { TaskEventType.Detached } })
            .OfType<WatchItem.Happened>().Take(2).ToListAsync(daemon.Soon);
        Assert.Equal([task.Id, other.Id], events.Select(item => item.Event.Task.Id));
    }

    /// <summary>F6</summary>
    [Fact]
    public async Task A_caller_that_stops_enumerating_disconnects()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var options = new SpawnOptions
        {
            Argv = ["sleep", "600"],
            Foreground = new() { ReattachWindow = TimeSpan.FromSeconds(1) },
            Stop = new() { Grace = TimeSpan.Zero },
        };
        var task = await heeler.SpawnAsync(options, daemon.Soon);
        await task.AttachAsync().FirstAsync(daemon.Soon);
        Assert.Equal(EndReason.ClientDisconnected, (await task.WaitAsync(daemon.Soon)).EndReason);
    }

    /// <summary>C9</summary>
    [Fact]
    public async Task An_unknown_id_is_refused_at_once()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        Func<Task>[] calls =
        [
            async () => await heeler.AttachAsync("shell-aaaaaaaaaa").ToListAsync(daemon.Soon),
            () => heeler.DetachAsync("shell-aaaaaaaaaa", null, daemon.Soon),
            () => heeler.WaitOutOfForegroundAsync("shell-aaaaaaaaaa", daemon.Soon),
        ];
        foreach (var call in calls)
            Assert.True((await Assert.ThrowsAsync<HeelerRefusedException>(call)).Is(ErrorReason.TaskNotFound));
        Assert.Throws<ArgumentNullException>(() => heeler.AttachAsync(null!));
    }

    [Fact]
    public async Task Attach_gives_up_after_its_limit()
    {
        await using var daemon = await Daemon.StartAsync();
        var task = await daemon.Client().SpawnAsync(Foreground(daemon, "sleep 600"), daemon.Soon);
        var options = new AttachOptions { GiveUpAfter = TimeSpan.FromMilliseconds(100) };
        await using var attached = task.AttachAsync(options, daemon.Soon).GetAsyncEnumerator();
        Assert.True(await attached.MoveNextAsync());
        await daemon.KillAsync();
        await Assert.ThrowsAsync<DaemonNotRunningException>(async () => await attached.MoveNextAsync());
    }

    /// <summary>T4, T5</summary>
    [Fact]
    public async Task Every_policy_of_the_options_is_in_force()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(
            new SpawnOptions
            {
                Argv = ["sleep", "600"],
                Foreground = new()
                {
                    Timeout = Timeout.InfiniteTimeSpan,
                    OnTimeout = ForegroundTimeoutAction.Cancel,
                    OnDisconnect = DisconnectAction.Keep,
                    ReattachWindow = TimeSpan.Zero,
                },
                OrphanPolicy = OrphanPolicy.Kill,
                IdleTimeout = TimeSpan.FromHours(2),
                Silence = new() { StaleAfter = TimeSpan.FromMilliseconds(1), OnStale = StaleAction.Notify },
            },
            daemon.Soon);
        var spec = (await task.GetAsync(daemon.Soon)).Spec;
        var foreground = spec.Foreground;
        Assert.True(foreground.Timeout.Seconds > 100_000_000_000);
        Assert.Equal(
            (ForegroundTimeoutAction.Cancel, DisconnectAction.Keep, 0L),
            (foreground.OnTimeout, foreground.OnDisconnect, foreground.ReattachWindow.Seconds));
        Assert.Equal(
            (OrphanPolicy.Kill, 7200L, StaleAction.Notify),
            (spec.OrphanPolicy, spec.IdleTimeout.Seconds, spec.Silence.OnStale));
        var stale = new WatchOptions { AfterRevision = 0, Types = { TaskEventType.Stale } };
        var item = await heeler.WatchEventsAsync(stale).OfType<WatchItem.Happened>().FirstAsync(daemon.Soon);
        Assert.Equal((task.Id, true), (item.Event.Task.Id, item.Event.Task.Stale));
    }

    /// <summary>A1</summary>
    [Fact]
    public async Task A_difference_between_request_and_task_is_a_notice()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "sleep 600 &" }, daemon.Soon);
        var notice = Assert.Single(task.Notices);
        Assert.Equal(SpawnNoticeType.TrailingAmpersand, notice.Type);
        Assert.NotEmpty(notice.Message);
        Assert.Empty(heeler.GetTask(task.Id).Notices);
    }

    /// <summary>Without a foreground timeout, and with a window that is long enough for a slow machine.</summary>
    private static SpawnOptions Foreground(Daemon daemon, string script, string? session = null) => new()
    {
        Shell = script,
        SessionId = session,
        WorkingDirectory = daemon.Path(""),
        Foreground = new() { Timeout = Timeout.InfiniteTimeSpan, ReattachWindow = _long },
    };

    private static string Text(IEnumerable<AttachItem> items) => string.Concat(
        items.OfType<AttachItem.Output>().SelectMany(item => item.Chunks).Select(chunk => chunk.Data.ToStringUtf8()));
}
