using System.Runtime.CompilerServices;
using Grpc.Core;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Contract;

/// <summary>A user's test replaces the client by a subclass, without a daemon.</summary>
public sealed class FakeClientTests
{
    [Fact]
    public async Task One_overridden_call_serves_its_short_forms_and_the_handle()
    {
        using var heeler = new FakeClient();
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "exit 3" });
        Assert.Equal("exit 3", heeler.Spawned?.Spec.Shell.Script);
        Assert.Equal(3, (await task.WaitAsync()).ExitCode);
        Assert.Equal(TaskState.Failed, (await task.GetAsync()).State);
        Assert.Equal(3, (await heeler.WaitAsync("shell-a")).ExitCode);
    }

    [Fact]
    public async Task A_fake_can_refuse()
    {
        using var heeler = new FakeClient();
        var error = await Assert.ThrowsAsync<HeelerRefusedException>(() => heeler.GetTask("shell-a").CancelAsync());
        Assert.True(error.Is(ErrorReason.TaskNotFound));
    }

    [Fact]
    public async Task A_member_that_is_not_overridden_says_so()
    {
        using var heeler = new FakeClient();
        var error = await Assert.ThrowsAsync<InvalidOperationException>(() => heeler.ListQueuesAsync());
        Assert.Contains("override", error.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_fake_serves_the_session()
    {
        using var heeler = new FakeClient();
        var session = heeler.Session("s");
        Assert.Equal("shell-a", (await session.SpawnAsync(new SpawnOptions { Shell = "exit 3" })).Id);
        Assert.Equal("s", heeler.Spawned?.Spec.SessionId);
        Assert.Equal(new SessionCounts(1, 2), await session.CountsAsync());
    }

    [Fact]
    public async Task A_fake_worker_serves_a_hosted_body()
    {
        using var heeler = new FakeClient();
        var ended = await heeler.Session("s").HostAsync(new HostOptions(), BodyAsync);
        Assert.Equal("read 1 file", ended.Result.Text);
        await Assert.ThrowsAsync<InvalidOperationException>(() => new FakeWork().HeartbeatAsync());

        static async Task<WorkResult> BodyAsync(HeelerWork work, CancellationToken cancelled)
        {
            await work.ToolCallAsync("read", "file", cancelled);
            return $"read {((FakeWork)work).Blocks} file";
        }
    }

    /// <summary>E9</summary>
    [Fact]
    public async Task A_wait_for_idle_starts_over_when_the_events_since_are_lost()
    {
        using var heeler = new FakeClient();
        await heeler.Session("s").WaitUntilIdleAsync();
        Assert.Equal(2, heeler.Watches);
    }

    [Fact]
    public async Task A_handle_without_a_client_says_so()
    {
        await Assert.ThrowsAsync<InvalidOperationException>(() => new FakeTask().WaitAsync());
        await Assert.ThrowsAsync<InvalidOperationException>(() => new FakeSession().CountsAsync());
    }

    [Fact]
    public void The_factory_makes_answers_as_the_daemon_gives_them()
    {
        using var heeler = new FakeClient();
        Assert.Equal((TaskState.Running, null), State(HeelerModelFactory.BackgroundTask()));
        Assert.Equal((TaskState.Completed, 0), State(HeelerModelFactory.BackgroundTask(exitCode: 0)));
        Assert.Equal((TaskState.Failed, 3), State(HeelerModelFactory.BackgroundTask(exitCode: 3)));
        Assert.Empty(HeelerModelFactory.CancelResult().Task.Survivors);
        var survived = HeelerModelFactory.CancelResult("shell-b", CancelOutcome.Requested, new ProcessInfo { Pid = 7 }).Task;
        Assert.Equal((TaskState.Stopping, 7), (survived.State, Assert.Single(survived.Survivors).Pid));
        var run = HeelerModelFactory.RunResult(heeler, stdout: "out");
        Assert.Equal((0, "out", run.Task.Id), (run.ExitCode, run.Stdout, run.Handle.Id));
        Assert.True(HeelerModelFactory.Refusal(ErrorReason.QueueFull).Is(ErrorReason.QueueFull));

        static (TaskState, int?) State(BackgroundTask task) => (task.State, task.ExitCode);
    }

    private sealed class FakeTask : HeelerTask;

    private sealed class FakeSession : HeelerSession;

    private sealed class FakeWork : HeelerWork
    {
        private WorkResult? _result;

        internal int Blocks { get; private set; }

        public override Task<BackgroundTask?> AdmittedAsync(CancellationToken cancellationToken = default) =>
            Task.FromResult<BackgroundTask?>(null);

        public override Task ReportAsync(WorkProgress progress, CancellationToken cancellationToken = default)
        {
            Blocks += progress.Blocks.Count;
            return Task.CompletedTask;
        }

        public override Task DeliverAsync(WorkResult result, CancellationToken cancellationToken = default)
        {
            _result = result;
            return Task.CompletedTask;
        }

        public override Task<BackgroundTask> EndedAsync(CancellationToken cancellationToken = default) =>
            Task.FromResult(new BackgroundTask { Result = new WorkerResult { Text = _result?.Text } });
    }

    private sealed class FakeClient : HeelerClient
    {
        internal SpawnRequest? Spawned { get; private set; }

        internal int Watches { get; private set; }

        public override Task<SpawnResponse> SpawnAsync(SpawnRequest request, CancellationToken cancellationToken = default)
        {
            Spawned = request;
            return Task.FromResult(new SpawnResponse { Task = new BackgroundTask { Id = "shell-a" } });
        }

        public override Task<HeelerWork> RegisterAsync(WorkRegister request, CancellationToken cancellationToken = default) =>
            Task.FromResult<HeelerWork>(new FakeWork());

        public override Task<ListSessionsResponse> ListSessionsAsync(
            ListSessionsRequest request, CancellationToken cancellationToken = default)
        {
            var live = new SessionActivity { SessionId = request.SessionId, Agents = 1, Shells = 2 };
            return Task.FromResult(new ListSessionsResponse { Sessions = { new SessionInfo { Activity = live } } });
        }

        public override async IAsyncEnumerable<WatchItem> WatchEventsAsync(
            WatchOptions? options = null, [EnumeratorCancellation] CancellationToken cancellationToken = default)
        {
            await Task.Yield();
            Watches++;
            if (Watches == 1)
            {
                yield return new WatchItem.Initial(HeelerModelFactory.BackgroundTask());
                yield return new WatchItem.Reached(new Bookmark());
                throw HeelerModelFactory.Refusal(ErrorReason.RevisionOutOfRange);
            }
            yield return new WatchItem.Reached(new Bookmark());
        }

        public override Task<WaitResponse> WaitAsync(WaitRequest request, CancellationToken cancellationToken = default)
        {
            var ended = new BackgroundTask { State = TaskState.Failed, Outcome = new Outcome { ExitCode = 3 } };
            return Task.FromResult(new WaitResponse { Satisfied = true, Met = { ended } });
        }

        public override Task<CancelResponse> CancelAsync(CancelRequest request, CancellationToken cancellationToken = default) =>
            throw new HeelerRefusedException(StatusCode.NotFound, ErrorReason.TaskNotFound, "no such task");
    }
}
