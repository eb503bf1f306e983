using Heeler.V1;

namespace Heeler.Client;

/// <summary>The numbered messages of a worker, until the daemon has acknowledged them. Pure, and for one thread at a time.</summary>
internal sealed class Outbox
{
    private readonly Queue<WorkRequest> _kept = new();
    private ulong _latest;

    /// <summary>The latest number that was sent on the present stream.</summary>
    private ulong _sent;

    /// <summary>True if every message is acknowledged.</summary>
    internal bool IsEmpty => _kept.Count == 0;

    /// <summary>Numbers a message and keeps it.</summary>
    internal void Push(WorkRequest request)
    {
        request.Sequence = ++_latest;
        _kept.Enqueue(request);
    }

    /// <summary>Returns the next message to send on the present stream. Null: there is none.</summary>
    internal WorkRequest? Next()
    {
        var next = _kept.FirstOrDefault(request => request.Sequence > _sent);
        if (next is not null) _sent = next.Sequence;
        return next;
    }

    /// <summary>Begins a new stream: what is not acknowledged is sent again, in order.</summary>
    internal void Rewind() => _sent = 0;

    /// <summary>Forgets the messages up to a number, and returns them.</summary>
    internal List<WorkRequest> Acknowledge(ulong sequence)
    {
        var acknowledged = new List<WorkRequest>();
        while (_kept.TryPeek(out var request) && request.Sequence <= sequence) acknowledged.Add(_kept.Dequeue());
        return acknowledged;
    }
}
