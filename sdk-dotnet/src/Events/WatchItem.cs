using Heeler.V1;

namespace Heeler.Client;

/// <summary>An item of a watch: one of the nested records.</summary>
public abstract record WatchItem
{
    private WatchItem()
    {
    }

    /// <summary>A live task of the initial state. All of them come before the first bookmark.</summary>
    /// <param name="Task">The task.</param>
    public sealed record Initial(BackgroundTask Task) : WatchItem;

    /// <summary>An event.</summary>
    /// <param name="Event">The event.</param>
    public sealed record Happened(TaskEvent Event) : WatchItem;

    /// <summary>The progress of the stream. Store the bookmark to resume after a crash of your program.</summary>
    /// <param name="Bookmark">The point that was reached.</param>
    public sealed record Reached(Bookmark Bookmark) : WatchItem;
}
