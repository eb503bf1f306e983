using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>What a watch has seen, and so what it has to ask for next. Pure: messages in, items out.</summary>
/// <remarks>
/// The initial state is given only once it is complete: one that breaks off is asked for anew, and a part of the old one
/// beside the new one could name tasks that ended in between.
/// </remarks>
internal sealed class WatchCursor(WatchEventsRequest first) : IResumable<WatchEventsResponse, WatchItem>
{
    private readonly List<BackgroundTask> _initial = [];
    private readonly Queue<WatchItem> _ready = new();

    /// <summary>Everything up to here has been given. None until the daemon has said where it stands.</summary>
    private Bookmark? _seen;

    /// <inheritdoc/>
    public TimeSpan LongestPause => Backoff.Longest;

    /// <summary>The stream has no end of its own.</summary>
    public bool IsOver => false;

    /// <inheritdoc/>
    public AsyncServerStreamingCall<WatchEventsResponse> Ask(
        BackgroundTasks.BackgroundTasksClient daemon, CancellationToken cancellation) =>
        daemon.WatchEvents(Request(), cancellationToken: cancellation);

    /// <summary>What to ask for, now or after a break.</summary>
    internal WatchEventsRequest Request()
    {
        var request = first.Clone();
        if (_seen is null) return request;
        request.AfterRevision = _seen.Revision;
        request.StateId = _seen.StateId;
        request.InitialState = false;
        return request;
    }

    /// <summary>The connection broke: what was incomplete is worth nothing.</summary>
    public void Broke() => _initial.Clear();

    /// <inheritdoc/>
    public void Take(WatchEventsResponse message)
    {
        switch (message.ItemCase)
        {
            case WatchEventsResponse.ItemOneofCase.Initial:
                _initial.Add(message.Initial);
                break;
            case WatchEventsResponse.ItemOneofCase.Event:
                TakeEvent(message.Event);
                break;
            case WatchEventsResponse.ItemOneofCase.Bookmark:
                TakeBookmark(message.Bookmark);
                break;
            case WatchEventsResponse.ItemOneofCase.None:
                // From a newer daemon, and for newer clients.
                break;
        }
    }

    /// <inheritdoc/>
    public WatchItem? Give() => _ready.TryDequeue(out var item) ? item : null;

    private void TakeEvent(TaskEvent happened)
    {
        _seen ??= new Bookmark { StateId = first.StateId };
        if (happened.Revision <= _seen.Revision) return;
        _seen.Revision = happened.Revision;
        _ready.Enqueue(new WatchItem.Happened(happened));
    }

    private void TakeBookmark(Bookmark bookmark)
    {
        foreach (var task in _initial) _ready.Enqueue(new WatchItem.Initial(task));
        _initial.Clear();
        if (bookmark.Revision < _seen?.Revision) return;
        _seen = bookmark.Clone();
        _ready.Enqueue(new WatchItem.Reached(bookmark));
    }
}
