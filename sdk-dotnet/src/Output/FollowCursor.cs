using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>The position of a stream over many tasks. Pure: messages in, items out.</summary>
/// <remarks>
/// The tasks that are there already are returned only when all of them are known. A beginning that breaks off is requested
/// again: a part of the old one beside the new one could name tasks that ended in between.
/// </remarks>
internal sealed class FollowCursor(FollowOutputRequest first) : IResumable<FollowOutputResponse, FollowItem>
{
    private readonly Queue<FollowItem> _ready = new();

    /// <summary>The offset of each task that is followed. Null: where it was to begin.</summary>
    private readonly Dictionary<string, ulong?> _offsets = [];

    /// <summary>The revision and the epoch to resume after. Null until the first bookmark.</summary>
    private Bookmark? _reached;

    /// <inheritdoc/>
    public TimeSpan LongestPause => Backoff.Longest;

    /// <inheritdoc/>
    public bool IsEnded { get; private set; }

    /// <inheritdoc/>
    public AsyncServerStreamingCall<FollowOutputResponse> Open(
        BackgroundTasks.BackgroundTasksClient raw, CancellationToken cancellation) =>
        raw.FollowOutput(Request(), cancellationToken: cancellation);

    /// <summary>Returns the request for the rest.</summary>
    internal FollowOutputRequest Request()
    {
        var request = first.Clone();
        if (_reached is null) return request;
        request.Cursors.Clear();
        foreach (var (id, offset) in _offsets) request.Cursors.Add(Cursor(id, offset));
        request.AfterRevision = _reached.Revision;
        request.Epoch = _reached.Epoch;
        request.IncludeFinished = false;
        return request;
    }

    /// <summary>Drops an incomplete beginning.</summary>
    public void Disconnected()
    {
        if (_reached is not null) return;
        _ready.Clear();
        _offsets.Clear();
    }

    /// <inheritdoc/>
    public void Take(FollowOutputResponse message)
    {
        if (_reached is not null) _reached.Revision = Math.Max(_reached.Revision, message.Revision);
        switch (message.ItemCase)
        {
            case FollowOutputResponse.ItemOneofCase.Task:
                Begin(message.Task);
                break;
            case FollowOutputResponse.ItemOneofCase.Output:
                var output = message.Output;
                _offsets[output.TaskId] = output.NextOffset;
                _ready.Enqueue(new FollowItem.Output(output.TaskId, output.Chunks, output.NextOffset));
                break;
            case FollowOutputResponse.ItemOneofCase.Ended:
                _offsets.Remove(message.Ended.Id);
                _ready.Enqueue(new FollowItem.Ended(message.Ended));
                break;
            case FollowOutputResponse.ItemOneofCase.Gone:
                _offsets.Remove(message.Gone.TaskId);
                _ready.Enqueue(new FollowItem.Gone(message.Gone.TaskId));
                break;
            case FollowOutputResponse.ItemOneofCase.Bookmark:
                _reached = new Bookmark { Revision = message.Revision, Epoch = message.Bookmark.Epoch };
                break;
            case FollowOutputResponse.ItemOneofCase.Finished:
                IsEnded = true;
                break;
            case FollowOutputResponse.ItemOneofCase.None:
                // An item that only newer clients know.
                break;
        }
    }

    /// <inheritdoc/>
    public FollowItem? Next() => _reached is not null && _ready.TryDequeue(out var item) ? item : null;

    /// <summary>
    /// After a reconnect, a task that is known comes again. One that has not started begins with its first byte, also if it
    /// has written more by the time of a break.
    /// </summary>
    private void Begin(BackgroundTask task)
    {
        var given = first.Cursors.FirstOrDefault(cursor => cursor.TaskId == task.Id);
        var start = task.StartTime is null ? 0 : (ulong?)null;
        var offset = given is { HasOffset: true } ? given.Offset : start;
        if (_offsets.TryAdd(task.Id, offset)) _ready.Enqueue(new FollowItem.Begun(task));
    }

    private static OutputCursor Cursor(string taskId, ulong? offset)
    {
        var cursor = new OutputCursor { TaskId = taskId };
        if (offset is { } known) cursor.Offset = known;
        return cursor;
    }
}
