using Heeler.V1;

namespace Heeler.Client;

/// <summary>An item of an attachment: one of the nested records.</summary>
public abstract record AttachItem
{
    private AttachItem()
    {
    }

    /// <summary>The first item. It does not come again after a reconnect.</summary>
    /// <param name="Task">The task when the attachment began.</param>
    public sealed record Attached(BackgroundTask Task) : AttachItem;

    /// <summary>A piece of output that directly follows the one before it.</summary>
    /// <param name="Chunks">The chunks, in the order of arrival.</param>
    /// <param name="NextOffset">The offset after the last byte.</param>
    public sealed record Output(IReadOnlyList<OutputChunk> Chunks, ulong NextOffset) : AttachItem;

    /// <summary>The last item: every byte that was written before it has been returned.</summary>
    /// <param name="Task">The task when the attachment ended.</param>
    /// <param name="Reason">The reason for the end.</param>
    public sealed record Ended(BackgroundTask Task, AttachEndReason Reason) : AttachItem;
}
