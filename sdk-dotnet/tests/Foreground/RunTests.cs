using System.Text;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>RunAsync: commands in the foreground.</summary>
public sealed class RunTests
{
    /// <summary>F11</summary>
    [Fact]
    public async Task A_run_returns_output_and_exit_code()
    {
        await using var daemon = await Daemon.StartAsync();
        var result = await daemon.Client().RunAsync(Command(daemon, "echo out; echo err >&2; exit 4"), null, daemon.Soon);
        Assert.Equal((4, "out\n", "err\n"), (result.ExitCode, result.Stdout, result.Stderr));
        Assert.Equal((AttachEndReason.Finished, TaskState.Failed), (result.Reason, result.Task.State));
        Assert.Equal(result.Task.Id, result.Handle.Id);
        Assert.Empty(result.Notices);
        var killed = await daemon.Client().RunAsync(Command(daemon, "kill -KILL $$"), null, daemon.Soon);
        Assert.Equal(((int?)null, 9), (killed.ExitCode, killed.Task.Outcome.Signal.Number));
    }

    /// <summary>O5</summary>
    [Fact]
    public async Task Output_goes_to_the_stream_and_the_callback()
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
        Assert.Equal((AttachEndReason.Detached, TaskState.Running), (result.Reason, result.Task.State));
        Assert.Equal(DetachOutcome.Detached, (await detached.Task).Outcome);
    }

    /// <summary>F4</summary>
    [Fact]
    public async Task A_run_past_its_foreground_timeout_continues_in_the_background()
    {
        await using var daemon = await Daemon.StartAsync();
        var command = new SpawnOptions { Argv = ["sleep", "600"], Foreground = new() { Timeout = TimeSpan.FromMilliseconds(100) } };
        var result = await daemon.Client().RunAsync(command, null, daemon.Soon);
        Assert.Equal(
            (AttachEndReason.Detached, DetachCause.ForegroundTimeout), (result.Reason, result.Task.Detachment.Cause));
    }

    /// <summary>A1</summary>
    [Fact]
    public async Task A_script_with_a_trailing_ampersand_runs_in_the_background()
    {
        await using var daemon = await Daemon.StartAsync();
        var result = await daemon.Client().RunAsync(Command(daemon, "sleep 600 &"), null, daemon.Soon);
        Assert.Equal((AttachEndReason.Detached, TaskState.Running), (result.Reason, result.Task.State));
        Assert.Equal(SpawnNoticeType.TrailingAmpersand, Assert.Single(result.Notices).Type);
    }

    /// <summary>F6, R1</summary>
    [Fact]
    public async Task A_run_continues_across_a_crash_of_the_daemon()
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

    /// <summary>S2</summary>
    [Fact]
    public async Task A_refused_start_leaves_no_task()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var error = await Assert.ThrowsAsync<HeelerRefusedException>(
            () => heeler.RunAsync(new SpawnOptions { Argv = ["/no/such"] }, null, daemon.Soon));
        Assert.True(error.Is(ErrorReason.ProgramUnusable));
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => heeler.RunAsync(new SpawnOptions { Argv = ["true"] }, null, new CancellationToken(canceled: true)));
        var all = new ListRequest { IncludeFinished = true, IncludeFinishedForeground = true };
        Assert.Empty(await heeler.ListAsync(all).ToListAsync(daemon.Soon));
    }

    /// <summary>Without a foreground timeout, and with a window that is long enough for a slow machine.</summary>
    internal static SpawnOptions Command(Daemon daemon, string script) => new()
    {
        Shell = script,
        WorkingDirectory = daemon.Path(""),
        Foreground = new() { Timeout = Timeout.InfiniteTimeSpan, ReattachWindow = TimeSpan.FromMinutes(2) },
    };
}
