using System.Text;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>Commands that are run as if they were the caller's own.</summary>
public sealed class RunTests
{
    /// <summary>F11</summary>
    [Fact]
    public async Task A_run_collects_output_and_gives_the_exit_code()
    {
        await using var daemon = await Daemon.StartAsync();
        var result = await daemon.Client().RunAsync(Command(daemon, "echo out; echo err >&2; exit 4"), null, daemon.Soon);
        Assert.Equal((4, "out\n", "err\n"), (result.ExitCode, result.Stdout, result.Stderr));
        Assert.Equal((ReleaseReason.Finished, TaskState.Failed), (result.Reason, result.Task.State));
        Assert.Equal(result.Task.Id, result.Handle.Id);
        Assert.Empty(result.Notices);
        var killed = await daemon.Client().RunAsync(Command(daemon, "kill -KILL $$"), null, daemon.Soon);
        Assert.Equal((null, 9), (killed.ExitCode, killed.Task.Outcome.Signal.Number));
    }

    /// <summary>O5</summary>
    [Fact]
    public async Task Output_goes_where_it_is_told_to()
    {
        await using var daemon = await Daemon.StartAsync();
        using var file = new MemoryStream();
        await using var buffered = new BufferedStream(file, 1 << 22);
        var errors = new StringBuilder();
        var options = new RunOptions
        {
            Stdout = buffered,
            OnOutput = (chunk, _) =>
            {
                Assert.Equal(OutputStream.Stderr, chunk.Stream);
                errors.Append(chunk.Data.ToStringUtf8());
                return ValueTask.CompletedTask;
            },
        };
        var command = Command(daemon, "head -c 3000000 /dev/urandom | tee bytes; echo err >&2");
        var result = await daemon.Client().RunAsync(command, options, daemon.Soon);
        Assert.Equal(await File.ReadAllBytesAsync(daemon.Path("bytes"), daemon.Soon), file.ToArray());
        Assert.Equal(("err\n", "", ""), (errors.ToString(), result.Stdout, result.Stderr));
    }

    /// <summary>C4, F5</summary>
    [Fact]
    public async Task The_token_stops_the_command_and_everything_it_started()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        using var stop = new CancellationTokenSource();
        HeelerTask? task = null;
        var options = new RunOptions
        {
            OnStarted = started => task = started,
            OnOutput = async (_, _) => await stop.CancelAsync(),
            Cancel = new CancelOptions { Grace = TimeSpan.Zero, Reason = "enough" },
        };
        var command = Command(daemon, "echo $$ >> pids; setsid sh -c 'echo $$ >> pids; echo up; exec sleep 600' & wait");
        var error = await Assert.ThrowsAnyAsync<OperationCanceledException>(() => heeler.RunAsync(command, options, stop.Token));
        Assert.Equal(stop.Token, error.CancellationToken);
        var pids = await File.ReadAllLinesAsync(daemon.Path("pids"), daemon.Soon);
        Assert.Equal(2, pids.Length);
        Assert.All(pids, pid => Assert.False(Directory.Exists($"/proc/{pid}")));
        var ended = await task!.GetAsync(daemon.Soon);
        Assert.Equal((EndReason.Cancelled, "enough"), (ended.EndReason, ended.Stop.Reason));
    }

    /// <summary>F1, F5</summary>
    [Fact]
    public async Task The_token_detaches_instead_if_it_was_told_to()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        using var leave = new CancellationTokenSource();
        var options = new RunOptions
        {
            OnStarted = _ => leave.CancelAfter(TimeSpan.FromMilliseconds(100)),
            WhenCancelled = RunCancellation.Detach,
            Detach = new DetachOptions { Reason = "a key" },
        };
        var command = Command(daemon, "echo up; until [ -e go ]; do sleep 0.01; done; exit 5");
        var result = await heeler.RunAsync(command, options, leave.Token);
        Assert.Equal((ReleaseReason.Detached, "a key"), (result.Reason, result.Task.Detached.Reason));
        Assert.Null(result.ExitCode);
        await File.WriteAllTextAsync(daemon.Path("go"), "", daemon.Soon);
        Assert.Equal(5, (await result.Handle.WaitAsync(daemon.Soon)).Outcome.ExitCode);
    }

    /// <summary>F1</summary>
    [Fact]
    public async Task A_detach_from_elsewhere_ends_the_run()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var detached = new TaskCompletionSource<DetachResult>();
        var options = new RunOptions
        {
            OnStarted = async task => detached.SetResult(await daemon.Client().DetachAsync(task.Id, null, daemon.Soon)),
        };
        var result = await heeler.RunAsync(Command(daemon, "sleep 600"), options, daemon.Soon);
        Assert.Equal((ReleaseReason.Detached, TaskState.Running), (result.Reason, result.Task.State));
        Assert.Equal(DetachOutcome.Detached, (await detached.Task).Outcome);
    }

    /// <summary>F4</summary>
    [Fact]
    public async Task A_run_that_takes_too_long_goes_on_in_the_background()
    {
        await using var daemon = await Daemon.StartAsync();
        var command = new SpawnOptions { Argv = ["sleep", "600"], ForegroundTimeout = TimeSpan.FromMilliseconds(100) };
        var result = await daemon.Client().RunAsync(command, null, daemon.Soon);
        Assert.Equal(
            (ReleaseReason.Detached, DetachCause.ForegroundTimeout), (result.Reason, result.Task.Detached.Cause));
    }

    /// <summary>A1</summary>
    [Fact]
    public async Task A_script_that_asks_for_the_background_holds_nobody()
    {
        await using var daemon = await Daemon.StartAsync();
        var result = await daemon.Client().RunAsync(Command(daemon, "sleep 600 &"), null, daemon.Soon);
        Assert.Equal((ReleaseReason.Detached, TaskState.Running), (result.Reason, result.Task.State));
        Assert.Equal(SpawnNoticeType.TrailingAmpersand, Assert.Single(result.Notices).Type);
    }

    /// <summary>F6, R1</summary>
    [Fact]
    public async Task A_run_goes_on_across_a_crash_of_the_daemon()
    {
        await using var daemon = await Daemon.StartAsync();
        var up = new TaskCompletionSource();
        var collected = new StringBuilder();
        var options = new RunOptions
        {
            OnOutput = (chunk, _) =>
            {
                collected.Append(chunk.Data.ToStringUtf8());
                up.TrySetResult();
                return ValueTask.CompletedTask;
            },
        };
        var command = Command(daemon, "echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 6");
        var running = daemon.Client().RunAsync(command, options, daemon.Soon);
        await up.Task.WaitAsync(daemon.Soon);
        await daemon.KillAsync();
        await File.WriteAllTextAsync(daemon.Path("go"), "", daemon.Soon);
        await daemon.RestartAsync();
        Assert.Equal(6, (await running).ExitCode);
        Assert.Equal("one\ntwo\n", collected.ToString());
    }

    [Fact]
    public async Task A_daemon_that_cannot_be_told_to_stop_the_command_is_no_stopped_command()
    {
        await using var daemon = await Daemon.StartAsync();
        using var stop = new CancellationTokenSource();
        var up = new TaskCompletionSource();
        var options = new RunOptions
        {
            OnOutput = (_, _) =>
            {
                up.TrySetResult();
                return ValueTask.CompletedTask;
            },
        };
        var heeler = daemon.Client(retryFor: TimeSpan.FromMilliseconds(100));
        var running = heeler.RunAsync(Command(daemon, "echo up; sleep 600"), options, stop.Token);
        await up.Task.WaitAsync(daemon.Soon);
        await daemon.KillAsync();
        await stop.CancelAsync();
        await Assert.ThrowsAnyAsync<HeelerException>(() => running.WaitAsync(daemon.Soon));
    }

    /// <summary>S2</summary>
    [Fact]
    public async Task What_cannot_be_started_is_refused_and_nothing_is_left()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var error = await Assert.ThrowsAsync<HeelerRefusedException>(
            () => heeler.RunAsync(new SpawnOptions { Argv = ["/no/such"] }, null, daemon.Soon));
        Assert.True(error.Is(ErrorReason.ProgramUnusable));
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => heeler.RunAsync(new SpawnOptions { Argv = ["true"] }, null, new CancellationToken(canceled: true)));
        Assert.Empty(await heeler.ListAsync(new ListRequest { IncludeFinished = true }).ToListAsync(daemon.Soon));
    }

    [Fact]
    public async Task Output_that_nobody_takes_ends_the_command()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        HeelerTask? task = null;
        var options = new RunOptions
        {
            OnStarted = started => task = started,
            OnOutput = (_, _) => throw new IOException("no room"),
        };
        var error = await Assert.ThrowsAsync<IOException>(
            () => heeler.RunAsync(Command(daemon, "echo up; sleep 600"), options, daemon.Soon));
        Assert.Equal("no room", error.Message);
        Assert.Equal(TaskState.Cancelled, (await task!.GetAsync(daemon.Soon)).State);
    }

    /// <summary>For as long as it takes, and with a window that a slow machine keeps.</summary>
    private static SpawnOptions Command(Daemon daemon, string script) => new()
    {
        Shell = script,
        WorkingDirectory = daemon.Path(""),
        ForegroundTimeout = Timeout.InfiniteTimeSpan,
        HolderWindow = TimeSpan.FromMinutes(2),
    };
}
