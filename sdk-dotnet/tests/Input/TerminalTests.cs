using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Input;

/// <summary>A task with a terminal.</summary>
public sealed class TerminalTests
{
    private const string ShowSize = "trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done";

    /// <summary>I5</summary>
    [Fact]
    public async Task A_terminal_has_its_size_and_is_resized()
    {
        await using var daemon = await Daemon.StartAsync();
        var options = new SpawnOptions { Shell = ShowSize, Terminal = new() { Columns = 100, Rows = 30 } };
        var task = await daemon.Client().SpawnAsync(options, daemon.Soon);
        Assert.NotNull(await task.WaitForLineAsync("^30 100", cancellationToken: daemon.Soon));
        await task.ResizeTerminalAsync(120, 40, daemon.Soon);
        Assert.NotNull(await task.WaitForLineAsync("^40 120", cancellationToken: daemon.Soon));
        await daemon.KillAsync();
        await daemon.RestartAsync();
        await task.ResizeTerminalAsync(90, 20, daemon.Soon);
        Assert.NotNull(await task.WaitForLineAsync("^20 90", cancellationToken: daemon.Soon));
    }

    /// <summary>I5</summary>
    [Fact]
    public async Task A_terminal_is_typed_into_and_Ctrl_D_ends_it()
    {
        await using var daemon = await Daemon.StartAsync();
        var task = await daemon.Client().SpawnAsync(new SpawnOptions { Argv = ["cat"], Terminal = new() }, daemon.Soon);
        await using (var input = task.OpenInput()) await input.WriteAsync("hello\n"u8.ToArray(), daemon.Soon);
        Assert.Equal(0, (await task.WaitAsync(daemon.Soon)).ExitCode);
        // The echo of the terminal, and the line of the program.
        Assert.Equal(["hello", "hello"], await task.ReadLinesAsync(null, daemon.Soon).Select(line => line.Text).ToListAsync(daemon.Soon));
    }

    /// <summary>I7, S2</summary>
    [Fact]
    public async Task A_bad_size_and_a_task_without_a_terminal_are_refused()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var without = await heeler.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, daemon.Soon);
        var missing = await Assert.ThrowsAsync<HeelerRefusedException>(() => without.ResizeTerminalAsync(80, 24, daemon.Soon));
        Assert.Equal(ErrorReason.TerminalMissing, missing.Reason);
        var bad = await Assert.ThrowsAsync<HeelerRefusedException>(() => without.ResizeTerminalAsync(0, 24, daemon.Soon));
        Assert.Equal("Columns", Assert.Single(bad.FieldViolations).Option);
        var large = new SpawnOptions { Argv = ["true"], Terminal = new() { Rows = 1001 } };
        var refused = await Assert.ThrowsAsync<HeelerRefusedException>(() => heeler.SpawnAsync(large, daemon.Soon));
        Assert.Equal("Terminal.Rows", Assert.Single(refused.FieldViolations).Option);
    }
}
