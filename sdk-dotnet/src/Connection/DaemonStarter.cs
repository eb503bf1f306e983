using System.ComponentModel;
using System.Diagnostics;

namespace Heeler.Client;

/// <summary>Starts the user's own daemon with the command: <c>heeler start</c> alone knows how.</summary>
internal static class DaemonStarter
{
    private const string Variable = "HEELER_BINARY";

    /// <summary>Starts a daemon if none runs, and returns its address once it answers.</summary>
    internal static async Task<HeelerAddress> StartAsync(
        HeelerClientOptions options, DaemonNotRunningException none, CancellationToken cancellation)
    {
        var program = options.Program ?? Named() ?? "heeler";
        using var command = Execute(program, none);
        try
        {
            var output = command.StandardOutput.ReadToEndAsync(cancellation);
            var errors = await command.StandardError.ReadToEndAsync(cancellation).ConfigureAwait(false);
            await command.WaitForExitAsync(cancellation).ConfigureAwait(false);
            var address = (await output.ConfigureAwait(false)).Trim();
            if (command.ExitCode == 0) return HeelerAddress.Parse(address);
            var words = errors.Trim() is { Length: > 0 } some ? some : $"exit code {command.ExitCode}";
            throw new DaemonStartException(program, words);
        }
        catch (OperationCanceledException)
        {
            // A daemon that it has already started runs on.
            command.Kill();
            throw;
        }
    }

    private static Process Execute(string program, DaemonNotRunningException none)
    {
        var start = new ProcessStartInfo(program, ["start"])
        {
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        // An empty value means the default here.
        start.Environment.Remove(HeelerAddress.EnvironmentVariable);
        try
        {
            var command = Process.Start(start) ?? throw new UnreachableException("a new process is always returned");
            command.StandardInput.Close();
            return command;
        }
        catch (Win32Exception error)
        {
            throw new NotInstalledException(program, none.Address, error);
        }
    }

    private static string? Named() => Environment.GetEnvironmentVariable(Variable) is { Length: > 0 } path ? path : null;
}
