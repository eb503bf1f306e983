using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Work;

/// <summary>Bad input of workers: a clear error, and nothing has changed.</summary>
public sealed class BadWorkTests
{
    /// <summary>S2</summary>
    [Fact]
    public async Task A_bad_option_is_named_and_nothing_is_created()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        (HostOptions Options, string Option)[] cases =
        [
            (new() { Lease = TimeSpan.Zero }, "Lease"),
            (new() { Lease = TimeSpan.FromDays(365) }, "Lease"),
            (new() { Lease = TimeSpan.FromSeconds(-1) }, "Lease"),
            (new() { Stop = new() { Signal = "SIGINT" } }, "Stop.Signal"),
            (new() { Stop = new() { SoftGrace = TimeSpan.FromSeconds(-1) } }, "Stop.SoftGrace"),
            (new() { SessionId = new string('x', 300) }, "SessionId"),
            (new() { Timeout = TimeSpan.Zero }, "Timeout"),
        ];
        foreach (var (options, option) in cases)
        {
            var began = false;
            var error = await Assert.ThrowsAsync<HeelerRefusedException>(() => heeler.HostAsync(options, BodyAsync, daemon.Soon));
            Assert.Equal(option, Assert.Single(error.FieldViolations).Option);
            Assert.False(began);

            Task BodyAsync(HeelerWork work, CancellationToken cancelled)
            {
                began = true;
                return Task.CompletedTask;
            }
        }
        Assert.Empty(await heeler.ListAsync(new ListRequest { IncludeFinished = true }, daemon.Soon).ToListAsync(daemon.Soon));
    }

    /// <summary>P3</summary>
    [Fact]
    public async Task A_task_that_is_unknown_or_has_a_worker_is_not_joined()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var unknown = await Assert.ThrowsAsync<HeelerRefusedException>(() => heeler.JoinAsync("hosted-aaaaaaaaaa", daemon.Soon));
        Assert.Equal(ErrorReason.TaskNotFound, unknown.Reason);
        await Assert.ThrowsAsync<HeelerRefusedException>(() => heeler.JoinAsync("../etc/passwd\0\n", daemon.Soon));
        var bad = await Assert.ThrowsAsync<HeelerRefusedException>(() => heeler.JoinAsync("", daemon.Soon));
        Assert.Equal("join.task_id", Assert.Single(bad.FieldViolations).Field);
        await using var first = await heeler.RegisterAsync(new HostOptions(), daemon.Soon);
        var taken = await Assert.ThrowsAsync<HeelerRefusedException>(() => heeler.JoinAsync(first.Handle.Id, daemon.Soon));
        Assert.Equal(ErrorReason.WorkerConnected, taken.Reason);
        await using (var second = await heeler.JoinAsync(new WorkJoin { TaskId = first.Handle.Id, TakeOver = true }, daemon.Soon))
        {
            var replaced = await Assert.ThrowsAsync<HeelerRefusedException>(() => first.EndedAsync(daemon.Soon));
            Assert.Equal(ErrorReason.WorkerReplaced, replaced.Reason);
            await second.FinishAsync("taken over", daemon.Soon);
        }
        await using var finished = await heeler.JoinAsync(first.Handle.Id, daemon.Soon);
        Assert.Equal("taken over", (await finished.EndedAsync(daemon.Soon)).Result.Text);
    }

    /// <summary>P7</summary>
    [Fact]
    public async Task A_task_has_one_result()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var agent = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, daemon.Soon);
        await using var work = await heeler.JoinAsync(agent.Id, daemon.Soon);
        WorkResult result = "the first";
        await work.DeliverAsync(result, daemon.Soon);
        await work.DeliverAsync(result, daemon.Soon);
        await Assert.ThrowsAsync<InvalidOperationException>(() => work.DeliverAsync("another one", daemon.Soon));
        Assert.Equal("the first", (await agent.GetAsync(daemon.Soon)).Result.Text);
    }

    /// <summary>P1, S10</summary>
    [Fact]
    public async Task Hostile_text_is_data_and_a_bad_value_costs_only_its_report()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        await using var work = await heeler.RegisterAsync(new HostOptions(), daemon.Soon);
        await Assert.ThrowsAsync<ArgumentException>(() => work.PercentAsync(101, daemon.Soon));
        await work.ReportAsync(new WorkProgress { Intent = "a\0b\u001b[2J\ud800" + new string('é', 5000) }, daemon.Soon);
        await work.ToolCallAsync(new string('n', 10_000), "\ud800\0\u001b[31m", daemon.Soon);
        var flood = new WorkProgress();
        for (var n = 0; n < 3000; n++) flood.Text(new string('x', 100_000));
        await work.ReportAsync(flood, daemon.Soon);
        var ended = await work.FinishAsync("\ud800 survived", daemon.Soon);
        Assert.Equal((3001ul, "\ufffd survived"), (ended.Progress.BlockCount, ended.Result.Text));
        Assert.StartsWith("a\0b\u001b[2J\ufffdé", ended.Progress.Intent, StringComparison.Ordinal);
    }

    /// <summary>P8</summary>
    [Fact]
    public async Task A_mailbox_that_overflows_is_refused_and_nothing_in_it_is_lost()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        await using var work = await heeler.RegisterAsync(new HostOptions(), daemon.Soon);
        var sent = 0;
        var full = await Assert.ThrowsAsync<HeelerRefusedException>(async () =>
        {
            for (; sent < 1000; sent++) await heeler.SendMessageAsync(work.Handle.Id, $"{sent}", daemon.Soon);
        });
        Assert.Equal(ErrorReason.MailboxFull, full.Reason);
        var received = await work.MessagesAsync(daemon.Soon).Take(sent).Select(message => message.Text).ToListAsync(daemon.Soon);
        Assert.Equal(Enumerable.Range(0, sent).Select(n => $"{n}"), received);
    }
}
