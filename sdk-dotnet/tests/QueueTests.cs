using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>Tasks that wait for one another.</summary>
public sealed class QueueTests
{
    /// <summary>X1</summary>
    [Fact]
    public async Task A_queue_is_paused_widened_listed_and_resumed()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        Assert.Empty(await heeler.ListQueuesAsync(daemon.Soon));
        var paused = await heeler.UpdateQueueAsync("q", new QueueChange { Slots = 2, Paused = true }, daemon.Soon);
        Assert.Equal((2u, true), (paused.Slots, paused.Paused));
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "exit 3", Queue = "q" }, daemon.Soon);
        Assert.Equal(TaskState.Queued, (await task.GetAsync(daemon.Soon)).State);
        var listed = Assert.Single(await heeler.ListQueuesAsync(daemon.Soon));
        Assert.Equal(("q", 1u, 0u), (listed.Name, listed.Waiting, listed.Running));
        var resumed = await heeler.UpdateQueueAsync("q", new QueueChange { Paused = false }, daemon.Soon);
        Assert.Equal((2u, false), (resumed.Slots, resumed.Paused));
        Assert.Equal(3, (await task.WaitAsync(daemon.Soon)).Outcome.ExitCode);
        var events = await task.EventsAsync().Select(told => told.Type).ToListAsync(daemon.Soon);
        Assert.Equal(
            [TaskEventType.Created, TaskEventType.Admitted, TaskEventType.Started, TaskEventType.Ended], events);
    }

    /// <summary>X1</summary>
    [Fact]
    public async Task A_key_that_is_held_is_refused_by_name_or_waited_for()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var holder = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"], ExclusiveKey = "k" }, daemon.Soon);
        var refused = await Assert.ThrowsAsync<HeelerRefusedException>(
            () => heeler.SpawnAsync(new SpawnOptions { Argv = ["true"], ExclusiveKey = "k" }, daemon.Soon));
        Assert.True(refused.Is(ErrorReason.ExclusiveKeyHeld));
        Assert.Equal(holder.Id, refused.Metadata["task_id"]);
        var waiting = new SpawnOptions { Argv = ["true"], ExclusiveKey = "k", ExclusiveMode = ExclusiveMode.Queue };
        var next = await heeler.SpawnAsync(waiting, daemon.Soon);
        Assert.Equal(TaskState.Queued, (await next.GetAsync(daemon.Soon)).State);
        await holder.CancelAsync(null, daemon.Soon);
        Assert.Equal(TaskState.Completed, (await next.WaitAsync(daemon.Soon)).State);
    }

    /// <summary>X1</summary>
    [Fact]
    public async Task A_run_waits_for_its_turn_and_can_be_cancelled_while_it_does()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        await heeler.UpdateQueueAsync("q", new QueueChange { Paused = true }, daemon.Soon);
        using var stop = new CancellationTokenSource();
        var options = new RunOptions { OnStarted = _ => stop.CancelAfter(TimeSpan.FromMilliseconds(100)) };
        var command = new SpawnOptions { Shell = "echo ran", Queue = "q" };
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => heeler.RunAsync(command, options, stop.Token));
        var resume = new RunOptions
        {
            OnStarted = async _ => await heeler.UpdateQueueAsync("q", new QueueChange { Paused = false }, daemon.Soon),
        };
        var result = await heeler.RunAsync(new SpawnOptions { Shell = "echo ran", Queue = "q" }, resume, daemon.Soon);
        Assert.Equal(("ran\n", 0), (result.Stdout, result.ExitCode));
    }

    [Fact]
    public async Task A_bad_change_is_refused_by_name()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        (string Name, QueueChange Change, string Field)[] cases =
        [
            ("", new QueueChange { Slots = 1 }, "name"),
            ("q", new QueueChange { Slots = 0 }, "slots"),
        ];
        foreach (var (name, change, field) in cases)
        {
            var error = await Assert.ThrowsAsync<HeelerRefusedException>(
                () => heeler.UpdateQueueAsync(name, change, daemon.Soon));
            Assert.Equal(field, Assert.Single(error.FieldViolations).Field);
        }
    }
}
