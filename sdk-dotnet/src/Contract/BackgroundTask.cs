namespace Heeler.V1;

/// <content>Shortcuts to values that are deep in the message.</content>
public sealed partial class BackgroundTask
{
    /// <summary>
    /// The exit code of the leader. Null if it has not exited, or ended in another way: see <see cref="Outcome"/>.
    /// </summary>
    public int? ExitCode => Outcome is { HasExitCode: true } outcome ? outcome.ExitCode : null;

    /// <summary>The processes that have outlived a kill of 10 s so far. Empty if there are none.</summary>
    public IReadOnlyList<ProcessInfo> Survivors => Stop?.Proof?.Survivors is { } survivors ? survivors.Processes : [];
}
