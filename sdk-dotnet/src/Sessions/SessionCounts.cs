using Heeler.V1;

namespace Heeler.Client;

/// <summary>The number of live tasks of a session, by kind.</summary>
/// <param name="Agents">Tasks of the kind agent.</param>
/// <param name="Shells">Tasks of the kind shell.</param>
/// <param name="Hosted">Tasks of the kind hosted.</param>
public readonly record struct SessionCounts(int Agents, int Shells, int Hosted = 0)
{
    /// <summary>The number of all live tasks.</summary>
    public int Total => Agents + Shells + Hosted;

    /// <summary>Returns the daemon's own count.</summary>
    internal static SessionCounts Of(SessionActivity activity) =>
        new((int)activity.Agents, (int)activity.Shells, (int)activity.Hosted);

    /// <summary>Returns the counts with one more task. A kind that only a newer daemon knows counts as a shell.</summary>
    public SessionCounts With(TaskKind kind) => kind switch
    {
        TaskKind.Agent => this with { Agents = Agents + 1 },
        TaskKind.Hosted => this with { Hosted = Hosted + 1 },
        _ => this with { Shells = Shells + 1 },
    };
}
