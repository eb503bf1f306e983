using System.Runtime.CompilerServices;
using Heeler.V1;
using Xunit;
using static Heeler.Client.Tests.RunTests;

namespace Heeler.Client.Tests;

/// <summary>RunAsync: callers that leave early, by the token or by an exception.</summary>
public sealed class RunCancellationTests
{
    /// <summary>C4, F5</summary>
    [Fact]
    public async Task The_token_stops_the_whole_tree()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        using var stop = new CancellationTokenSource();
        HeelerTask? task = null;
        var options = new RunOptions
        {
            OnStarted = started => task = started,
            OnOutput = async (_, _) => await stop.CancelAsync(),
            Cancel = new CancelOptions { Stop = new() { Grace = TimeSpan.Zero }, Reason = "enough" },
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

    /// <summary>F13</summary>
    [Theory]
    [InlineData(RunCancellation.Cancel)]
    [InlineData(RunCancellation.Detach)]
    public async Task The_reason_set_before_the_cancel_is_kept_with_the_task(RunCancellation action)
    {
        await using var daemon = await Daemon.StartAsync();
        using var stop = new CancellationTokenSource();
        HeelerTask? task = null;
        var options = new RunOptions
        {
            OnStarted = started => task = started,
            WhenCancelled = action,
            Cancel = new() { Reason = "not this one" },
            Detach = new() { Reason = "not this one" },
        };
        var running = daemon.Client().RunAsync(Command(daemon, "sleep 600"), options, stop.Token);
        options.Reason = "the user pressed a key: ü";
        await stop.CancelAsync();
        await Record.ExceptionAsync(() => running.WaitAsync(daemon.Soon));
        var left = await task!.GetAsync(daemon.Soon);
        Assert.Equal("the user pressed a key: ü", action == RunCancellation.Cancel ? left.Stop.Reason : left.Detachment.Reason);
    }

    /// <summary>F13</summary>
    [Fact]
    public async Task A_reason_that_is_too_long_is_shortened_and_the_command_still_stopped()
    {
        await using var daemon = await Daemon.StartAsync();
        HeelerTask? task = null;
        var message = new string('x', 4095) + "ü";
        var options = new RunOptions
        {
            OnStarted = started => task = started,
            OnOutput = (_, _) => throw new IOException(message),
        };
        await Assert.ThrowsAsync<IOException>(
            () => daemon.Client().RunAsync(Command(daemon, "echo up; sleep 600"), options, daemon.Soon));
        Assert.Equal(message[..4095], (await task!.GetAsync(daemon.Soon)).Stop.Reason);
    }

    /// <summary>C17</summary>
    [Fact]
    public async Task A_tree_that_survives_its_kill_is_not_reported_as_cancelled()
    {
        using var heeler = new UnkillableTask();
        using var stop = new CancellationTokenSource();
        var options = new RunOptions { OnStarted = _ => stop.Cancel() };
        var error = await Assert.ThrowsAsync<TaskSurvivedException>(
            () => heeler.RunAsync(new SpawnOptions { Argv = ["stuck"] }, options, stop.Token));
        Assert.Equal("shell-a was killed, but these processes still exist: 7 (stuck); the kill goes on", error.Message);
        Assert.Equal(7, Assert.Single(error.Task.Survivors).Pid);
    }

    /// <summary>F1, F5</summary>
    [Fact]
    public async Task The_token_detaches_if_the_options_say_so()
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
        Assert.Equal((AttachEndReason.Detached, "a key"), (result.Reason, result.Task.Detachment.Reason));
        Assert.Null(result.ExitCode);
        await File.WriteAllTextAsync(daemon.Path("go"), "", daemon.Soon);
        Assert.Equal(5, (await result.Handle.WaitAsync(daemon.Soon)).ExitCode);
    }

    [Fact]
    public async Task A_cancel_that_does_not_reach_the_daemon_is_not_reported_as_cancelled()
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

    /// <summary>F13</summary>
    [Fact]
    public async Task An_exception_from_a_callback_stops_the_command_and_its_message_is_the_reason()
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
        var ended = await task!.GetAsync(daemon.Soon);
        Assert.Equal((TaskState.Cancelled, "no room"), (ended.State, ended.Stop.Reason));
    }

    /// <summary>A client whose task cannot be killed.</summary>
    private sealed class UnkillableTask : HeelerClient
    {
        public override Task<SpawnResponse> SpawnAsync(SpawnRequest request, CancellationToken cancellationToken = default) =>
            Task.FromResult(new SpawnResponse { Task = new BackgroundTask { Id = "shell-a" } });

        public override async IAsyncEnumerable<AttachItem> AttachAsync(
            string taskId, AttachOptions? options = null, [EnumeratorCancellation] CancellationToken cancellationToken = default)
        {
            yield return new AttachItem.Attached(new BackgroundTask { Id = taskId });
            await Task.Delay(Timeout.Infinite, cancellationToken);
        }

        public override Task<CancelResponse> CancelAsync(CancelRequest request, CancellationToken cancellationToken = default)
        {
            var survivors = new Survivors { Processes = { new ProcessInfo { Pid = 7, Command = "stuck" } } };
            var stop = new StopRecord { Proof = new Proof { Survivors = survivors } };
            var task = new BackgroundTask { Id = "shell-a", State = TaskState.Stopping, Stop = stop };
            return Task.FromResult(new CancelResponse { Results = { new CancelResult { Task = task } } });
        }
    }
}
