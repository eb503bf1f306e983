using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>What an attachment has given, and so what it has to ask for next. Pure: messages in, items out.</summary>
internal sealed class AttachCursor(AttachRequest first) : IResumable<AttachResponse, AttachItem>
{
    /// <summary>A holder must come back within its window: it tries several times in it.</summary>
    private const int TriesInAWindow = 4;

    private readonly AttachRequest _next = first.Clone();
    private readonly Queue<AttachItem> _ready = new();
    private bool _attached;

    /// <inheritdoc/>
    public TimeSpan LongestPause { get; private set; } = Backoff.Longest;

    /// <inheritdoc/>
    public bool IsOver { get; private set; }

    /// <inheritdoc/>
    public AsyncServerStreamingCall<AttachResponse> Ask(
        BackgroundTasks.BackgroundTasksClient daemon, CancellationToken cancellation) =>
        daemon.Attach(Request(), cancellationToken: cancellation);

    /// <summary>What to ask for, now or after a break.</summary>
    internal AttachRequest Request() => _next.Clone();

    /// <summary>All that was taken is complete in itself.</summary>
    public void Broke()
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
            case AttachResponse.ItemOneofCase.Released:
                _ready.Enqueue(new AttachItem.Released(Task(message.Released.Task), message.Released.Reason));
                IsOver = true;
                break;
            case AttachResponse.ItemOneofCase.None:
                // From a newer daemon, and for newer clients.
                break;
        }
    }

    /// <inheritdoc/>
    public AttachItem? Give() => _ready.TryDequeue(out var item) ? item : null;

    private static BackgroundTask Task(BackgroundTask? task) => task ?? throw new IncompleteAnswerException("task");

    private void TakeAttached(BackgroundTask task)
    {
        if (_attached) return;
        _attached = true;
        // Whoever was held once must not follow the task in the background after a break.
        _next.ForegroundOnly |= task.Placement == Placement.Foreground;
        if (task.HolderWindow is { } window) LongestPause = Within(window.ToTimeSpan() / TriesInAWindow);
        _ready.Enqueue(new AttachItem.Attached(task));
    }

    private static TimeSpan Within(TimeSpan pause) =>
        pause < Backoff.First ? Backoff.First : pause > Backoff.Longest ? Backoff.Longest : pause;
}
