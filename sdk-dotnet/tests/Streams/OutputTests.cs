using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>Output as a stream of bytes, as chunks and as lines.</summary>
public sealed class OutputTests
{
    /// <summary>O1, O4</summary>
    [Fact]
    public async Task Lines_name_their_stream()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "echo out; echo err >&2; printf end" }, daemon.Soon);
        var lines = await task.ReadLinesAsync().ToListAsync(daemon.Soon);
        Assert.Equal(3, lines.Count);
        Assert.Equal(["out", "end"], lines.Where(line => line.Stream == OutputStream.Stdout).Select(line => line.Text));
        var only = new OutputOptions { Only = OutputStream.Stderr };
        Assert.Equal("err", (await task.ReadLinesAsync(only).SingleAsync(daemon.Soon)).ToString());
    }

    /// <summary>O8</summary>
    [Fact]
    public async Task Rotated_output_has_a_gap()
    {
        await using var daemon = await Daemon.StartAsync();
        var limit = new OutputPolicyOptions { MaxBytes = 262_144, OnLimit = OutputLimitAction.Rotate };
        var task = await daemon.Client().SpawnAsync(
            new SpawnOptions { Shell = "seq 1 100000", Output = limit }, daemon.Soon);
        await task.WaitAsync(cancellationToken: daemon.Soon);
        var chunks = await task.ReadChunksAsync(null, daemon.Soon).ToListAsync(daemon.Soon);
        var missing = Assert.Single(chunks, chunk => chunk.Gap is not null);
        Assert.Equal(OutputGapCause.Rotated, missing.Gap.Cause);
        var kept = (ulong)chunks.Sum(chunk => chunk.Data.Length);
        Assert.Equal(588_895ul, kept + missing.Gap.Length);
        var lines = await task.ReadLinesAsync().ToListAsync(daemon.Soon);
        Assert.Equal(("1", "100000"), (lines[0].Text, lines[^1].Text));
    }

    /// <summary>O1, O5</summary>
    [Fact]
    public async Task A_stream_has_every_byte_from_its_start()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(
            new SpawnOptions { Shell = "head -c 3000000 /dev/urandom | tee bytes", WorkingDirectory = daemon.Path("") },
            daemon.Soon);
        await using var output = task.OpenOutput();
        using var copy = new MemoryStream();
        await output.CopyToAsync(copy, daemon.Soon);
        var written = await File.ReadAllBytesAsync(daemon.Path("bytes"), daemon.Soon);
        Assert.Equal(written, copy.ToArray());

        Assert.Equal(written[2_999_990..], await BytesAsync(task, new OutputOptions { TailBytes = 10 }, daemon.Soon));
        Assert.Equal(written[2_999_000..], await BytesAsync(task, new OutputOptions { Offset = 2_999_000 }, daemon.Soon));
    }

    /// <summary>O1</summary>
    [Fact]
    public async Task A_read_that_does_not_follow_ends_with_the_output_so_far()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(
            new SpawnOptions { Shell = "head -c 600000 /dev/zero; echo end; sleep 600" }, daemon.Soon);
        await foreach (var chunk in task.ReadChunksAsync(null, daemon.Soon))
        {
            if (chunk.Data.Span.EndsWith("end\n"u8)) break;
        }
        var now = new OutputOptions { Follow = false };
        Assert.Equal(600_004, (await BytesAsync(task, now, daemon.Soon)).Length);
        var tail = new OutputOptions { Follow = false, TailBytes = 4 };
        Assert.Equal("end", (await task.ReadLinesAsync(tail, daemon.Soon).SingleAsync(daemon.Soon)).Text);
        var silent = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, daemon.Soon);
        Assert.Empty(await silent.ReadChunksAsync(now, daemon.Soon).ToListAsync(daemon.Soon));
    }

    /// <summary>O3</summary>
    [Fact]
    public async Task A_cancelled_read_loses_nothing()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(
            new SpawnOptions { Shell = "until [ -e go ]; do sleep 0.01; done; echo gone", WorkingDirectory = daemon.Path("") },
            daemon.Soon);
        await using var output = task.OpenOutput();
        using var impatient = new CancellationTokenSource(TimeSpan.FromMilliseconds(50));
        var buffer = new byte[16];
        await Assert.ThrowsAnyAsync<OperationCanceledException>(async () => await output.ReadExactlyAsync(buffer, impatient.Token));
        await File.WriteAllTextAsync(daemon.Path("go"), "", daemon.Soon);
        using var reader = new StreamReader(output);
        Assert.Equal("gone\n", await reader.ReadToEndAsync(daemon.Soon));
    }

    /// <summary>O11</summary>
    [Fact]
    public async Task Output_is_followed_across_a_crash_of_the_daemon()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(
            new SpawnOptions { Shell = "echo one; until [ -e go ]; do sleep 0.01; done; echo two", WorkingDirectory = daemon.Path("") },
            daemon.Soon);
        var lines = new List<string>();
        await foreach (var line in task.ReadLinesAsync(cancellationToken: daemon.Soon))
        {
            lines.Add(line.Text);
            if (lines.Count > 1) continue;
            await daemon.KillAsync();
            await File.WriteAllTextAsync(daemon.Path("go"), "", daemon.Soon);
            await daemon.RestartAsync();
        }
        Assert.Equal(["one", "two"], lines);
    }

    [Fact]
    public async Task A_stream_supports_blocking_reads()
    {
        await using var daemon = await Daemon.StartAsync();
        var task = await daemon.Client().SpawnAsync(new SpawnOptions { Shell = "seq 3" }, daemon.Soon);
        using var reader = new StreamReader(task.OpenOutput());
        Assert.Equal("1\n2\n3\n", await Task.Run(reader.ReadToEnd, daemon.Soon));
    }

    private static async Task<byte[]> BytesAsync(HeelerTask task, OutputOptions options, CancellationToken soon)
    {
        var chunks = await task.ReadChunksAsync(options, soon).ToListAsync(soon);
        return [.. chunks.SelectMany(chunk => chunk.Data.ToByteArray())];
    }
}
