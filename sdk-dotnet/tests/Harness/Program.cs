using System.Diagnostics;
using Heeler.Client.Tests.Recipes;

namespace Heeler.Client.Tests;

/// <summary>
/// The test program as a child: a worker in a process of its own. `current` runs the recipe for a process in its
/// own task; `host` hosts a task until it must stop.
/// </summary>
internal static class Program
{
    /// <summary>Returns the command that runs a child.</summary>
    internal static string[] Command(string role) =>
        [Environment.ProcessPath ?? "dotnet", "exec", typeof(Program).Assembly.Location, role];

    /// <summary>Returns the variables that the runtime needs, for a task's environment.</summary>
    internal static Dictionary<string, string?> Variables() => new()
    {
        ["DOTNET_ROOT"] = Environment.GetEnvironmentVariable("DOTNET_ROOT"),
        ["DOTNET_SYSTEM_GLOBALIZATION_INVARIANT"] = Environment.GetEnvironmentVariable("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT"),
    };

    /// <summary>Starts a child outside of any task.</summary>
    internal static Process Start(Daemon daemon, string role)
    {
        var command = Command(role);
        var start = new ProcessStartInfo(command[0], command[1..]) { RedirectStandardOutput = true };
        start.Environment[HeelerAddress.EnvironmentVariable] = daemon.Address.ToString();
        return Process.Start(start) ?? throw new InvalidOperationException("the child cannot be started");
    }

    private static async Task<int> Main(string[] arguments)
    {
        using var heeler = HeelerClient.Connect();
        switch (arguments)
        {
            case ["current"]:
                await WorkRecipe.CurrentAsync(heeler, CancellationToken.None);
                return 0;
            case ["host"]:
                var options = new HostOptions { Name = "child", Lease = TimeSpan.FromSeconds(1) };
                var ended = await heeler.HostAsync(options, HostedAsync);
                Console.WriteLine($"{ended.State} {ended.Result?.Text}");
                return 0;
            default:
                return 2;
        }
    }

    private static async Task<WorkResult> HostedAsync(HeelerWork work, CancellationToken cancelled)
    {
        Console.WriteLine(work.Handle.Id);
        await Task.Delay(Timeout.InfiniteTimeSpan, cancelled);
        return "";
    }
}
