using Heeler.Client;

namespace Heeler.V1;

/// <content>Shortcuts to values that are deep in the message.</content>
public sealed partial class TaskEvent
{
    /// <summary>
    /// The live tasks of the session right after the event. Null if the event has no counts: <c>Created</c>, <c>Ended</c>,
    /// <c>Stale</c>, <c>Active</c> and <c>SessionIdle</c> of a session have them. <see cref="SessionActivity"/> has the ids, too.
    /// </summary>
    public SessionCounts? Counts => SessionActivity is { } activity ? SessionCounts.Of(activity) : null;
}
