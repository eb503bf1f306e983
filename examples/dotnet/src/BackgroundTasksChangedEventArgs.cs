using Heeler.Client;

namespace Heeler.AgentSessions;

/// <summary>The number of a session's live tasks has changed.</summary>
public sealed class BackgroundTasksChangedEventArgs(SessionCounts counts) : EventArgs
{
    /// <summary>The new numbers.</summary>
    public SessionCounts Counts { get; } = counts;
}
