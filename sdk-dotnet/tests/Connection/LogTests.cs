using Xunit;

namespace Heeler.Client.Tests;

/// <summary>The entries in the host's log.</summary>
public sealed class LogTests : IDisposable
{
    private readonly HostLog _log = new();

    public void Dispose() => _log.Dispose();

    [Fact]
    public async Task A_run_that_succeeds_logs_no_failure()
    {
        await using var daemon = await Daemon.StartAsync();
        using var heeler = Client(daemon);
        var result = await heeler.RunAsync(new SpawnOptions { Shell = "echo out" }, null, daemon.Soon);
        Assert.Equal((0, "out\n"), (result.ExitCode, result.Stdout));
        Assert.Empty(_log.Notable);
        Assert.DoesNotContain(_log.Texts, text => text.Contains("cancel", StringComparison.OrdinalIgnoreCase));
    }

    [Fact]
    public async Task A_stream_that_its_reader_leaves_logs_no_failure()
    {
        await using var daemon = await Daemon.StartAsync();
        using var heeler = Client(daemon);
        var task = await heeler.SpawnAsync(new SpawnOptions { Argv = ["true"] }, daemon.Soon);
        Assert.NotEmpty(await task.EventsAsync(daemon.Soon).ToListAsync(daemon.Soon));
        await heeler.WatchEventsAsync(null, daemon.Soon).FirstAsync(daemon.Soon);
        await foreach (var _ in heeler.AttachAsync(task.Id, null, daemon.Soon)) break;
        Assert.Empty(_log.Notable);
    }

    [Fact]
    public async Task A_call_that_its_token_ends_logs_no_failure()
    {
        await using var daemon = await Daemon.StartAsync();
        using var heeler = Client(daemon);
        var task = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, daemon.Soon);
        using var stop = new CancellationTokenSource();
        var watching = Task.Run(async () =>
        {
            await foreach (var _ in heeler.WatchEventsAsync(null, stop.Token)) await stop.CancelAsync();
        });
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => watching);
        using var soon = new CancellationTokenSource();
        var waiting = task.WaitAsync(soon.Token);
        await heeler.ListQueuesAsync(daemon.Soon);
        await soon.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => waiting);
        Assert.Empty(_log.Notable);
    }

    [Fact]
    public async Task A_worker_that_ends_or_leaves_its_task_logs_no_failure()
    {
        await using var daemon = await Daemon.StartAsync();
        using var heeler = Client(daemon);
        await heeler.HostAsync(new HostOptions(), (work, cancelled) => work.NoteAsync("here", cancelled), daemon.Soon);
        await (await heeler.RegisterAsync(new HostOptions(), daemon.Soon)).DisposeAsync();
        var task = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, daemon.Soon);
        await using (var work = await heeler.JoinAsync(task.Id, daemon.Soon)) await work.NoteAsync("there", daemon.Soon);
        Assert.Empty(_log.Notable);
    }

    [Fact]
    public async Task A_refusal_is_logged()
    {
        await using var daemon = await Daemon.StartAsync();
        using var heeler = Client(daemon);
        await Assert.ThrowsAsync<HeelerRefusedException>(() => heeler.WaitAsync("shell-aaaaaaaaaa", daemon.Soon));
        Assert.Contains("NotFound", Assert.Single(_log.Notable), StringComparison.Ordinal);
    }

    private HeelerClient Client(Daemon daemon) =>
        HeelerClient.Connect(new HeelerClientOptions { Address = daemon.Address, LoggerFactory = _log });
}
