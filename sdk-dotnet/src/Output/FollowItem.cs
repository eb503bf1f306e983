using Heeler.V1;

namespace Heeler.Client;

/// <summary>An item of a stream over many tasks: one of the nested records.</summary>
public abstract record FollowItem
{
    private FollowItem()
    {
    }

    /// <summary>The stream begins to follow a task. It does not come again after a reconnect.</summary>
    /// <param name="Task">The task.</param>
    public sealed record Begun(BackgroundTask Task) : FollowItem;

    /// <summary>A piece of output that directly follows the one before it of the same task.</summary>
    /// <param name="TaskId">The task.</param>
    /// <param name="Chunks">The chunks, in the order of arrival. Empty if the task has nothing to return yet.</param>
    /// <param name="NextOffset">The offset to continue from, as a cursor of a later stream.</param>
    public sealed record Output(string TaskId, IReadOnlyList<OutputChunk> Chunks, ulong NextOffset) : FollowItem;

    /// <summary>A task is finished, and all its output has been returned.</summary>
    /// <param name="Task">The task.</param>
    public sealed record Ended(BackgroundTask Task) : FollowItem;

    /// <summary>A task does not exist any more, or never did.</summary>
    /// <param name="TaskId">The task.</param>
    public sealed record Gone(string TaskId) : FollowItem;
}
