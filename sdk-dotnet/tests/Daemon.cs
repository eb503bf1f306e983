using System.Diagnostics;
using System.Runtime.InteropServices;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>
/// The real daemon in a directory of its own, with its own address, state and home. When it is disposed, its tasks are stopped
/// and it is asked to end; the test fails if anything of it lives on.
/// </summary>
internal sealed class Daemon : IAsyncDisposable
{
    /// <summary>What every wait in a test is bounded by: far beyond what a loaded machine needs.</summary>
    internal static readonly TimeSpan Deadline = TimeSpan.FromSeconds(120);

    private const int TerminateSignal = 15;

    private static readonly TimeSpan _step = TimeSpan.FromMilliseconds(10);

    private readonly DirectoryInfo _directory = Directory.CreateTempSubdirectory("heeler-net-");
    private readonly List<HeelerClient> _clients = [];
    private readonly string[] _arguments;
    private readonly Lock _told = new();
    private string? _tcp;
    private Process? _process;

    private Daemon(string[] arguments) => _arguments = arguments;

    /// <summary>Where its token is, once it has listened on TCP.</summary>
    internal string TokenFile => Path("state/token");

    /// <summary>Where it listens.</summary>
    internal HeelerAddress Address => HeelerAddress.Unix(Path("s.sock"));

    /// <summary>A token that ends a test which would hang.</summary>
    internal CancellationToken Soon { get; private set; } = new CancellationTokenSource(Deadline).Token;

    internal static async Task<Daemon> StartAsync(params string[] arguments)
    {
        var daemon = new Daemon(arguments);
        try
        {
            await daemon.RestartAsync();
            return daemon;
        }
        catch
        {
            daemon._process?.Kill();
            daemon._directory.Delete(recursive: true);
            throw;
        }
    }

    /// <summary>A path in its directory.</summary>
    internal string Path(string name) => System.IO.Path.Combine(_directory.FullName, name);

    /// <summary>A new client of it.</summary>
    internal HeelerClient Client(TimeSpan? retryFor = null)
    {
        var options = new HeelerClientOptions { Address = Address };
        // A loaded machine may take longer over a restart than users care to wait.
        options.RetryFor = retryFor ?? Deadline;
        var client = HeelerClient.Connect(options);
        _clients.Add(client);
        return client;
    }

    /// <summary>Where it says that it listens on TCP.</summary>
    internal async Task<HeelerAddress> TcpAddressAsync()
    {
        await UntilAsync(() => Told() is not null);
        return HeelerAddress.Parse(Told()!);
    }

    /// <summary>Starts it on the same state, and waits until it serves.</summary>
    internal async Task RestartAsync()
    {
        Assert.Null(_process);
        _process = Process.Start(Command()) ?? throw new InvalidOperationException("the daemon can be started");
        _process.ErrorDataReceived += (_, line) => Hear(line.Data);
        _process.BeginErrorReadLine();
        using var client = HeelerClient.Connect(Address);
        while (true)
        {
            try
            {
                await client.ListPageAsync(new ListRequest { PageSize = 1 }, Soon);
                return;
            }
            catch (HeelerException error) when (error.IsTransient)
            {
                Assert.False(_process.HasExited, "the daemon ended at once");
                await Task.Delay(_step, Soon);
            }
        }
    }

    /// <summary>Ends it as a crash would.</summary>
    internal async Task KillAsync()
    {
        var process = Assert.IsType<Process>(_process);
        process.Kill();
        await ExitedAsync();
    }

    /// <summary>Ends it as a service manager would.</summary>
    internal async Task TerminateAsync()
    {
        Assert.Equal(0, Signal(Assert.IsType<Process>(_process).Id, TerminateSignal));
        await ExitedAsync();
    }

    /// <summary>Waits until it is gone by itself.</summary>
    internal async Task ExitedAsync()
    {
        await Assert.IsType<Process>(_process).WaitForExitAsync(Soon);
        _process!.Dispose();
        _process = null;
    }

    /// <summary>Until it is so.</summary>
    internal async Task UntilAsync(Func<bool> condition)
    {
        while (!condition()) await Task.Delay(_step, Soon);
    }

    public async ValueTask DisposeAsync()
    {
        // A test that was too slow leaves nothing behind either.
        using var soon = new CancellationTokenSource(Deadline);
        Soon = soon.Token;
        if (_process is null) await RestartAsync();
        var stop = new ShutdownRequest { Tasks = ShutdownTasks.Stop, Grace = new() };
        var answer = await Client().ShutdownAsync(stop, Soon);
        await ExitedAsync();
        foreach (var client in _clients) client.Dispose();
        _directory.Delete(recursive: true);
        Assert.Equal(0u, answer.LiveTasks);
    }

    [DllImport("libc", EntryPoint = "kill")]
    private static extern int Signal(int process, int signal);

    private ProcessStartInfo Command()
    {
        var command = new ProcessStartInfo(Binary(), ["serve", "--state-dir", Path("state"), "--listen", Address.ToString(), "--memory-output", "0", .. _arguments])
        {
            RedirectStandardError = true,
            WorkingDirectory = _directory.FullName,
        };
        command.Environment.Clear();
        command.Environment["PATH"] = Environment.GetEnvironmentVariable("PATH") ?? "/usr/bin:/bin";
        command.Environment["HOME"] = _directory.FullName;
        return command;
    }

    private void Hear(string? line)
    {
        const string said = "heeler: listening on ";
        if (line is null || !line.StartsWith(said + "t", StringComparison.Ordinal)) return;
        lock (_told) _tcp = line[said.Length..];
    }

    private string? Told()
    {
        lock (_told) return _tcp;
    }

    /// <summary><c>HEELER_BINARY</c>, else what <c>cargo build</c> makes.</summary>
    private static string Binary()
    {
        var named = Environment.GetEnvironmentVariable("HEELER_BINARY");
        var binary = string.IsNullOrEmpty(named) ? Repository.Path("target/debug/heeler") : System.IO.Path.GetFullPath(named);
        Assert.True(File.Exists(binary), $"no daemon at {binary}: run `cargo build -p heeler`, or set HEELER_BINARY");
        return binary;
    }
}
