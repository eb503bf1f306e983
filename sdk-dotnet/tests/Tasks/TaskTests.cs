using System.Text;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>Spawn, Cancel, List, Inspect, Wait, Remove and Shutdown.</summary>
public sealed class TaskTests
{
    /// <summary>S1, L4, L6</summary>
    [Fact]
    public async Task A_task_is_spawned_waited_for_and_removed()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(
            new SpawnOptions
            {
                Shell = "test \"$COLOUR-${HOME-none}\" = red-none && exit 4",
                ShellProgram = "/bin/sh",
                SessionId = "s",
                Name = "n",
                Kind = TaskKind.Agent,
                Environment = { ["COLOUR"] = "red", ["HOME"] = null },
                Labels = { ["team"] = "blue" },
                WorkingDirectory = "/",
                Timeout = TimeSpan.FromMinutes(5),
                Stop = new() { Grace = TimeSpan.FromSeconds(1), Signal = "SIGINT" },
            },
            daemon.Soon);
        var ended = await task.WaitAsync(daemon.Soon);
        Assert.Equal(4, ended.ExitCode);
        Assert.Equal(TaskState.Failed, ended.State);
        var spec = ended.Spec;
        Assert.Equal(("s", "n", TaskKind.Agent, "/"), (spec.SessionId, spec.Name, spec.Kind, spec.WorkingDirectory));
        Assert.Equal("blue", spec.Labels["team"]);
        Assert.Equal(TimeSpan.FromMinutes(5), spec.Timeout.ToTimeSpan());
        Assert.Equal(("SIGINT", 1L), (spec.Stop.Signal, spec.Stop.Grace.Seconds));

        await task.RemoveAsync(daemon.Soon);
        var error = await Assert.ThrowsAsync<HeelerRefusedException>(() => task.GetAsync(daemon.Soon));
        Assert.Equal(ErrorReason.TaskNotFound, error.Reason);
    }

    /// <summary>S9</summary>
    [Fact]
    public async Task A_request_id_of_the_caller_starts_one_task()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var options = new SpawnOptions { Argv = ["sleep", "600"], RequestId = "mine" };
        var first = await heeler.SpawnAsync(options, daemon.Soon);
        await daemon.KillAsync();
        await daemon.RestartAsync();
        var again = await heeler.SpawnAsync(options, daemon.Soon);
        Assert.Equal(first.Id, again.Id);
        Assert.Equal("mine", options.ToRequest().RequestId);
    }

    /// <summary>S9</summary>
    [Fact]
    public async Task The_same_options_twice_start_two_tasks()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var options = new SpawnOptions { Argv = ["true"] };
        var first = await heeler.SpawnAsync(options, daemon.Soon);
        var second = await heeler.SpawnAsync(options, daemon.Soon);
        var third = await heeler.RunAsync(options, null, daemon.Soon);
        Assert.Equal(3, new HashSet<string> { first.Id, second.Id, third.Handle.Id }.Count);
    }

    /// <summary>C4, C9, C11, C14</summary>
    [Fact]
    public async Task Cancel_ends_the_whole_tree_and_proves_it()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(
            new SpawnOptions { Shell = "trap '' TERM; setsid sleep 600 & sleep 600 & wait; sleep 600" }, daemon.Soon);
        var pids = await ProcessesAsync(heeler, task, 3, daemon.Soon);
        var options = new CancelOptions { Stop = new() { Grace = TimeSpan.Zero }, Reason = "superseded", Actor = "a test" };
        var result = await heeler.CancelBackgroundTaskAsync(task.Id, options, daemon.Soon);
        Assert.Equal(CancelOutcome.Requested, result.Outcome);
        Assert.Equal(TaskState.Cancelled, result.Task.State);
        Assert.NotEqual(ProofMethod.Unspecified, result.Task.Stop.Proof.Proven);
        Assert.Empty(result.Task.Survivors);
        Assert.Equal(("superseded", "a test"), (result.Task.Stop.Reason, result.Task.Stop.Actor.Name));
        Assert.All(pids, pid => Assert.False(Directory.Exists($"/proc/{pid}")));

        var again = await task.CancelAsync(cancellationToken: daemon.Soon);
        Assert.Equal(CancelOutcome.AlreadyFinished, again.Outcome);
    }

    /// <summary>C16</summary>
    [Fact]
    public async Task The_generated_client_cancels_by_id()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, daemon.Soon);
        var force = new CancelOptions { Force = true };
        var result = await heeler.Raw.CancelBackgroundTaskAsync(task.Id, force, daemon.Soon);
        Assert.Equal(TaskState.Cancelled, result.Task.State);
        var again = await heeler.Raw.CancelBackgroundTaskAsync(task.Id, daemon.Soon);
        Assert.Equal(CancelOutcome.AlreadyFinished, again.Outcome);
        Assert.Equal(again, await heeler.CancelBackgroundTaskAsync(task.Id, daemon.Soon));
        Assert.Equal(again, await task.CancelAsync(daemon.Soon));
    }

    /// <summary>C12</summary>
    [Fact]
    public async Task Cancel_reaches_a_session_a_filter_or_a_family()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        Task<HeelerTask> Sleep(string session, string? parent = null) => heeler.SpawnAsync(
            new SpawnOptions { Argv = ["sleep", "600"], SessionId = session, ParentId = parent, Labels = { ["of"] = session } },
            daemon.Soon);
        var (a, b, parent) = (await Sleep("a"), await Sleep("b"), await Sleep("c"));
        var child = await Sleep("c", parent.Id);

        var ofSession = await heeler.CancelAsync(new TaskFilter { SessionId = "a" }, null, daemon.Soon);
        Assert.Equal(a.Id, Assert.Single(ofSession).Task.Id);
        Assert.Empty(await heeler.CancelAsync(new TaskFilter { SessionId = "none" }, null, daemon.Soon));
        var matching = await heeler.CancelAsync(new TaskFilter { Labels = { ["of"] = "b" } }, null, daemon.Soon);
        Assert.Equal(b.Id, Assert.Single(matching).Task.Id);
        var result = await parent.CancelAsync(new CancelOptions { Cascade = true }, daemon.Soon);
        Assert.Equal(parent.Id, result.Task.Id);
        Assert.Equal(TaskState.Cancelled, (await child.GetAsync(daemon.Soon)).State);
    }

    /// <summary>L1</summary>
    [Fact]
    public async Task List_returns_every_task_once_across_pages()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var ids = new List<string>();
        for (var i = 0; i < 7; i++)
            ids.Add((await heeler.SpawnAsync(new SpawnOptions { Argv = ["true"], SessionId = "s" }, daemon.Soon)).Id);
        await heeler.WaitSessionAsync("s", null, daemon.Soon);
        var live = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, daemon.Soon);

        var all = new ListRequest { IncludeFinished = true, PageSize = 3 };
        var listed = await heeler.ListAsync(all).Select(task => task.Id).ToListAsync(daemon.Soon);
        ids.Reverse();
        Assert.Equal([live.Id, .. ids], listed);
        Assert.Equal(3, all.PageSize);
        Assert.Empty(all.PageToken);
        Assert.Equal(live.Id, (await heeler.ListAsync().SingleAsync(daemon.Soon)).Id);
        var removed = await heeler.RemoveAsync(new TaskFilter { SessionId = "s" }, daemon.Soon);
        Assert.Equal(ids.Order(), removed.Order());
    }

    /// <summary>L3</summary>
    [Fact]
    public async Task Inspect_returns_the_processes_and_the_end_of_the_output()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "echo 0123456789; sleep 600; true" }, daemon.Soon);
        await ProcessesAsync(heeler, task, 2, daemon.Soon);
        await task.ReadLinesAsync().FirstAsync(daemon.Soon);
        var shown = await heeler.InspectAsync(new InspectRequest { TaskId = task.Id, OutputTailBytes = 4 }, daemon.Soon);
        Assert.Equal("789\n", string.Concat(shown.OutputTail.Chunks.Select(chunk => chunk.Data.ToStringUtf8())));
        Assert.Equal(shown.Task.Leader.Pid, shown.Processes[0].Pid);
    }

    /// <summary>L4</summary>
    [Fact]
    public async Task Wait_is_for_any_for_all_or_until_a_timeout()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var quick = await heeler.SpawnAsync(new SpawnOptions { Argv = ["true"] }, daemon.Soon);
        var slow = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, daemon.Soon);
        var any = await heeler.WaitAnyAsync([slow.Id, quick.Id], null, daemon.Soon);
        Assert.Equal((true, quick.Id), (any.Satisfied, Assert.Single(any.Met).Id));
        var all = await heeler.WaitAllAsync([slow.Id, quick.Id], TimeSpan.FromMilliseconds(50), daemon.Soon);
        Assert.False(all.Satisfied);
        Assert.Equal(slow.Id, Assert.Single(all.Pending).Id);
        Assert.Null(await slow.WaitAsync(TimeSpan.Zero, daemon.Soon));
        await slow.CancelAsync(null, daemon.Soon);
        Assert.NotNull(await slow.WaitAsync(Timeout.InfiniteTimeSpan, daemon.Soon));
    }

    /// <summary>R7</summary>
    [Fact]
    public async Task Shutdown_leaves_tasks_running_or_stops_them()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, daemon.Soon);
        Assert.Equal(1u, (await heeler.ShutdownAsync(null, daemon.Soon)).LiveTasks);
        await daemon.ExitedAsync();
        await daemon.RestartAsync();
        Assert.Equal(TaskState.Running, (await task.GetAsync(daemon.Soon)).State);
        var stop = new ShutdownRequest { Tasks = ShutdownTasks.Stop, Reason = "maintenance" };
        Assert.Equal(1u, (await heeler.ShutdownAsync(stop, daemon.Soon)).StoppedTasks);
        await daemon.ExitedAsync();
        await daemon.RestartAsync();
        Assert.Equal(EndReason.ServerShutdown, (await task.WaitAsync(daemon.Soon)).EndReason);
    }

    private static async Task<List<int>> ProcessesAsync(HeelerClient heeler, HeelerTask task, int count, CancellationToken soon)
    {
        while (true)
        {
            var processes = (await heeler.InspectAsync(task.Id, soon)).Processes;
            if (processes.Count >= count) return [.. processes.Select(process => process.Pid)];
            await Task.Delay(10, soon);
        }
    }
}
