using Heeler.V1;

namespace Heeler.Client;

/// <summary>Changes to the settings of a queue. A property that is null leaves its setting unchanged.</summary>
public sealed class UpdateQueueOptions
{
    /// <summary>Maximum number of its tasks that run at a time: 1 to 10000.</summary>
    public uint? Slots { get; init; }

    /// <summary>True admits no further task.</summary>
    public bool? Paused { get; init; }

    /// <summary>Returns the contract's request for one queue.</summary>
    public UpdateQueueRequest ToRequest(string name)
    {
        ArgumentNullException.ThrowIfNull(name);
        var request = new UpdateQueueRequest { Name = name };
        if (Slots is { } slots) request.Slots = slots;
        if (Paused is { } paused) request.Paused = paused;
        return request;
    }
}
