using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>Queues and exclusive keys.</summary>
public sealed class QueueTests
{
    /// <summary>X1</summary>
    [Fact]
    public async Task A_queue_is_paused_given_slots_listed_and_resumed()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        Assert.Empty(await heeler.ListQueuesAsync(daemon.Soon));
        var paused = await heeler.UpdateQueueAsync("q", new UpdateQueueOptions { Slots = 2, Paused = true }, daemon.Soon);
        Assert.Equal((2u, true), (paused.Slots, paused.Paused));
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "exit 3", Queue = "q" }, daemon.Soon);
        Assert.Equal(TaskState.Queued, (await task.GetAsync(daemon.Soon)).State);
        var listed = Assert.Single(await heeler.ListQueuesAsync(daemon.Soon));
        Assert.Equal(("q", 1u, 0u), (listed.Name, listed.Waiting, listed.Running));
        var resumed = await heeler.UpdateQueueAsync("q", new UpdateQueueOptions { Paused = false }, daemon.Soon);
        Assert.Equal((2u, false), (resumed.Slots, resumed.Paused));
        Assert.Equal(3, (await task.WaitAsync(daemon.Soon)).ExitCode);
        var events = await task.EventsAsync().Select(item => item.Type).ToListAsync(daemon.Soon);
        Assert.Equal(
            [TaskEventType.Created, TaskEventType.Admitted, TaskEventType.Started, TaskEventType.Ended], events);
    }

    /// <summary>X1</summary>
    [Fact]
    public async Task A_held_key_refuses_a_task_by_reason_or_queues_it()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var first = new SpawnOptions { Argv = ["sleep", "600"], Exclusive = new() { Key = "k" } };
        var holder = await heeler.SpawnAsync(first, daemon.Soon);
        var refused = await Assert.ThrowsAsync<HeelerRefusedException>(
            () => heeler.SpawnAsync(new SpawnOptions { Argv = ["true"], Exclusive = new() { Key = "k" } }, daemon.Soon));
        Assert.True(refused.Is(ErrorReason.ExclusiveKeyHeld));
        Assert.Equal(holder.Id, refused.Metadata["task_id"]);
        var waiting = new SpawnOptions { Argv = ["true"], Exclusive = new() { Key = "k", Mode = ExclusiveMode.Queue } };
        var next = await heeler.SpawnAsync(waiting, daemon.Soon);
        Assert.Equal(TaskState.Queued, (await next.GetAsync(daemon.Soon)).State);
        await holder.CancelAsync(null, daemon.Soon);
        Assert.Equal(TaskState.Completed, (await next.WaitAsync(daemon.Soon)).State);
    }

    /// <summary>X1</summary>
    [Fact]
    public async Task A_run_waits_in_its_queue_and_can_be_cancelled_there()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        await heeler.UpdateQueueAsync("q", new UpdateQueueOptions { Paused = true }, daemon.Soon);
        using var stop = new CancellationTokenSource();
        var options = new RunOptions { OnStarted = _ => stop.CancelAfter(TimeSpan.FromMilliseconds(100)) };
        var command = new SpawnOptions { Shell = "echo ran", Queue = "q" };
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => heeler.RunAsync(command, options, stop.Token));
        var resume = new RunOptions
        {
            OnStarted = async _ => await heeler.UpdateQueueAsync("q", new UpdateQueueOptions { Paused = false }, daemon.Soon),
        };
        var result = await heeler.RunAsync(new SpawnOptions { Shell = "echo ran", Queue = "q" }, resume, daemon.Soon);
        Assert.Equal(("ran\n", 0), (result.Stdout, result.ExitCode));
    }

    [Fact]
    public async Task A_bad_setting_is_refused_by_field()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        (string Name, UpdateQueueOptions Options, string Field)[] cases =
        [
            ("", new UpdateQueueOptions { Slots = 1 }, "name"),
            ("q", new UpdateQueueOptions { Slots = 0 }, "slots"),
        ];
        foreach (var (name, options, field) in cases)
        {
            var error = await Assert.ThrowsAsync<HeelerRefusedException>(
                () => heeler.UpdateQueueAsync(name, options, daemon.Soon));
            Assert.Equal(field, Assert.Single(error.FieldViolations).Field);
        }
    }
}
