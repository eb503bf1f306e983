using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Recipes;

/// <summary>The first steps of the READMEs and of the docs page, on the user's own daemon.</summary>
[Collection(nameof(EnvironmentTests))]
public sealed class FirstStepsTests : IDisposable
{
    private readonly Transcript _console = new() { NewLine = "\n" };

    public void Dispose() => _console.Dispose();

    /// <summary>U5</summary>
    [Fact]
    public async Task The_first_steps_need_no_daemon_that_runs()
    {
        await using var own = new OwnDaemon();
        await Recipe.FirstStepsAsync(_console);
        // There is no makefile, and perhaps no make.
        Assert.Matches("^Failed: exit code [0-9]+\n$", _console.ToString());
    }

    [Fact]
    public async Task A_client_connects_to_the_address_in_the_environment()
    {
        await using var own = new OwnDaemon();
        await using var daemon = await Daemon.StartAsync();
        var task = await daemon.Client().SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"], Name = "zzz" }, daemon.Soon);
        OwnDaemon.Set(HeelerAddress.EnvironmentVariable, daemon.Address.ToString());
        await Recipe.ConnectAsync(_console);
        Assert.Equal($"{task} {TaskState.Running} zzz\n", _console.ToString());
    }
}
