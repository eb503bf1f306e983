using System.Collections.Concurrent;
using System.Diagnostics;
using Heeler.AgentStory;
using Heeler.Client;
using Heeler.Client.Tests;
using Heeler.V1;
using Xunit;

namespace Heeler.AgentSessions.Tests;

/// <summary>The stories of agents as tasks, against the real daemon.</summary>
public sealed class StoryTests
{
    private static readonly ToolCall _quick = new("read", "a file", _ => Task.FromResult("read"));

    /// <summary>E9, T5, P4</summary>
    [Fact]
    public async Task A_host_is_idle_once_its_background_is_quiet_and_a_zombie_does_not_keep_it_from_that()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var stopped = new ConcurrentQueue<BackgroundTask>();
        var conversation = new Conversation(heeler, "s", TimeSpan.FromSeconds(1));
        conversation.ZombieStopped += (_, zombie) => stopped.Enqueue(zombie);
        var gate = new TaskCompletionSource<string>();
        var slow = conversation.StartAsync(new Subagent("slow", [.. Beats(), new ToolCall("wait", "", gate.Task.WaitAsync)]), daemon.Soon);
        _ = conversation.StartAsync(new Subagent("zombie", new ToolCall("hang", "", _ => new TaskCompletionSource<string>().Task)));
        var shell = await conversation.StartShellAsync($"until [ -e {daemon.Path("go")} ]; do sleep 0.01; done", daemon.Soon);
        await daemon.UntilAsync(() => heeler.Session("s").CountsAsync(daemon.Soon).Result is { Hosted: 2 });

        var turn = conversation.EndTurnAsync(daemon.Soon);
        await daemon.UntilAsync(() => stopped.Any(zombie => zombie.Spec.Name == "zombie"));
        Assert.False(turn.IsCompleted);
        await daemon.KillAsync();
        await daemon.RestartAsync();
        gate.TrySetResult("after all");
        await File.WriteAllTextAsync(daemon.Path("go"), "", daemon.Soon);
        var tasks = (await turn).ToDictionary(task => task.Spec.Name);
        Assert.Equal((TaskState.Cancelled, true), (tasks["zombie"].State, tasks["zombie"].Stop.Forced));
        Assert.Equal("no progress for 1 s", tasks["zombie"].Stop.Reason);
        Assert.Equal(0, (await heeler.WaitAsync(shell.Id, daemon.Soon)).ExitCode);
        Assert.Equal(tasks["slow"], await slow);

        // The conversation goes on.
        var next = await conversation.StartAsync(new Subagent("next", _quick), daemon.Soon);
        Assert.Equal((TaskState.Completed, "read"), (next.State, next.Result.Text));
        Assert.Equal(4, (await conversation.EndTurnAsync(daemon.Soon)).Count);

        // Its progress says that it lives.
        IEnumerable<ToolCall> Beats() => Enumerable.Repeat(new ToolCall("step", "", StepAsync), 5);
        async Task<string> StepAsync(CancellationToken cancelled)
        {
            await Task.Delay(TimeSpan.FromMilliseconds(300), cancelled);
            return "step";
        }
    }

    /// <summary>X1, P7</summary>
    [Fact]
    public async Task A_member_of_a_fleet_has_one_task_and_new_work_replaces_it()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var fleet = new Fleet(heeler, "fleet");
        var begun = new TaskCompletionSource();
        var gate = new TaskCompletionSource<string>();
        var held = new ToolCall("search", "", cancelled =>
        {
            begun.TrySetResult();
            return gate.Task.WaitAsync(cancelled);
        });
        var first = fleet.AssignAsync("scout", new Subagent("first", held, _quick), daemon.Soon);
        var other = fleet.AssignAsync("builder", new Subagent("other", new ToolCall("build", "", gate.Task.WaitAsync)), daemon.Soon);
        await begun.Task.WaitAsync(daemon.Soon);
        // Another manager of the same fleet.
        var again = new Fleet(daemon.Client(), "fleet");
        var secondBegun = new TaskCompletionSource();
        var second = again.AssignAsync("scout", new Subagent("second", new ToolCall("write", "", cancelled =>
        {
            secondBegun.SetResult();
            return gate.Task.WaitAsync(cancelled);
        })), daemon.Soon);
        var stopping = new TaskFilter { SessionId = "fleet", States = { TaskState.Stopping } };
        var watch = new WatchOptions { Filter = stopping, InitialState = true };
        await heeler.WatchEventsAsync(watch, daemon.Soon).FirstAsync(item => item is not WatchItem.Reached, daemon.Soon);
        Assert.False(secondBegun.Task.IsCompleted);
        gate.SetResult("done");
        var (replaced, finished) = (await first, await second);
        Assert.Equal((TaskState.Cancelled, EndReason.Replaced), (replaced.State, replaced.EndReason));
        Assert.StartsWith("done", replaced.Result.Text, StringComparison.Ordinal);
        Assert.False(replaced.Stop.Forced);
        Assert.Equal((TaskState.Completed, "done"), (finished.State, finished.Result.Text));
        Assert.True(finished.StartTime >= replaced.EndTime);
        Assert.Equal(TaskState.Completed, (await other).State);
        Assert.Empty(await fleet.MembersAsync(daemon.Soon));
    }

    /// <summary>C18, L2, P7</summary>
    [Fact]
    public async Task A_parent_stops_a_subagent_after_its_present_tool_call()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        await using var work = await heeler.RegisterAsync(new HostOptions { SessionId = "s" }, daemon.Soon);
        var seen = new List<string>();
        var deleting = new ToolCall("delete", "build/", async cancelled =>
        {
            // The parent has seen this call, and lets it finish.
            await Task.Delay(Timeout.InfiniteTimeSpan, work.Stopping).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
            Assert.False(cancelled.IsCancellationRequested);
            return "deleted";
        });
        var never = new ToolCall("delete", "src/", _ => throw new InvalidOperationException("it began a new call"));
        var running = new Subagent("cleaner", _quick, deleting, never).RunAsync(work, work.Cancelled);
        var parent = new ParentAgent(heeler, blocks =>
        {
            seen = [.. blocks.Select(block => $"{block.Kind} {block.Name}")];
            return blocks.Any(block => block.Name == "delete") ? "do not delete" : null;
        });
        var supervising = parent.SuperviseAsync(work.Handle.Id, daemon.Soon);
        await work.FinishAsync(await running, daemon.Soon);
        var ended = await supervising;
        Assert.Equal((TaskState.Cancelled, "read, deleted"), (ended.State, ended.Result.Text));
        Assert.Equal(("do not delete", "the parent", false), (ended.Stop.Reason, ended.Stop.Actor.Name, ended.Stop.Forced));
        Assert.Equal(["ToolCall read", "ToolResult read", "ToolCall delete"], seen);
        // A finished subagent is returned as it is.
        Assert.Equal(ended, await parent.SuperviseAsync(work.Handle.Id, daemon.Soon));
    }

    [Theory]
    [InlineData("idle", "stopped zombie: no progress for 1 s", "idle")]
    [InlineData("fleet", "scout: search: Cancelled, Replaced, result: much", "builder: build: Completed")]
    [InlineData("parent", "cleaner: Cancelled, do not delete, result: list .: done, deleted build/")]
    public async Task Each_story_is_a_program(string story, params string[] lines)
    {
        await using var daemon = await Daemon.StartAsync();
        string[] command = ["exec", typeof(Subagent).Assembly.Location, story];
        var start = new ProcessStartInfo(Environment.ProcessPath ?? "dotnet", command) { RedirectStandardOutput = true };
        start.Environment[HeelerAddress.EnvironmentVariable] = daemon.Address.ToString();
        using var program = Process.Start(start)!;
        var told = await program.StandardOutput.ReadToEndAsync(daemon.Soon);
        await program.WaitForExitAsync(daemon.Soon);
        Assert.Equal(0, program.ExitCode);
        Assert.All(lines, line => Assert.Contains(line, told, StringComparison.Ordinal));
    }
}
