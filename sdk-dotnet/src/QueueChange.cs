using Heeler.V1;

namespace Heeler.Client;

/// <summary>What to change of a queue. What is not set stays as it is.</summary>
public sealed class QueueChange
{
    /// <summary>How many of its tasks may run at a time: 1 to 10000.</summary>
    public uint? Slots { get; init; }

    /// <summary>Whether it lets no further task begin.</summary>
    public bool? Paused { get; init; }

    /// <summary>The contract's message for one queue.</summary>
    public UpdateQueueRequest For(string name)
    {
        ArgumentNullException.ThrowIfNull(name);
        var request = new UpdateQueueRequest { Name = name };
        if (Slots is { } slots) request.Slots = slots;
        if (Paused is { } paused) request.Paused = paused;
        return request;
    }
}
