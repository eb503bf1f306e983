using System.Net.Sockets;
using Grpc.Core;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>Bad input, and a daemon that is missing, away or refuses.</summary>
public sealed class BadInputTests
{
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task A_daemon_that_does_not_run_is_an_error_that_says_how_to_start_one(bool leftover)
    {
        var directory = Directory.CreateTempSubdirectory("heeler-net-");
        var address = HeelerAddress.Unix(directory.FullName + "/s.sock");
        using var socket = new Socket(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified);
        if (leftover) socket.Bind(new UnixDomainSocketEndPoint(address.Path!));
        using var heeler = HeelerClient.Connect(address);
        var error = await Assert.ThrowsAsync<DaemonNotRunningException>(() => heeler.WaitAsync("shell-aaaaaaaaaa"));
        Assert.Contains($"start one with `heeler serve --listen {address}`", error.Message, StringComparison.Ordinal);
        var watch = heeler.WatchEventsAsync();
        await Assert.ThrowsAsync<DaemonNotRunningException>(async () => await watch.FirstAsync());
        await Assert.ThrowsAsync<DaemonNotRunningException>(() => heeler.ShutdownAsync());
        directory.Delete(recursive: true);
    }

    [Fact]
    public void A_socket_path_that_is_too_long_is_refused_before_anything_is_opened()
    {
        var path = "/" + new string('x', 107);
        var error = Assert.Throws<HeelerAddressException>(() => HeelerClient.Connect(HeelerAddress.Unix(path)));
        Assert.Contains("108 bytes", error.Message, StringComparison.Ordinal);
    }

    /// <summary>N1</summary>
    [Theory]
    [InlineData(1000, 1000, true)]
    [InlineData(0, 1000, true)]
    [InlineData(1000, 0, true)]
    [InlineData(1001, 1000, false)]
    public void Only_a_daemon_of_the_user_or_of_root_is_trusted(uint listener, uint user, bool trusted)
    {
        var error = Record.Exception(() => Connector.CheckListener(listener, user));
        Assert.Equal(trusted, error is null);
    }

    [Fact]
    public async Task A_file_that_is_not_a_socket_is_named()
    {
        var file = Path.GetTempFileName();
        using var heeler = HeelerClient.Connect(HeelerAddress.Unix(file));
        var error = await Record.ExceptionAsync(() => heeler.WaitAsync("shell-aaaaaaaaaa"));
        Assert.Contains(file, Assert.IsType<HeelerException>(error, exactMatch: false).Message, StringComparison.Ordinal);
        File.Delete(file);
    }

    /// <summary>C9</summary>
    [Fact]
    public async Task An_unknown_id_is_refused_with_its_reason_and_values()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        Func<Task>[] calls =
        [
            () => heeler.WaitAsync("shell-aaaaaaaaaa", daemon.Soon),
            () => heeler.InspectAsync("shell-aaaaaaaaaa", daemon.Soon),
            () => heeler.CancelBackgroundTaskAsync("shell-aaaaaaaaaa", null, daemon.Soon),
            () => heeler.RemoveAsync("shell-aaaaaaaaaa", daemon.Soon),
            async () => await heeler.ReadLinesAsync("shell-aaaaaaaaaa").ToListAsync(daemon.Soon),
        ];
        foreach (var call in calls)
        {
            var error = await Assert.ThrowsAsync<HeelerRefusedException>(call);
            Assert.Equal((StatusCode.NotFound, ErrorReason.TaskNotFound), (error.StatusCode, error.Reason));
            Assert.Equal("TASK_NOT_FOUND", error.ReasonName);
            Assert.Equal("shell-aaaaaaaaaa", error.Metadata["task_id"]);
        }
    }

    /// <summary>S2</summary>
    [Fact]
    public async Task Bad_fields_are_named_and_nothing_is_started()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var negative = TimeSpan.FromSeconds(-1);
        (SpawnOptions Options, string Field, string Option)[] cases =
        [
            (new SpawnOptions(), "spec.command", "Shell or Argv"),
            (new SpawnOptions { Argv = [] }, "spec.argv.args", "Argv"),
            (new SpawnOptions { Shell = "true", Timeout = negative }, "spec.timeout", "Timeout"),
            (new SpawnOptions { Shell = "true", Stop = new() { Grace = negative } }, "spec.stop.grace", "Stop.Grace"),
            (new SpawnOptions { Shell = "true", Kind = (TaskKind)99 }, "spec.kind", "Kind"),
        ];
        foreach (var (options, field, option) in cases)
        {
            var error = await Assert.ThrowsAsync<HeelerRefusedException>(() => heeler.SpawnAsync(options, daemon.Soon));
            Assert.Equal(ErrorReason.InvalidField, error.Reason);
            var bad = Assert.Single(error.FieldViolations);
            Assert.Equal((field, option), (bad.Field, bad.Option));
            Assert.StartsWith($"{option} ({field}) ", error.Message, StringComparison.Ordinal);
        }
        var both = new SpawnOptions { Shell = "true", Argv = ["true"] };
        await Assert.ThrowsAsync<ArgumentException>(() => heeler.SpawnAsync(both, daemon.Soon));
        var all = new ListRequest { IncludeFinished = true, IncludeFinishedForeground = true };
        Assert.Empty(await heeler.ListAsync(all).ToListAsync(daemon.Soon));
    }

    /// <summary>N3</summary>
    [Fact]
    public async Task A_request_that_is_too_large_is_refused_and_others_are_served()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var large = new SpawnOptions { Shell = new string('x', 4 << 20) };
        var error = await Assert.ThrowsAsync<HeelerRefusedException>(() => heeler.SpawnAsync(large, daemon.Soon));
        Assert.Equal((StatusCode.OutOfRange, ErrorReason.RequestTooLarge), (error.StatusCode, error.Reason));
        Assert.Contains("max", error.Metadata);
        await heeler.SpawnAsync(new SpawnOptions { Argv = ["true"] }, daemon.Soon);
    }

    /// <summary>L5</summary>
    [Fact]
    public async Task A_cancelled_call_ends_at_once_and_ends_no_task()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, daemon.Soon);
        using var deadline = new CancellationTokenSource(TimeSpan.FromMilliseconds(50));
        var error = await Assert.ThrowsAnyAsync<OperationCanceledException>(() => task.WaitAsync(deadline.Token));
        Assert.Equal(deadline.Token, error.CancellationToken);
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => heeler.SpawnAsync(new SpawnOptions { Argv = ["true"] }, new CancellationToken(canceled: true)));
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            async () => await heeler.ListAsync().ToListAsync(new CancellationToken(canceled: true)));
        Assert.Equal(TaskState.Running, (await task.GetAsync(daemon.Soon)).State);
    }

    [Fact]
    public async Task A_grpc_deadline_on_the_generated_client_is_an_rpc_exception()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, daemon.Soon);
        var error = await Assert.ThrowsAsync<RpcException>(async () => await heeler.Raw.WaitAsync(
            new WaitRequest { Filter = new TaskFilter { TaskIds = { task.Id } } }, deadline: DateTime.UtcNow.AddMilliseconds(50)));
        // Either side may notice the deadline first, and their status codes differ.
        Assert.Contains(error.StatusCode, (StatusCode[])[StatusCode.DeadlineExceeded, StatusCode.Cancelled]);
    }

    /// <summary>R1</summary>
    [Fact]
    public async Task A_wait_continues_across_a_crash_of_the_daemon()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(
            new SpawnOptions { Shell = "until [ -e go ]; do sleep 0.01; done; exit 7", WorkingDirectory = daemon.Path("") },
            daemon.Soon);
        var waiting = task.WaitAsync(daemon.Soon);
        await daemon.KillAsync();
        await daemon.RestartAsync();
        await File.WriteAllTextAsync(daemon.Path("go"), "", daemon.Soon);
        Assert.Equal(7, (await waiting).ExitCode);
    }

    [Fact]
    public async Task A_daemon_that_stays_away_is_an_error_after_the_retry_time()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client(retryFor: TimeSpan.FromMilliseconds(100));
        await heeler.ListAsync().ToListAsync(daemon.Soon);
        await daemon.KillAsync();
        // The last error depends on how fast the broken connection is noticed.
        var error = await Record.ExceptionAsync(async () => await heeler.ListAsync().ToListAsync(daemon.Soon));
        Assert.True(error is DaemonNotRunningException or DaemonDisconnectedException, $"{error}");
    }
}
