using Heeler.V1;

namespace Heeler.AgentSessions;

/// <summary>The number of live tasks of a session, by kind.</summary>
/// <param name="Agents">Subagents.</param>
/// <param name="Shells">Shells.</param>
public readonly record struct BackgroundTaskCounts(int Agents, int Shells)
{
    /// <summary>The number of all live tasks.</summary>
    public int Total => Agents + Shells;

    /// <summary>Returns the daemon's own count.</summary>
    internal static BackgroundTaskCounts Of(SessionActivity activity) => new((int)activity.Agents, (int)activity.Shells);

    /// <summary>Returns the counts with one more task. A kind that only a newer daemon knows counts as a shell.</summary>
    internal BackgroundTaskCounts With(TaskKind kind) =>
        kind == TaskKind.Agent ? this with { Agents = Agents + 1 } : this with { Shells = Shells + 1 };
}

/// <summary>The number of a session's live tasks has changed.</summary>
public sealed class BackgroundTasksChangedEventArgs(BackgroundTaskCounts counts) : EventArgs
{
    /// <summary>The new numbers.</summary>
    public BackgroundTaskCounts Counts { get; } = counts;
}
