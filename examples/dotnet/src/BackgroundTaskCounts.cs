using Heeler.V1;

namespace Heeler.AgentSessions;

/// <summary>How many tasks of a session are live, by kind.</summary>
/// <param name="Agents">Subagents.</param>
/// <param name="Shells">Shells.</param>
/// <param name="Hosted">Work inside a client.</param>
public readonly record struct BackgroundTaskCounts(int Agents, int Shells, int Hosted)
{
    /// <summary>All of them.</summary>
    public int Total => Agents + Shells + Hosted;

    /// <summary>As the daemon has counted them.</summary>
    internal static BackgroundTaskCounts Of(SessionActivity activity) =>
        new((int)activity.Agents, (int)activity.Shells, (int)activity.Hosted);

    /// <summary>With one more.</summary>
    internal BackgroundTaskCounts With(TaskKind kind) => kind switch
    {
        TaskKind.Agent => this with { Agents = Agents + 1 },
        TaskKind.Hosted => this with { Hosted = Hosted + 1 },
        TaskKind.Shell or TaskKind.Unspecified => this with { Shells = Shells + 1 },
        // A kind of a newer daemon keeps the session busy all the same.
        _ => this with { Hosted = Hosted + 1 },
    };
}

/// <summary>The number of a session's live tasks has changed.</summary>
public sealed class BackgroundTasksChangedEventArgs(BackgroundTaskCounts counts) : EventArgs
{
    /// <summary>How many there are now.</summary>
    public BackgroundTaskCounts Counts { get; } = counts;
}
