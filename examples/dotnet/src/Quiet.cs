using Heeler.V1;

namespace Heeler.AgentSessions;

/// <summary>
/// What a session knows of its background, and so whether it is quiet. Pure: it is told what happened, and says what that
/// changed. It refuses to be quiet while a start is under way or not yet seen: an answer may be faster than its event.
/// </summary>
internal sealed class Quiet
{
    private int _starts;
    private ulong _awaited;
    private ulong _seen;
    private bool _busy;

    /// <summary>How many are live, by the daemon's count.</summary>
    internal BackgroundTaskCounts Counts { get; private set; }

    internal bool IsIdle => Counts.Total == 0 && _starts == 0 && _seen >= _awaited;

    /// <summary>A start was asked for.</summary>
    internal void Starting() => _starts++;

    /// <summary>It was answered: its events come up to this revision.</summary>
    internal void Started(ulong revision)
    {
        _starts--;
        _awaited = Math.Max(_awaited, revision);
    }

    /// <summary>It was refused.</summary>
    internal void NotStarted() => _starts--;

    /// <summary>A task that was there from the beginning.</summary>
    internal void Found(BackgroundTask task) => Counts = Counts.With(task.Kind);

    /// <summary>Nothing else has happened up to this revision.</summary>
    internal void Reached(ulong revision) => _seen = Math.Max(_seen, revision);

    /// <summary>Something happened in the session; if the number of its live tasks has changed, it says so.</summary>
    internal void Happened(TaskEvent happened)
    {
        Reached(happened.Revision);
        if (happened.SessionActivity is { } activity) Counts = BackgroundTaskCounts.Of(activity);
    }

    /// <summary>Whether it has become idle since this was asked last.</summary>
    internal bool BecameIdle()
    {
        var became = _busy && IsIdle;
        _busy = !IsIdle;
        return became;
    }
}
