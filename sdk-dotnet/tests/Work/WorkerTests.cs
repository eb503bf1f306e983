using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Work;

/// <summary>A worker across crashes of the daemon: its lease, its progress, its messages.</summary>
public sealed class WorkerTests
{
    private static readonly TimeSpan _shortLease = TimeSpan.FromSeconds(2);

    /// <summary>P3, P8, R1</summary>
    [Fact]
    public async Task A_worker_goes_on_across_a_crash_and_loses_and_repeats_nothing()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        await using var work = await heeler.RegisterAsync(new HostOptions(), daemon.Soon);
        await using var messages = work.MessagesAsync(daemon.Soon).GetAsyncEnumerator(daemon.Soon);
        await work.NoteAsync("one", daemon.Soon);
        await SendAsync(1);
        Assert.Equal("m1", await NextAsync());
        await SendAsync(2);
        await daemon.KillAsync();
        foreach (var text in (string[])["two", "three", "four"]) await work.NoteAsync(text, daemon.Soon);
        await daemon.RestartAsync();
        await SendAsync(3);
        Assert.Equal(["m2", "m3"], (string[])[await NextAsync(), await NextAsync()]);
        var ended = await work.FinishAsync("done", daemon.Soon);
        Assert.Equal((TaskState.Completed, 4ul), (ended.State, ended.Progress.BlockCount));
        var blocks = (await work.Handle.InspectAsync(daemon.Soon)).Blocks;
        Assert.Equal(["one", "two", "three", "four"], blocks.Select(block => block.Text));
        Assert.False(await messages.MoveNextAsync());

        Task SendAsync(int number)
        {
            var request = new SendMessageRequest { TaskId = work.Handle.Id, Text = $"m{number}", MessageId = $"id{number}" };
            return heeler.SendMessageAsync(request, daemon.Soon);
        }

        async Task<string> NextAsync() => await messages.MoveNextAsync() ? messages.Current.Text : "the end";
    }

    /// <summary>P3, P9</summary>
    [Fact]
    public async Task Reports_during_an_absence_of_the_daemon_wait_and_each_is_counted_once()
    {
        const int reports = 600;
        await using var daemon = await Daemon.StartAsync();
        await using var work = await daemon.Client().RegisterAsync(new HostOptions(), daemon.Soon);
        await work.NoteAsync("0", daemon.Soon);
        await daemon.KillAsync();
        var reported = 1;
        var reporting = ReportAsync();
        await daemon.UntilAsync(() => Volatile.Read(ref reported) >= 256);
        // The daemon crashes again while it is told.
        await daemon.RestartAsync();
        await daemon.KillAsync();
        await daemon.RestartAsync();
        await reporting;
        var ended = await work.FinishAsync("done", daemon.Soon);
        Assert.Equal((ulong)reports, ended.Progress.BlockCount);
        Assert.Equal($"{reports - 1}", (await work.Handle.InspectAsync(daemon.Soon)).Blocks[^1].Text);

        async Task ReportAsync()
        {
            while (reported < reports)
            {
                await work.NoteAsync($"{reported}", daemon.Soon);
                Interlocked.Increment(ref reported);
            }
        }
    }

    /// <summary>P8</summary>
    [Fact]
    public async Task Messages_arrive_once_and_in_order_across_crashes()
    {
        const int count = 60;
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        await using var work = await heeler.RegisterAsync(new HostOptions(), daemon.Soon);
        var received = new List<string>();
        var receiving = ReceiveAsync();
        for (var n = 1; n <= count; n++)
        {
            var request = new SendMessageRequest { TaskId = work.Handle.Id, Text = $"{n}", MessageId = $"id{n}" };
            await heeler.SendMessageAsync(request, daemon.Soon);
            if (n % 20 != 0) continue;
            await daemon.KillAsync();
            await daemon.RestartAsync();
        }
        await receiving;
        Assert.Equal(Enumerable.Range(1, count).Select(n => $"{n}"), received);
        Assert.Equal(TaskState.Completed, (await work.FinishAsync("", daemon.Soon)).State);

        async Task ReceiveAsync()
        {
            // Each stream continues where the one before it ended.
            while (received.Count < count)
            {
                await foreach (var message in work.MessagesAsync(daemon.Soon))
                {
                    received.Add(message.Text);
                    if (received.Count % 7 == 0 || received.Count == count) break;
                }
            }
        }
    }

    /// <summary>P3</summary>
    [Fact]
    public async Task The_lease_is_kept_by_itself_also_across_a_crash_and_a_disposed_worker_ends_its_task()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var work = await heeler.RegisterAsync(new HostOptions { Lease = _shortLease }, daemon.Soon);
        Assert.Null(await work.Handle.WaitAsync(2 * _shortLease, daemon.Soon));
        await daemon.KillAsync();
        await Task.Delay(2 * _shortLease, daemon.Soon);
        await daemon.RestartAsync();
        Assert.Null(await work.Handle.WaitAsync(2 * _shortLease, daemon.Soon));
        await work.DisposeAsync();
        await work.DisposeAsync();
        var ended = await heeler.GetTask(work.Handle.Id).GetAsync(daemon.Soon);
        Assert.Equal((TaskState.Cancelled, WorkerStatus.Cancelled), (ended.State, ended.Result.Status));
        await Assert.ThrowsAsync<ObjectDisposedException>(() => work.NoteAsync("too late", daemon.Soon));
    }

    /// <summary>P3</summary>
    [Fact]
    public async Task A_worker_that_was_away_for_longer_than_its_lease_learns_that_its_task_is_lost()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        using var child = Program.Start(daemon, "host");
        try
        {
            var id = Assert.IsType<string>(await child.StandardOutput.ReadLineAsync(daemon.Soon));
            Daemon.Signal(child.Id, Daemon.StopSignal);
            var lost = await heeler.WaitAsync(id, daemon.Soon);
            Assert.Equal((TaskState.Lost, EndReason.WorkerLost), (lost.State, lost.EndReason));
            Daemon.Signal(child.Id, Daemon.ContinueSignal);
            Assert.Equal("Lost ", await child.StandardOutput.ReadLineAsync(daemon.Soon));
            await child.WaitForExitAsync(daemon.Soon);
        }
        finally
        {
            child.Kill();
        }
    }

    /// <summary>T5</summary>
    [Fact]
    public async Task A_worker_that_hangs_is_stale_although_its_lease_is_kept()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var options = new HostOptions { Lease = _shortLease, Silence = new() { StaleAfter = 2 * _shortLease } };
        await using var work = await heeler.RegisterAsync(options, daemon.Soon);
        await using var events = work.Handle.EventsAsync(daemon.Soon).GetAsyncEnumerator(daemon.Soon);
        await UntilAsync(TaskEventType.Stale);
        await work.HeartbeatAsync(daemon.Soon);
        await UntilAsync(TaskEventType.Active);
        await work.FinishAsync("", daemon.Soon);

        async Task UntilAsync(TaskEventType type)
        {
            do Assert.True(await events.MoveNextAsync());
            while (events.Current.Type != type);
        }
    }

    /// <summary>P3</summary>
    [Fact]
    public async Task Without_a_daemon_the_worker_is_left_after_a_while()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client(retryFor: TimeSpan.FromMilliseconds(100));
        var work = await heeler.RegisterAsync(new HostOptions { Lease = TimeSpan.FromHours(1) }, daemon.Soon);
        await daemon.KillAsync();
        var delivering = work.DeliverAsync("done", daemon.Soon);
        await work.DisposeAsync().AsTask().WaitAsync(daemon.Soon);
        await Assert.ThrowsAnyAsync<HeelerException>(() => delivering);
        await Assert.ThrowsAsync<DaemonNotRunningException>(() => heeler.RegisterAsync(new HostOptions(), daemon.Soon));
    }
}
