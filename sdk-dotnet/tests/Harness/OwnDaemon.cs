using System.Diagnostics;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>
/// The places of a user's own daemon in a directory of the test, by this process's environment. Disposing it shuts down a daemon
/// that runs there. Only for tests of the collection <see cref="EnvironmentTests"/>.
/// </summary>
internal sealed class OwnDaemon : IAsyncDisposable
{
    private static readonly string[] _variables =
        [HeelerAddress.EnvironmentVariable, "HEELER_BINARY", "HEELER_STATE_DIR", "XDG_RUNTIME_DIR", "PATH"];

    private readonly DirectoryInfo _directory = Directory.CreateTempSubdirectory("heeler-net-");
    private readonly Dictionary<string, string?> _before =
        _variables.ToDictionary(name => name, System.Environment.GetEnvironmentVariable);
    private readonly string _binary = Daemon.Binary();

    internal OwnDaemon()
    {
        Set(HeelerAddress.EnvironmentVariable, "");
        Set("HEELER_BINARY", _binary);
        Set("HEELER_STATE_DIR", Path("state"));
        Set("XDG_RUNTIME_DIR", Path("run"));
    }

    /// <summary>Ends a test that would hang.</summary>
    internal CancellationToken Soon { get; } = new CancellationTokenSource(Daemon.Deadline).Token;

    /// <summary>Returns a path in its directory.</summary>
    internal string Path(string name) => System.IO.Path.Combine(_directory.FullName, name);

    /// <summary>Sets a variable of this process until the test ends.</summary>
    internal static void Set(string name, string? value)
    {
        Assert.Contains(name, _variables);
        System.Environment.SetEnvironmentVariable(name, value);
    }

    public async ValueTask DisposeAsync()
    {
        Set(HeelerAddress.EnvironmentVariable, null);
        Set("PATH", _before["PATH"]);
        if (File.Exists(Path("run/heeler/heeler.sock")))
        {
            using var shutdown = Process.Start(_binary, ["shutdown", "--stop-tasks"]);
            await shutdown.WaitForExitAsync(new CancellationTokenSource(Daemon.Deadline).Token);
            Assert.Equal(0, shutdown.ExitCode);
        }
        foreach (var (name, value) in _before) Set(name, value);
        _directory.Delete(recursive: true);
    }
}

/// <summary>Tests that change the environment of this process. No other test runs at the same time.</summary>
[CollectionDefinition(nameof(EnvironmentTests), DisableParallelization = true)]
public sealed class EnvironmentTests;
