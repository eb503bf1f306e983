namespace Heeler.V1;

/// <content>Shortcuts to values of the message.</content>
public sealed partial class SessionActivity
{
    /// <summary>The ids of the live tasks, up to 64 of each kind.</summary>
    public IEnumerable<string> TaskIds => AgentIds.Concat(ShellIds).Concat(HostedIds);

    /// <summary>True if the session has live tasks and every one is stale.</summary>
    public bool IsOnlyStale => Stale > 0 && Stale == Agents + Shells + Hosted;
}
