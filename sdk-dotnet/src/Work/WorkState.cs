using System.Threading.Channels;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// The knowledge of a worker about its task, and the messages that it has to send. It does no I/O: the stream takes messages out
/// and puts messages in, whenever it is connected.
/// </summary>
internal sealed class WorkState : IDisposable
{
    /// <summary>Reports that may be without an acknowledgement. Further ones wait.</summary>
    private const int Unacknowledged = 256;

    /// <summary>More messages than the daemon sends without a receipt.</summary>
    private const int UnreadMessages = 128;

    private readonly Lock _lock = new();
    private readonly Outbox _outbox = new();
    private readonly SemaphoreSlim _room = new(Unacknowledged);
    private readonly SemaphoreSlim _wake = new(0, 1);
    private readonly CancellationTokenSource _stopping = new();
    private readonly CancellationTokenSource _cancelled = new();
    private readonly TaskCompletionSource _admitted = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly TaskCompletionSource _delivered = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly TaskCompletionSource<End> _over = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly Channel<TaskMessage> _messages = Channel.CreateBounded<TaskMessage>(UnreadMessages);
    private WorkJoin _join = new();
    private WorkResult? _result;
    private WorkCancel? _cancel;
    private bool _beat;
    private ulong _newestMessage;
    private ulong _received;
    private ulong _receiptSent;
    private bool _leaving;
    private bool _disposed;

    internal WorkState() => (Stopping, Cancelled) = (_stopping.Token, _cancelled.Token);

    /// <summary>The end of a worker: the finished task or, if the stream failed for good, the error.</summary>
    internal sealed record End(BackgroundTask? Task, Exception? Error);

    internal CancellationToken Stopping { get; }

    internal CancellationToken Cancelled { get; }

    internal Task Admitted => _admitted.Task;

    internal Task Delivered => _delivered.Task;

    internal Task<End> Over => _over.Task;

    internal ChannelReader<TaskMessage> Messages => _messages.Reader;

    /// <summary>The lease of a hosted task. Null for any other task.</summary>
    internal TimeSpan? Lease { get; private set; }

    internal WorkCancel? Cancel
    {
        get
        {
            lock (_lock) return _cancel?.Clone();
        }
    }

    internal string TaskId
    {
        get
        {
            lock (_lock) return _join.TaskId;
        }
    }

    internal bool IsLeaving
    {
        get
        {
            lock (_lock) return _leaving;
        }
    }

    /// <summary>True if the worker leaves its task, and has nothing more to say.</summary>
    internal bool MayLeave
    {
        get
        {
            lock (_lock) return _leaving && _outbox.IsEmpty && (Lease is null || _over.Task.IsCompleted);
        }
    }

    /// <summary>The first message of the next stream.</summary>
    internal WorkRequest Join()
    {
        lock (_lock) return new WorkRequest { Join = _join.Clone() };
    }

    /// <summary>Takes the first message of a stream. What the daemon does not have is sent again.</summary>
    internal void Joined(WorkJoined joined)
    {
        var task = joined.Task ?? throw new IncompleteAnswerException("task");
        lock (_lock)
        {
            _join = new WorkJoin { TaskId = task.Id, WorkerId = joined.WorkerId };
            Lease = joined.Lease?.ToTimeSpan();
            Acknowledge(joined.AcknowledgedSequence);
            _outbox.Rewind();
            _receiptSent = 0;
        }
        // A task that has ended in its queue has no work.
        if (task.State is TaskState.Starting or TaskState.Running or TaskState.Stopping) _admitted.TrySetResult();
    }

    /// <summary>Takes a message of the daemon.</summary>
    internal void Take(WorkResponse response)
    {
        switch (response.ItemCase)
        {
            case WorkResponse.ItemOneofCase.Admitted:
                _admitted.TrySetResult();
                break;
            case WorkResponse.ItemOneofCase.Cancel:
                TakeCancel(response.Cancel);
                break;
            case WorkResponse.ItemOneofCase.Message:
                TakeMessage(response.Message);
                break;
            case WorkResponse.ItemOneofCase.Acknowledged:
                lock (_lock) Acknowledge(response.Acknowledged.Sequence);
                break;
            case WorkResponse.ItemOneofCase.Ended:
                Finish(new End(response.Ended.Task ?? throw new IncompleteAnswerException("task"), null));
                break;
            case WorkResponse.ItemOneofCase.Joined:
            case WorkResponse.ItemOneofCase.None:
                // An item that only newer clients know.
                break;
        }
    }

    /// <summary>Ends the worker: its task goes on without it.</summary>
    internal void Fail(Exception error) => Finish(new End(null, error));

    /// <summary>Returns the next message to send on the present stream. Null: there is none now.</summary>
    internal WorkRequest? NextRequest()
    {
        lock (_lock)
        {
            if (_outbox.Next() is { } numbered) return numbered;
            if (_received > _receiptSent)
            {
                _receiptSent = _received;
                return new WorkRequest { Receipt = new WorkMessageReceipt { Number = _received } };
            }
            if (!_beat) return null;
            _beat = false;
            return new WorkRequest { Heartbeat = new WorkHeartbeat() };
        }
    }

    /// <summary>Waits until there may be a message to send. False: the time is over.</summary>
    internal Task<bool> WaitForRequestAsync(TimeSpan timeout, CancellationToken cancellation) =>
        _wake.WaitAsync(timeout, cancellation);

    /// <summary>Keeps progress for the daemon, once there is room.</summary>
    internal async Task ReportAsync(ProgressUpdate update, CancellationToken cancellation)
    {
        var room = _room.WaitAsync(cancellation);
        // After the end no acknowledgement makes room.
        await Task.WhenAny(room, _over.Task).ConfigureAwait(false);
        if (_over.Task.IsCompleted) return;
        await room.ConfigureAwait(false);
        lock (_lock) _outbox.Push(new WorkRequest { Progress = update });
        Wake();
    }

    internal void Beat()
    {
        lock (_lock) _beat = true;
        Wake();
    }

    /// <summary>Keeps the result for the daemon.</summary>
    internal void Deliver(WorkResult result)
    {
        lock (_lock)
        {
            if (ReferenceEquals(_result, result) || _over.Task.IsCompleted) return;
            if (_result is not null) throw new InvalidOperationException("a task has one result, and another one was delivered");
            _result = result;
            _outbox.Push(new WorkRequest { Result = result.ToMessage() });
        }
        Wake();
    }

    /// <summary>Notes that a message was handed out.</summary>
    internal void Received(ulong number)
    {
        lock (_lock) _received = Math.Max(_received, number);
        Wake();
    }

    /// <summary>Prepares to leave the task. A hosted task without a worker would be lost after its lease.</summary>
    internal void Leave()
    {
        lock (_lock)
        {
            _leaving = true;
            if (Lease is not null && _result is null && !_over.Task.IsCompleted)
            {
                _result = WorkResult.Cancelled("the worker was disposed before it delivered a result");
                _outbox.Push(new WorkRequest { Result = _result.ToMessage() });
            }
        }
        Wake();
    }

    public void Dispose()
    {
        lock (_lock) _disposed = true;
        _stopping.Dispose();
        _cancelled.Dispose();
        _wake.Dispose();
        _room.Dispose();
    }

    private void TakeCancel(WorkCancel cancel)
    {
        lock (_lock) _cancel = cancel;
        // The callbacks of the body must not delay the stream.
        _ = _stopping.CancelAsync();
        if (cancel.Mode != WorkCancelMode.Soft) _ = _cancelled.CancelAsync();
    }

    /// <summary>After a reconnect the daemon sends those messages again that have no receipt.</summary>
    private void TakeMessage(TaskMessage message)
    {
        if (message.Number <= _newestMessage) return;
        _newestMessage = message.Number;
        _messages.Writer.TryWrite(message);
    }

    private void Acknowledge(ulong sequence)
    {
        foreach (var request in _outbox.Acknowledge(sequence))
        {
            if (request.ItemCase == WorkRequest.ItemOneofCase.Result) _delivered.TrySetResult();
            else _room.Release();
        }
        if (_leaving) Wake();
    }

    private void Finish(End end)
    {
        lock (_lock)
        {
            if (!_over.TrySetResult(end)) return;
        }
        _messages.Writer.TryComplete();
        _ = _stopping.CancelAsync();
        _ = _cancelled.CancelAsync();
        Wake();
    }

    private void Wake()
    {
        lock (_lock)
        {
            if (!_disposed && _wake.CurrentCount == 0) _wake.Release();
        }
    }
}
