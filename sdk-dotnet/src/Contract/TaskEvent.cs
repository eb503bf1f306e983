using Heeler.Client;

namespace Heeler.V1;

/// <content>Shortcuts to values that are deep in the message.</content>
public sealed partial class TaskEvent
{
    /// <summary>
    /// The live tasks of the session right after the event. Null if the event has no counts: only <c>Created</c>, <c>Ended</c>
    /// and <c>SessionIdle</c> of a session have them.
    /// </summary>
    public SessionCounts? Counts => SessionActivity is { } activity ? SessionCounts.Of(activity) : null;
}
