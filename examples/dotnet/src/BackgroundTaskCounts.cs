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

    internal static BackgroundTaskCounts Of(IEnumerable<TaskKind> live)
    {
        var counts = default(BackgroundTaskCounts);
        foreach (var kind in live)
        {
            counts = kind switch
            {
                TaskKind.Agent => counts with { Agents = counts.Agents + 1 },
                TaskKind.Hosted => counts with { Hosted = counts.Hosted + 1 },
                TaskKind.Shell or TaskKind.Unspecified => counts with { Shells = counts.Shells + 1 },
                // A kind of a newer daemon keeps the session busy all the same.
                _ => counts with { Hosted = counts.Hosted + 1 },
            };
        }
        return counts;
    }
}

/// <summary>The number of a session's live tasks has changed.</summary>
public sealed class BackgroundTasksChangedEventArgs(BackgroundTaskCounts counts) : EventArgs
{
    /// <summary>How many there are now.</summary>
    public BackgroundTaskCounts Counts { get; } = counts;
}
