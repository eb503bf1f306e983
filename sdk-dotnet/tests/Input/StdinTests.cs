using System.Text;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Input;

/// <summary>A stream as the stdin of a command in the foreground.</summary>
public sealed class StdinTests
{
    /// <summary>I1</summary>
    [Fact]
    public async Task A_command_reads_the_stream_to_its_end()
    {
        await using var daemon = await Daemon.StartAsync();
        var bytes = new byte[3 << 20];
        new Random(1).NextBytes(bytes);
        using var stdin = new MemoryStream(bytes);
        var result = await daemon.Client().RunAsync(new SpawnOptions { Argv = ["cat"] }, new RunOptions { Stdin = stdin }, daemon.Soon);
        Assert.Equal(0, result.ExitCode);
        Assert.True(bytes.AsSpan().SequenceEqual(result.StdoutBytes.Span));
    }

    /// <summary>I1</summary>
    [Fact]
    public async Task A_command_need_not_read_all_of_it()
    {
        await using var daemon = await Daemon.StartAsync();
        using var endless = new TestStream(buffer =>
        {
            buffer.Span.Clear();
            return ValueTask.FromResult(buffer.Length);
        });
        var options = new RunOptions { Stdin = endless };
        var result = await daemon.Client().RunAsync(new SpawnOptions { Argv = ["head", "-c", "3"] }, options, daemon.Soon);
        Assert.Equal((0, "\0\0\0"), (result.ExitCode, result.Stdout));
    }

    [Fact]
    public async Task A_stream_that_fails_stops_the_command()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        using var broken = new TestStream(_ => throw new IOException("the disk is gone"));
        var options = new RunOptions { Stdin = broken };
        await Assert.ThrowsAsync<IOException>(() => heeler.RunAsync(new SpawnOptions { Argv = ["cat"] }, options, daemon.Soon));
        var all = new ListRequest { IncludeFinished = true, IncludeFinishedForeground = true };
        var task = await heeler.ListAsync(all, daemon.Soon).SingleAsync(daemon.Soon);
        Assert.Equal((TaskState.Cancelled, "the disk is gone"), (task.State, task.Stop.Reason));
    }

    /// <summary>I1, R1</summary>
    [Fact]
    public async Task A_daemon_that_is_away_for_long_costs_no_byte_and_not_the_end()
    {
        await using var daemon = await Daemon.StartAsync();
        // Every call fails at once while the daemon is away.
        using var heeler = HeelerClient.Connect(new HeelerClientOptions { Address = daemon.Address, RetryFor = TimeSpan.Zero });
        var (echoed, killed) = (new TaskCompletionSource(), new TaskCompletionSource());
        string[] lines = ["one\n", "two\n"];
        var read = 0;
        using var stdin = new TestStream(async buffer =>
        {
            if (read == 1) await killed.Task.WaitAsync(daemon.Soon);
            return read < lines.Length ? Encoding.UTF8.GetBytes(lines[read++], buffer.Span) : 0;
        });
        var output = new StringBuilder();
        var options = new RunOptions
        {
            Stdin = stdin,
            OnOutput = (chunk, _) =>
            {
                output.Append(chunk.Data.ToStringUtf8());
                echoed.TrySetResult();
                return ValueTask.CompletedTask;
            },
        };
        var running = heeler.RunAsync(new SpawnOptions { Argv = ["cat"] }, options, daemon.Soon);
        await echoed.Task.WaitAsync(daemon.Soon);
        await daemon.KillAsync();
        killed.SetResult();
        await daemon.RestartAsync();
        Assert.Equal(0, (await running).ExitCode);
        Assert.Equal("one\ntwo\n", output.ToString());
    }

    private sealed class TestStream(Func<Memory<byte>, ValueTask<int>> read) : Stream
    {
        public override bool CanRead => true;

        public override bool CanSeek => false;

        public override bool CanWrite => false;

        public override long Length => throw new NotSupportedException();

        public override long Position { get => throw new NotSupportedException(); set => throw new NotSupportedException(); }

        public override ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default) => read(buffer);

        public override int Read(byte[] buffer, int offset, int count) => throw new NotSupportedException();

        public override void Flush()
        {
        }

        public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

        public override void SetLength(long value) => throw new NotSupportedException();

        public override void Write(byte[] buffer, int offset, int count) => throw new NotSupportedException();
    }
}
