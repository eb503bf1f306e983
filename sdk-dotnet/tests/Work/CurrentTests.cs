using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Work;

/// <summary>A process that works on the task it runs in.</summary>
public sealed class CurrentTests
{
    /// <summary>P6, C18, P7</summary>
    [Fact]
    public async Task A_process_joins_its_own_task_and_hears_messages_and_a_soft_cancel()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var agent = await SpawnAsync(heeler, daemon);
        await heeler.SendMessageAsync(agent.Id, "hello", daemon.Soon);
        await ReportedAsync(heeler, agent, 1, daemon);
        await daemon.KillAsync();
        await daemon.RestartAsync();
        await heeler.SendMessageAsync(agent.Id, "again", daemon.Soon);
        await ReportedAsync(heeler, agent, 2, daemon);
        var softly = new CancelOptions { Stop = new() { SoftGrace = TimeSpan.FromHours(1) }, Reason = "enough" };
        var ended = (await agent.CancelAsync(softly, daemon.Soon)).Task;
        Assert.Equal((TaskState.Cancelled, "stopped: enough"), (ended.State, ended.Result.Text));
        // The result ended the soft phase, long before its time.
        Assert.NotNull(ended.Stop.Soft.EndTime);
        var blocks = (await agent.InspectAsync(daemon.Soon)).Blocks;
        Assert.Equal(["You ask: hello", "You ask: again"], blocks.Select(block => block.Text));
        Assert.Equal("waits for questions", ended.Progress.Intent);
    }

    /// <summary>P8</summary>
    [Fact]
    public async Task A_worker_that_leaves_a_task_of_processes_has_told_everything()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var agent = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"], Kind = TaskKind.Agent }, daemon.Soon);
        await using (var work = await heeler.JoinAsync(agent.Id, daemon.Soon))
        {
            Assert.Null(await work.AdmittedAsync(daemon.Soon));
            for (var n = 0; n < 200; n++) await work.NoteAsync($"{n}", daemon.Soon);
        }
        var seen = await agent.InspectAsync(daemon.Soon);
        Assert.Equal((TaskState.Running, 200ul), (seen.Task.State, seen.Blocks[^1].Number));
        await using var next = await heeler.JoinAsync(agent.Id, daemon.Soon);
        Assert.False(next.Cancelled.IsCancellationRequested);
    }

    [Fact]
    public async Task Outside_of_a_task_there_is_none()
    {
        await using var daemon = await Daemon.StartAsync();
        Assert.Null(await daemon.Client().CurrentAsync(daemon.Soon));
    }

    private static Task<HeelerTask> SpawnAsync(HeelerClient heeler, Daemon daemon)
    {
        var options = new SpawnOptions
        {
            Argv = Program.Command("current"),
            Kind = TaskKind.Agent,
            Environment = Program.Variables(),
        };
        return heeler.SpawnAsync(options, daemon.Soon);
    }

    private static async Task ReportedAsync(HeelerClient heeler, HeelerTask task, ulong blocks, Daemon daemon)
    {
        var options = new WatchOptions
        {
            InitialState = true,
            Filter = new TaskFilter { TaskIds = { task.Id } },
            Types = [TaskEventType.Progress, TaskEventType.Ended],
        };
        await foreach (var item in heeler.WatchEventsAsync(options, daemon.Soon))
        {
            var seen = item switch
            {
                WatchItem.Initial(var initial) => initial,
                WatchItem.Happened(var happened) => happened.Task,
                _ => null,
            };
            if (seen?.Progress?.BlockCount >= blocks) return;
            Assert.False(seen?.State is TaskState.Completed or TaskState.Failed, $"it ended: {seen?.Outcome}");
        }
    }
}
