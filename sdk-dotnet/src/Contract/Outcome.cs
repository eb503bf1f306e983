using Google.Protobuf;

namespace Heeler.V1;

/// <content>The outcome in words.</content>
public sealed partial class Outcome : ICustomDiagnosticMessage
{
    /// <summary>Returns the outcome in words, such as <c>exit code 3</c> or <c>signal SIGKILL</c>.</summary>
    public string ToDiagnosticString() => ResultCase switch
    {
        ResultOneofCase.ExitCode => $"exit code {ExitCode}",
        ResultOneofCase.Signal => $"signal {Signal.Name}",
        ResultOneofCase.SpawnError => $"start failed: {SpawnError.Path}: {SpawnError.Message}",
        ResultOneofCase.Unknown => $"unknown: {Unknown.Detail}",
        ResultOneofCase.Worker => $"worker's result: {Worker}",
        ResultOneofCase.None => "no outcome",
        _ => $"{ResultCase}",
    };
}
