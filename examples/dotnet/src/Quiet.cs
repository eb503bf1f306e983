using Heeler.V1;

namespace Heeler.AgentSessions;

/// <summary>
/// What a session knows of its background, and so whether it is quiet. Pure: it is told what happened, and says what that
/// changed. It refuses to be quiet while a start is under way or not yet seen: an answer may be faster than its event.
/// </summary>
internal sealed class Quiet
{
    private readonly Dictionary<string, TaskKind> _live = [];
    private int _starts;
    private ulong _awaited;
    private ulong _seen;
    private bool _busy;

    /// <summary>How many are live.</summary>
    internal BackgroundTaskCounts Counts => BackgroundTaskCounts.Of(_live.Values);

    internal bool IsIdle => _live.Count == 0 && _starts == 0 && _seen >= _awaited;

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
    internal void Found(BackgroundTask task) => _live[task.Id] = task.Kind;

    /// <summary>Nothing else has happened up to this revision.</summary>
    internal void Reached(ulong revision) => _seen = Math.Max(_seen, revision);

    /// <summary>Something happened to a task.</summary>
    internal void Happened(TaskEvent happened)
    {
        Reached(happened.Revision);
        if (happened.Type is TaskEventType.Ended or TaskEventType.Removed) _live.Remove(happened.Task.Id);
        else _live[happened.Task.Id] = happened.Task.Kind;
    }

    /// <summary>Whether it has become idle since this was asked last.</summary>
    internal bool BecameIdle()
    {
        var became = _busy && IsIdle;
        _busy = !IsIdle;
        return became;
    }
}
