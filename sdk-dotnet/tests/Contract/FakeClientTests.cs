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

    private sealed class FakeClient : HeelerClient
    {
        internal SpawnRequest? Spawned { get; private set; }

        public override Task<SpawnResponse> SpawnAsync(SpawnRequest request, CancellationToken cancellationToken = default)
        {
            Spawned = request;
            return Task.FromResult(new SpawnResponse { Task = new BackgroundTask { Id = "shell-a" } });
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
