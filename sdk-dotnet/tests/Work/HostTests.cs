using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Work;

/// <summary>Hosted tasks: a body, its tokens and its end.</summary>
public sealed class HostTests
{
    private static readonly HostOptions _hosted = new() { SessionId = "s", Name = "review" };

    /// <summary>P2, P7</summary>
    [Fact]
    public async Task A_body_reports_and_its_value_is_the_result()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var ended = await heeler.Session("s").HostAsync(new HostOptions { Name = "review" }, ReviewAsync, daemon.Soon);
        Assert.Equal((TaskState.Completed, "two findings"), (ended.State, ended.Result.Text));
        Assert.Equal([1, 2, 3], ended.Result.Data.ToByteArray());
        Assert.Equal(("reads", 50u, 3ul), (ended.Progress.Intent, ended.Progress.Percent, ended.Progress.Counts["files"]));
        var seen = await heeler.InspectAsync(ended.Id, daemon.Soon);
        BlockKind[] kinds = [BlockKind.ToolCall, BlockKind.ToolResult, BlockKind.Thought, BlockKind.Text, BlockKind.Note];
        Assert.Equal(kinds, seen.Blocks.Select(block => block.Kind));
        Assert.Equal("grep", seen.Blocks[0].Name);

        async Task<WorkResult> ReviewAsync(HeelerWork work, CancellationToken cancelled)
        {
            var listed = await heeler.ListAsync(cancellationToken: cancelled).SingleAsync(cancelled);
            Assert.Equal((work.Handle.Id, TaskKind.Hosted, TaskState.Running), (listed.Id, listed.Spec.Kind, listed.State));
            Assert.Equal(1, (await heeler.Session("s").CountsAsync(cancelled)).Hosted);
            var step = new WorkProgress { Intent = "reads", Percent = 50, Counts = { ["files"] = 3 } };
            await work.ReportAsync(step.ToolCall("grep", "-rn TODO").ToolResult("grep", "2 lines"), cancelled);
            await work.ThoughtAsync("both are old", cancelled);
            await work.TextAsync("I found two.", cancelled);
            await work.NoteAsync("done", cancelled);
            return WorkResult.Ok("two findings", new byte[] { 1, 2, 3 });
        }
    }

    /// <summary>P2, C18</summary>
    [Fact]
    public async Task A_cancel_fires_the_soft_token_and_then_the_final_one()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var graces = new StopOptions { SoftGrace = TimeSpan.FromMilliseconds(300), Grace = TimeSpan.FromSeconds(60) };
        var hosting = heeler.HostAsync(_hosted with { Stop = graces }, BodyAsync, daemon.Soon);
        await ListedAsync(heeler, daemon);
        var why = new CancelOptions { Reason = "superseded", Actor = "a test" };
        var cancelled = Assert.Single(await heeler.Session("s").CancelAsync(why, daemon.Soon));
        var ended = await hosting;
        Assert.Equal((TaskState.Cancelled, "stopped: superseded"), (ended.State, ended.Result.Text));
        Assert.Equal(cancelled.Task, ended);
        Assert.False(ended.Stop.Forced);

        async Task<WorkResult> BodyAsync(HeelerWork work, CancellationToken cancelled)
        {
            await FiredAsync(daemon, work.Stopping);
            var asked = Assert.IsType<WorkCancel>(work.CancelRequest);
            Assert.Equal((WorkCancelMode.Soft, "a test"), (asked.Mode, asked.Actor.Name));
            await FiredAsync(daemon, cancelled);
            Assert.Equal(WorkCancelMode.Final, work.CancelRequest?.Mode);
            return WorkResult.Cancelled($"stopped: {asked.Reason}");
        }
    }

    /// <summary>C18, P7</summary>
    [Fact]
    public async Task A_soft_cancel_lets_the_present_tool_call_finish_and_keeps_the_partial_result()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var inCall = new TaskCompletionSource();
        var finishCall = new TaskCompletionSource();
        var calls = 0;
        var hosting = heeler.HostAsync(_hosted, BodyAsync, daemon.Soon);
        await inCall.Task.WaitAsync(daemon.Soon);
        var id = (await ListedAsync(heeler, daemon)).Id;
        var softly = new CancelOptions { Stop = new() { SoftGrace = TimeSpan.FromHours(1) }, Wait = false };
        Assert.Equal(TaskState.Stopping, (await heeler.CancelBackgroundTaskAsync(id, softly, daemon.Soon)).Task.State);
        finishCall.SetResult();
        var ended = await hosting;
        Assert.Equal((TaskState.Cancelled, "1 of 5"), (ended.State, ended.Result.Text));
        Assert.Equal((1, false), (calls, ended.Stop.Forced));
        var last = await heeler.GetTask(id).EventsAsync(daemon.Soon).LastAsync(daemon.Soon);
        Assert.Equal(ended.Result, last.Task.Result);
        Assert.Equal(ended.Result, (await heeler.InspectAsync(id, daemon.Soon)).Task.Result);

        async Task<WorkResult> BodyAsync(HeelerWork work, CancellationToken cancelled)
        {
            while (calls < 5 && !work.Stopping.IsCancellationRequested)
            {
                await work.ToolCallAsync("build", $"{calls}", cancelled);
                inCall.SetResult();
                await finishCall.Task.WaitAsync(cancelled);
                await FiredAsync(daemon, work.Stopping);
                calls++;
            }
            Assert.False(cancelled.IsCancellationRequested);
            return WorkResult.Cancelled($"{calls} of 5");
        }
    }

    /// <summary>P4</summary>
    [Fact]
    public async Task A_body_that_does_not_stop_in_time_learns_that_its_task_has_ended()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var killed = new TaskCompletionSource<CancelResult>();
        var hosting = heeler.HostAsync(_hosted, BodyAsync, daemon.Soon);
        var id = (await ListedAsync(heeler, daemon)).Id;
        var now = new CancelOptions { Stop = new() { SoftGrace = TimeSpan.Zero, Grace = TimeSpan.Zero } };
        killed.SetResult(await heeler.CancelBackgroundTaskAsync(id, now, daemon.Soon));
        var ended = await hosting;
        Assert.Equal((await killed.Task).Task, ended);
        Assert.Equal((TaskState.Cancelled, true), (ended.State, ended.Stop.Forced));
        Assert.Null(ended.Result);

        async Task<WorkResult> BodyAsync(HeelerWork work, CancellationToken cancelled)
        {
            await killed.Task;
            await FiredAsync(daemon, cancelled);
            await work.NoteAsync("after the end", CancellationToken.None);
            return "too late";
        }
    }

    /// <summary>P7</summary>
    [Fact]
    public async Task The_exception_of_a_body_fails_the_task_and_is_thrown_again()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var thrown = new NotSupportedException("no such tool");
        var error = await Assert.ThrowsAsync<NotSupportedException>(
            () => heeler.HostAsync(_hosted, (_, _) => Task.FromException(thrown), daemon.Soon));
        Assert.Same(thrown, error);
        // A cancellation that the task knows nothing of is a failure, too.
        await Assert.ThrowsAsync<TaskCanceledException>(
            () => heeler.HostAsync(_hosted, (_, _) => Task.FromException(new TaskCanceledException("HTTP timeout")), daemon.Soon));
        var all = new ListRequest { IncludeFinished = true };
        var ended = await heeler.ListAsync(all, daemon.Soon).ToListAsync(daemon.Soon);
        Assert.All(ended, task => Assert.Equal((TaskState.Failed, EndReason.WorkerFailed), (task.State, task.EndReason)));
        Assert.Equal(["HTTP timeout", "no such tool"], ended.Select(task => task.Result.Text).Order());
    }

    /// <summary>P2</summary>
    [Fact]
    public async Task A_body_that_throws_by_its_token_is_cancelled_and_the_task_is_returned()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var options = _hosted with { Stop = new() { SoftGrace = TimeSpan.Zero } };
        var hosting = heeler.HostAsync(options, (_, cancelled) => Task.Delay(Timeout.InfiniteTimeSpan, cancelled), daemon.Soon);
        await ListedAsync(heeler, daemon);
        await heeler.Session("s").CancelAsync(null, daemon.Soon);
        var ended = await hosting;
        Assert.Equal((TaskState.Cancelled, WorkerStatus.Cancelled), (ended.State, ended.Result.Status));
        Assert.False(ended.Stop.Forced);
    }

    /// <summary>F13, P7</summary>
    [Fact]
    public async Task The_token_of_the_caller_stops_the_body_and_the_task_keeps_the_reason()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        using var caller = CancellationTokenSource.CreateLinkedTokenSource(daemon.Soon);
        var begun = new TaskCompletionSource<string>();
        var options = new HostOptions { Name = "review" };
        var hosting = heeler.Session("s").HostAsync(options, BodyAsync, caller.Token);
        var id = await begun.Task.WaitAsync(daemon.Soon);
        options.Reason = "a newer commit was pushed";
        await caller.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => hosting);
        var ended = await heeler.GetTask(id).GetAsync(daemon.Soon);
        Assert.Equal((TaskState.Cancelled, "half of it"), (ended.State, ended.Result.Text));
        Assert.Equal("a newer commit was pushed", ended.Stop.Reason);

        async Task<WorkResult> BodyAsync(HeelerWork work, CancellationToken cancelled)
        {
            begun.SetResult(work.Handle.Id);
            await FiredAsync(daemon, cancelled);
            return "half of it";
        }
    }

    /// <summary>X1</summary>
    [Fact]
    public async Task The_body_of_a_task_that_has_ended_in_its_queue_does_not_run()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var queued = new HostOptions { Queue = "q", RequestId = "r1" };
        await using var first = await heeler.RegisterAsync(new HostOptions { Queue = "q" }, daemon.Soon);
        await using var waiting = await heeler.RegisterAsync(queued, daemon.Soon);
        await waiting.Handle.CancelAsync(daemon.Soon);
        var ended = await heeler.HostAsync(
            queued, (_, _) => Task.FromException(new InvalidOperationException("the body ran")), daemon.Soon);
        Assert.Equal((TaskState.Cancelled, waiting.Handle.Id), (ended.State, ended.Id));
    }

    /// <summary>X1</summary>
    [Fact]
    public async Task The_body_of_a_queued_task_runs_once_it_is_admitted()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var queued = new HostOptions { Queue = "q" };
        await using var first = await heeler.RegisterAsync(queued, daemon.Soon);
        var begun = false;
        var second = heeler.HostAsync(queued, BodyAsync, daemon.Soon);
        using var impatient = CancellationTokenSource.CreateLinkedTokenSource(daemon.Soon);
        var dropping = queued with { Name = "third", Reason = "not needed any more" };
        var third = heeler.HostAsync(dropping, (_, _) => throw new InvalidOperationException(), impatient.Token);
        await daemon.UntilAsync(async () => (await heeler.ListQueuesAsync(daemon.Soon))[0].Waiting == 2);
        await impatient.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => third);
        Assert.False(begun);
        var ended = await first.FinishAsync("first", daemon.Soon);
        Assert.True((await second).Revision > ended.Revision);
        var named = new ListRequest { Filter = new TaskFilter { Name = "third" }, IncludeFinished = true };
        var dropped = await heeler.ListAsync(named, daemon.Soon).SingleAsync(daemon.Soon);
        var stopped = await heeler.WaitAsync(dropped.Id, daemon.Soon);
        Assert.Equal((TaskState.Cancelled, "not needed any more"), (stopped.State, stopped.Stop.Reason));

        async Task<WorkResult> BodyAsync(HeelerWork work, CancellationToken cancelled)
        {
            await Task.Yield();
            begun = true;
            return "second";
        }
    }

    /// <summary>P3</summary>
    [Fact]
    public async Task A_registration_that_is_cancelled_leaves_no_task_behind()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        for (var n = 0; n < 30; n++)
        {
            using var caller = CancellationTokenSource.CreateLinkedTokenSource(daemon.Soon);
            caller.CancelAfter(TimeSpan.FromMilliseconds(0.2 * n));
            var hosting = heeler.HostAsync(_hosted, (_, cancelled) => Task.Delay(Timeout.InfiniteTimeSpan, cancelled), caller.Token);
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => hosting);
        }
        // Long before the end of a lease.
        await heeler.WaitSessionAsync("s", TimeSpan.FromSeconds(20), daemon.Soon);
        var all = new ListRequest { IncludeFinished = true };
        var tasks = await heeler.ListAsync(all, daemon.Soon).ToListAsync(daemon.Soon);
        Assert.All(tasks, task => Assert.Equal(TaskState.Cancelled, task.State));
    }

    /// <summary>P3</summary>
    [Fact]
    public async Task A_worker_whose_place_is_taken_is_told_and_the_task_goes_on()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var named = _hosted with { RequestId = "r1" };
        var hosting = heeler.HostAsync(named, (_, cancelled) => Task.Delay(Timeout.InfiniteTimeSpan, cancelled), daemon.Soon);
        var id = (await ListedAsync(heeler, daemon)).Id;
        await using var second = await heeler.RegisterAsync(named, daemon.Soon);
        Assert.Equal(id, second.Handle.Id);
        var replaced = await Assert.ThrowsAsync<HeelerRefusedException>(() => hosting);
        Assert.Equal(ErrorReason.WorkerReplaced, replaced.Reason);
        Assert.Equal("by the second", (await second.FinishAsync("by the second", daemon.Soon)).Result.Text);
    }

    private static async Task<BackgroundTask> ListedAsync(HeelerClient heeler, Daemon daemon)
    {
        var running = new WatchOptions { InitialState = true, Types = [TaskEventType.Started] };
        await foreach (var item in heeler.WatchEventsAsync(running, daemon.Soon))
        {
            if (item is WatchItem.Initial(var live)) return live;
            if (item is WatchItem.Happened(var started)) return started.Task;
        }
        throw new InvalidOperationException("the watch ended");
    }

    private static async Task FiredAsync(Daemon daemon, CancellationToken token)
    {
        using var either = CancellationTokenSource.CreateLinkedTokenSource(token, daemon.Soon);
        await Task.Delay(Timeout.InfiniteTimeSpan, either.Token).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        daemon.Soon.ThrowIfCancellationRequested();
    }
}
