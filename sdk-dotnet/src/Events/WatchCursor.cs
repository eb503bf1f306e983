using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>The position of a watch. Pure: messages in, items out.</summary>
/// <remarks>
/// The initial state is returned only when it is complete. One that breaks off is requested again: a part of the old one beside
/// the new one could name tasks that ended in between.
/// </remarks>
internal sealed class WatchCursor(WatchEventsRequest first) : IResumable<WatchEventsResponse, WatchItem>
{
    private readonly List<BackgroundTask> _initial = [];
    private readonly Queue<WatchItem> _ready = new();

    /// <summary>Every event up to here has been returned. Null until the daemon has sent a bookmark or an event.</summary>
    private Bookmark? _reached;

    /// <inheritdoc/>
    public TimeSpan LongestPause => Backoff.Longest;

    /// <summary>Always false: the stream does not end by itself.</summary>
    public bool IsEnded => false;

    /// <inheritdoc/>
    public AsyncServerStreamingCall<WatchEventsResponse> Open(
        BackgroundTasks.BackgroundTasksClient raw, CancellationToken cancellation) =>
        raw.WatchEvents(Request(), cancellationToken: cancellation);

    /// <summary>Returns the request for the rest.</summary>
    internal WatchEventsRequest Request()
    {
        var request = first.Clone();
        if (_reached is null) return request;
        request.AfterRevision = _reached.Revision;
        request.Epoch = _reached.Epoch;
        request.InitialState = false;
        return request;
    }

    /// <summary>Drops an incomplete initial state.</summary>
    public void Disconnected() => _initial.Clear();

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
                // An item that only newer clients know.
                break;
        }
    }

    /// <inheritdoc/>
    public WatchItem? Next() => _ready.TryDequeue(out var item) ? item : null;

    private void TakeEvent(TaskEvent happened)
    {
        _reached ??= new Bookmark { Epoch = first.Epoch };
        if (happened.Revision <= _reached.Revision) return;
        _reached.Revision = happened.Revision;
        _ready.Enqueue(new WatchItem.Happened(happened));
    }

    private void TakeBookmark(Bookmark bookmark)
    {
        foreach (var task in _initial) _ready.Enqueue(new WatchItem.Initial(task));
        _initial.Clear();
        if (bookmark.Revision < _reached?.Revision) return;
        _reached = bookmark.Clone();
        _ready.Enqueue(new WatchItem.Reached(bookmark));
    }
}
