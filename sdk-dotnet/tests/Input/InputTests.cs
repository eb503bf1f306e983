using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Input;

/// <summary>The input of a task as a stream.</summary>
public sealed class InputTests
{
    /// <summary>I1</summary>
    [Fact]
    public async Task What_is_written_is_read_and_disposing_the_stream_is_the_end_of_file()
    {
        await using var daemon = await Daemon.StartAsync();
        var task = await SpawnAsync(daemon, "cat");
        await using (var input = task.OpenInput())
        {
            await input.WriteAsync("one\n"u8.ToArray(), daemon.Soon);
            var first = await task.ReadLinesAsync(cancellationToken: daemon.Soon).FirstAsync(daemon.Soon);
            Assert.Equal("one", first.Text);
            await input.WriteAsync("two"u8.ToArray(), daemon.Soon);
            await input.FlushAsync(daemon.Soon);
        }
        Assert.Equal(0, (await task.WaitAsync(daemon.Soon)).ExitCode);
        Assert.Equal("one\ntwo"u8.ToArray(), await ReadAsync(task, daemon));
    }

    /// <summary>I3</summary>
    [Fact]
    public async Task A_task_that_does_not_read_makes_the_writer_wait()
    {
        await using var daemon = await Daemon.StartAsync();
        var task = await SpawnAsync(daemon, $"until [ -e {daemon.Path("go")} ]; do sleep 0.01; done; wc -c");
        await using (var input = task.OpenInput())
        {
            var writing = input.WriteAsync(Pattern(1 << 20), daemon.Soon).AsTask();
            await daemon.UntilAsync(async () => await GivenAsync(daemon, task) > 64 << 10);
            Assert.False(writing.IsCompleted);
            Assert.InRange(await GivenAsync(daemon, task), 64ul << 10, 512ul << 10);
            await File.WriteAllTextAsync(daemon.Path("go"), "", daemon.Soon);
            await writing;
        }
        Assert.Equal(0, (await task.WaitAsync(daemon.Soon)).ExitCode);
        Assert.Equal("1048576\n"u8.ToArray(), await ReadAsync(task, daemon));
    }

    /// <summary>I2, R1</summary>
    [Fact]
    public async Task A_crash_in_the_middle_of_a_write_costs_no_byte_and_repeats_none()
    {
        await using var daemon = await Daemon.StartAsync();
        var path = daemon.Path("copy");
        // It reads a piece each time that the test says so.
        var task = await SpawnAsync(daemon, $"for n in 1 2 3; do until [ -e {path}.$n ]; do sleep 0.01; done; head -c 700000; done; cat");
        var sent = Pattern(4 << 20);
        await using (var input = task.OpenInput())
        {
            var writing = input.WriteAsync(sent, daemon.Soon).AsTask();
            for (var n = 1; n <= 3; n++)
            {
                var before = await GivenAsync(daemon, task);
                await File.WriteAllTextAsync($"{path}.{n}", "", daemon.Soon);
                await daemon.UntilAsync(async () => await GivenAsync(daemon, task) > before);
                await daemon.KillAsync();
                await daemon.RestartAsync();
            }
            await writing;
        }
        Assert.Equal(0, (await task.WaitAsync(daemon.Soon)).ExitCode);
        var read = await ReadAsync(task, daemon);
        Assert.True(sent.AsSpan().SequenceEqual(read));
    }

    /// <summary>I2</summary>
    [Fact]
    public async Task A_write_that_its_token_ends_leaves_the_next_one_at_the_right_place()
    {
        await using var daemon = await Daemon.StartAsync();
        var task = await SpawnAsync(daemon, $"until [ -e {daemon.Path("go")} ]; do sleep 0.01; done; cat");
        var sent = Pattern(1 << 20);
        ulong given;
        await using (var input = task.OpenInput())
        {
            using var impatient = CancellationTokenSource.CreateLinkedTokenSource(daemon.Soon);
            var writing = input.WriteAsync(sent, impatient.Token).AsTask();
            await daemon.UntilAsync(async () => await GivenAsync(daemon, task) > 64 << 10);
            await impatient.CancelAsync();
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => writing);
            var rest = input.WriteAsync("the end"u8.ToArray(), daemon.Soon).AsTask();
            await File.WriteAllTextAsync(daemon.Path("go"), "", daemon.Soon);
            await rest;
            given = await GivenAsync(daemon, task);
        }
        await task.WaitAsync(daemon.Soon);
        var read = await ReadAsync(task, daemon);
        Assert.Equal(given, (ulong)read.Length);
        Assert.Equal("the end"u8.ToArray(), read[^7..]);
        Assert.True(sent.AsSpan().StartsWith(read.AsSpan()[..^7]));
    }

    /// <summary>I6</summary>
    [Fact]
    public async Task A_second_writer_is_refused_unless_it_takes_the_input()
    {
        await using var daemon = await Daemon.StartAsync();
        var task = await SpawnAsync(daemon, "cat");
        await using var first = task.OpenInput();
        await first.WriteAsync("1"u8.ToArray(), daemon.Soon);
        var refused = task.OpenInput();
        var held = await Assert.ThrowsAsync<HeelerRefusedException>(async () => await refused.WriteAsync("x"u8.ToArray(), daemon.Soon));
        Assert.Equal(ErrorReason.InputHeld, held.Reason);
        await refused.DisposeAsync();
        await using (var second = task.OpenInput(new OpenInputOptions { TakeOver = true }))
        {
            await second.WriteAsync("2"u8.ToArray(), daemon.Soon);
            var taken = await Assert.ThrowsAsync<HeelerRefusedException>(async () => await first.WriteAsync("x"u8.ToArray(), daemon.Soon));
            Assert.Equal(ErrorReason.InputTakenOver, taken.Reason);
        }
        Assert.Equal(0, (await task.WaitAsync(daemon.Soon)).ExitCode);
        Assert.Equal("12"u8.ToArray(), await ReadAsync(task, daemon));
    }

    /// <summary>I7</summary>
    [Fact]
    public async Task A_task_without_input_or_without_an_end_is_refused()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var without = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, daemon.Soon);
        Assert.Equal(ErrorReason.InputMissing, await RefusedAsync(without));
        var ended = await SpawnAsync(daemon, "exit 0");
        await ended.WaitAsync(daemon.Soon);
        Assert.Equal(ErrorReason.TaskFinished, await RefusedAsync(ended));
        Assert.Equal(ErrorReason.TaskNotFound, await RefusedAsync(heeler.GetTask("shell-aaaaaaaaaa")));
        await ended.OpenInput().DisposeAsync();

        async Task<ErrorReason> RefusedAsync(HeelerTask task)
        {
            var input = task.OpenInput(new OpenInputOptions { LeaveOpen = true });
            var error = await Assert.ThrowsAsync<HeelerRefusedException>(async () => await input.WriteAsync("x"u8.ToArray(), daemon.Soon));
            await input.DisposeAsync();
            await Assert.ThrowsAsync<ObjectDisposedException>(async () => await input.WriteAsync("x"u8.ToArray(), daemon.Soon));
            return error.Reason;
        }
    }

    /// <summary>I2, R1</summary>
    [Fact]
    public async Task A_write_waits_for_a_daemon_that_is_away_unless_it_gives_up()
    {
        await using var daemon = await Daemon.StartAsync();
        // Every other call fails at once while the daemon is away.
        using var heeler = HeelerClient.Connect(new HeelerClientOptions { Address = daemon.Address, RetryFor = TimeSpan.Zero });
        var task = await heeler.SpawnAsync(new SpawnOptions { Argv = ["cat"], Input = new() }, daemon.Soon);
        var input = task.OpenInput();
        await input.WriteAsync("one "u8.ToArray(), daemon.Soon);
        await daemon.KillAsync();
        var writing = input.WriteAsync("two"u8.ToArray(), daemon.Soon).AsTask();
        var impatient = task.OpenInput(new OpenInputOptions { GiveUpAfter = TimeSpan.FromMilliseconds(20), LeaveOpen = true });
        await Assert.ThrowsAnyAsync<HeelerException>(async () => await impatient.WriteAsync("three"u8.ToArray(), daemon.Soon));
        Assert.False(writing.IsCompleted);
        await daemon.RestartAsync();
        await writing;
        await input.DisposeAsync();
        Assert.Equal(0, (await task.WaitAsync(daemon.Soon)).ExitCode);
        Assert.Equal("one two"u8.ToArray(), await ReadAsync(daemon.Client().GetTask(task.Id), daemon));
    }

    /// <summary>I1, X1</summary>
    [Fact]
    public async Task Input_of_a_queued_task_waits_for_its_start()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var first = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"], Queue = "q" }, daemon.Soon);
        var second = await heeler.SpawnAsync(new SpawnOptions { Argv = ["cat"], Queue = "q", Input = new() }, daemon.Soon);
        await using (var input = second.OpenInput())
        {
            var writing = input.WriteAsync("early"u8.ToArray(), daemon.Soon).AsTask();
            await first.CancelAsync(daemon.Soon);
            await writing;
        }
        Assert.Equal(0, (await second.WaitAsync(daemon.Soon)).ExitCode);
        Assert.Equal("early"u8.ToArray(), await ReadAsync(second, daemon));
    }

    private static Task<HeelerTask> SpawnAsync(Daemon daemon, string script) =>
        daemon.Client().SpawnAsync(new SpawnOptions { Shell = script, Input = new() }, daemon.Soon);

    /// <summary>Returns the number of bytes that the task was given.</summary>
    private static async Task<ulong> GivenAsync(Daemon daemon, HeelerTask task) =>
        (await daemon.Client().WriteInputAsync(new WriteInputRequest { TaskId = task.Id }, daemon.Soon)).Offset;

    private static async Task<byte[]> ReadAsync(HeelerTask task, Daemon daemon)
    {
        using var read = new MemoryStream();
        await using var output = task.OpenOutput();
        await output.CopyToAsync(read, daemon.Soon);
        return read.ToArray();
    }

    private static byte[] Pattern(int length)
    {
        var bytes = new byte[length];
        new Random(length).NextBytes(bytes);
        return bytes;
    }
}
