using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>The position of an attachment. Pure: messages in, items out.</summary>
internal sealed class AttachCursor(AttachRequest first) : IResumable<AttachResponse, AttachItem>
{
    /// <summary>A client must attach again within the reattach window, so it tries several times in it.</summary>
    private const int TriesInWindow = 4;

    private readonly AttachRequest _next = first.Clone();
    private readonly Queue<AttachItem> _ready = new();
    private bool _attached;

    /// <inheritdoc/>
    public TimeSpan LongestPause { get; private set; } = Backoff.Longest;

    /// <inheritdoc/>
    public bool IsEnded { get; private set; }

    /// <inheritdoc/>
    public AsyncServerStreamingCall<AttachResponse> Open(
        BackgroundTasks.BackgroundTasksClient raw, CancellationToken cancellation) =>
        raw.Attach(Request(), cancellationToken: cancellation);

    /// <summary>Returns the request for the rest.</summary>
    internal AttachRequest Request() => _next.Clone();

    /// <summary>Does nothing: every message is complete in itself.</summary>
    public void Disconnected()
    {
    }

    /// <inheritdoc/>
    public void Take(AttachResponse message)
    {
        switch (message.ItemCase)
        {
            case AttachResponse.ItemOneofCase.Attached:
                TakeAttached(Task(message.Attached.Task));
                break;
            case AttachResponse.ItemOneofCase.Output:
                _next.Offset = message.Output.NextOffset;
                _ready.Enqueue(new AttachItem.Output(message.Output.Chunks, message.Output.NextOffset));
                break;
            case AttachResponse.ItemOneofCase.Ended:
                _ready.Enqueue(new AttachItem.Ended(Task(message.Ended.Task), message.Ended.Reason));
                IsEnded = true;
                break;
            case AttachResponse.ItemOneofCase.None:
                // An item that only newer clients know.
                break;
        }
    }

    /// <inheritdoc/>
    public AttachItem? Next() => _ready.TryDequeue(out var item) ? item : null;

    private static BackgroundTask Task(BackgroundTask? task) => task ?? throw new IncompleteAnswerException("task");

    private void TakeAttached(BackgroundTask task)
    {
        if (_attached) return;
        _attached = true;
        // A client that was attached in the foreground must not follow the task in the background after a reconnect.
        _next.ForegroundOnly |= task.Placement == Placement.Foreground;
        if (task.Spec?.Foreground?.ReattachWindow is { } window) LongestPause = Bounded(window.ToTimeSpan() / TriesInWindow);
        _ready.Enqueue(new AttachItem.Attached(task));
    }

    private static TimeSpan Bounded(TimeSpan pause) =>
        pause < Backoff.First ? Backoff.First : pause > Backoff.Longest ? Backoff.Longest : pause;
}
