using System.Diagnostics;
using System.Runtime.InteropServices;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>
/// The real daemon in its own directory, with its own address, state and home. Disposing it stops its tasks and shuts it down;
/// the test fails if a task lives on.
/// </summary>
internal sealed class Daemon : IAsyncDisposable
{
    /// <summary>The bound of every wait in a test, far beyond the need of a loaded machine.</summary>
    internal static readonly TimeSpan Deadline = TimeSpan.FromSeconds(120);

    internal const int StopSignal = 19;
    internal const int ContinueSignal = 18;

    private const int TerminateSignal = 15;

    private static readonly TimeSpan _step = TimeSpan.FromMilliseconds(10);

    private readonly DirectoryInfo _directory = Directory.CreateTempSubdirectory("heeler-net-");
    private readonly List<HeelerClient> _clients = [];
    private readonly string[] _arguments;
    private readonly Lock _tcpLock = new();
    private string? _tcp;
    private Process? _process;

    private Daemon(string[] arguments) => _arguments = arguments;

    /// <summary>The file with the token, once the daemon listens on TCP.</summary>
    internal string TokenFile => Path("state/token");

    /// <summary>The address of its Unix socket.</summary>
    internal HeelerAddress Address => HeelerAddress.Unix(Path("s.sock"));

    /// <summary>Ends a test that would hang.</summary>
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

    /// <summary>Returns a path in its directory.</summary>
    internal string Path(string name) => System.IO.Path.Combine(_directory.FullName, name);

    /// <summary>Creates a client.</summary>
    internal HeelerClient Client(TimeSpan? retryFor = null)
    {
        var options = new HeelerClientOptions { Address = Address };
        // A restart on a loaded machine may take longer than the default.
        options.RetryFor = retryFor ?? Deadline;
        var client = HeelerClient.Connect(options);
        _clients.Add(client);
        return client;
    }

    /// <summary>Waits until it has printed its TCP address.</summary>
    internal async Task<HeelerAddress> TcpAddressAsync()
    {
        await UntilAsync(() => PrintedTcp() is not null);
        return HeelerAddress.Parse(PrintedTcp()!);
    }

    /// <summary>Starts it on the same state and waits until it serves.</summary>
    internal async Task RestartAsync()
    {
        Assert.Null(_process);
        _process = Process.Start(Command()) ?? throw new InvalidOperationException("the daemon cannot be started");
        _process.ErrorDataReceived += (_, line) => ReadLog(line.Data);
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
                Assert.False(_process.HasExited, "the daemon exited at once");
                await Task.Delay(_step, Soon);
            }
        }
    }

    /// <summary>Kills it, as a crash would.</summary>
    internal async Task KillAsync()
    {
        var process = Assert.IsType<Process>(_process);
        process.Kill();
        await ExitedAsync();
    }

    /// <summary>Terminates it, as a service manager would.</summary>
    internal async Task TerminateAsync()
    {
        Signal(Assert.IsType<Process>(_process).Id, TerminateSignal);
        await ExitedAsync();
    }

    /// <summary>Sends a signal to a process.</summary>
    internal static void Signal(int process, int signal) => Assert.Equal(0, Kill(process, signal));

    /// <summary>Waits until it exits.</summary>
    internal async Task ExitedAsync()
    {
        await Assert.IsType<Process>(_process).WaitForExitAsync(Soon);
        _process!.Dispose();
        _process = null;
    }

    /// <summary>Waits until the condition is true.</summary>
    internal Task UntilAsync(Func<bool> condition) => UntilAsync(() => Task.FromResult(condition()));

    /// <inheritdoc cref="UntilAsync(Func{bool})"/>
    internal async Task UntilAsync(Func<Task<bool>> condition)
    {
        while (!await condition()) await Task.Delay(_step, Soon);
    }

    public async ValueTask DisposeAsync()
    {
        // A test that ran out of time leaves nothing behind either.
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
    private static extern int Kill(int process, int signal);

    private ProcessStartInfo Command()
    {
        string[] serve = ["serve", "--state-dir", Path("state"), "--listen", $"{Address}", "--memory-output", "0"];
        var command = new ProcessStartInfo(Binary(), [.. serve, .. _arguments])
        {
            RedirectStandardError = true,
            WorkingDirectory = _directory.FullName,
        };
        command.Environment.Clear();
        command.Environment["PATH"] = System.Environment.GetEnvironmentVariable("PATH") ?? "/usr/bin:/bin";
        command.Environment["HOME"] = _directory.FullName;
        return command;
    }

    private void ReadLog(string? line)
    {
        const string listening = "heeler: listening on ";
        if (line is null || !line.StartsWith(listening + "t", StringComparison.Ordinal)) return;
        lock (_tcpLock) _tcp = line[listening.Length..];
    }

    private string? PrintedTcp()
    {
        lock (_tcpLock) return _tcp;
    }

    /// <summary>Returns <c>HEELER_BINARY</c>, else the result of <c>cargo build</c>.</summary>
    internal static string Binary()
    {
        var named = System.Environment.GetEnvironmentVariable("HEELER_BINARY");
        var binary = string.IsNullOrEmpty(named) ? Repository.Path("target/debug/heeler") : System.IO.Path.GetFullPath(named);
        Assert.True(File.Exists(binary), $"no daemon at {binary}: run `cargo build -p heeler`, or set HEELER_BINARY");
        return binary;
    }
}
