using Heeler.V1;

namespace Heeler.AgentSessions;

/// <summary>
/// The live tasks of a session, and if it is idle. Pure: events in, state out. The session is not idle while a start is in
/// progress or its event is outstanding: the answer to Spawn may arrive before its event.
/// </summary>
internal sealed class SessionActivityTracker
{
    private int _starts;
    private ulong _expected;
    private ulong _reached;
    private bool _busy;

    /// <summary>The live tasks, by the daemon's count.</summary>
    internal BackgroundTaskCounts Counts { get; private set; }

    internal bool IsIdle => Counts.Total == 0 && _starts == 0 && _reached >= _expected;

    /// <summary>A start was requested.</summary>
    internal void Starting() => _starts++;

    /// <summary>The start succeeded: its events come up to this revision.</summary>
    internal void Started(ulong revision)
    {
        _starts--;
        _expected = Math.Max(_expected, revision);
    }

    /// <summary>The start was refused.</summary>
    internal void NotStarted() => _starts--;

    /// <summary>A task of the initial state.</summary>
    internal void Found(BackgroundTask task) => Counts = Counts.With(task.Spec.Kind);

    /// <summary>The watch has reached this revision.</summary>
    internal void Reached(ulong revision) => _reached = Math.Max(_reached, revision);

    /// <summary>An event of the session.</summary>
    internal void Happened(TaskEvent happened)
    {
        Reached(happened.Revision);
        if (happened.SessionActivity is { } activity) Counts = BackgroundTaskCounts.Of(activity);
    }

    /// <summary>Returns true if the session has become idle since the last call.</summary>
    internal bool BecameIdle()
    {
        var became = _busy && IsIdle;
        _busy = !IsIdle;
        return became;
    }
}
