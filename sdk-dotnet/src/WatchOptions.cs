using Heeler.V1;

namespace Heeler.Client;

/// <summary>From where to watch, and what. Nothing set: everything that happens from now on.</summary>
public sealed class WatchOptions
{
    /// <summary>Every event after this revision; 0: from the first that there is record of.</summary>
    public ulong? AfterRevision { get; init; }

    /// <summary>
    /// Every event after a bookmark that was kept, instead of <see cref="AfterRevision"/>. Refused if the daemon now has another
    /// state directory.
    /// </summary>
    public Bookmark? AfterBookmark { get; init; }

    /// <summary>First every live task, then what happens after that. Not together with a place to begin after.</summary>
    public bool InitialState { get; init; }

    /// <summary>Only of these tasks.</summary>
    public TaskFilter? Filter { get; init; }

    /// <summary>Only these events. Empty: all.</summary>
    public IList<TaskEventType> Types { get; init; } = [];

    /// <summary>How long the stream may be silent before a bookmark comes: at least 100 ms. None: 15 seconds.</summary>
    public TimeSpan? BookmarkInterval { get; init; }

    /// <summary>
    /// Ends with an error once the daemon has been away for this long. None: it is waited for without end, once it has been
    /// reached.
    /// </summary>
    public TimeSpan? GiveUpAfter { get; init; }

    /// <summary>The contract's message.</summary>
    public WatchEventsRequest ToRequest()
    {
        var request = new WatchEventsRequest { InitialState = InitialState, Filter = Filter, Types_ = { Types } };
        if (AfterRevision is { } revision) request.AfterRevision = revision;
        if (AfterBookmark is { } bookmark)
        {
            request.AfterRevision = bookmark.Revision;
            request.StateId = bookmark.StateId;
        }
        if (BookmarkInterval is { } interval) request.BookmarkInterval = Time.ToProto(interval);
        return request;
    }
}

/// <summary>What a watch gives: one of the records within.</summary>
public abstract record WatchItem
{
    private WatchItem()
    {
    }

    /// <summary>A live task as the initial state has it: all of them come before the first bookmark.</summary>
    /// <param name="Task">The task.</param>
    public sealed record Initial(BackgroundTask Task) : WatchItem;

    /// <summary>Something that happened.</summary>
    /// <param name="Event">What.</param>
    public sealed record Happened(TaskEvent Event) : WatchItem;

    /// <summary>How far the stream has come: what to keep in order to resume after a crash of the watcher.</summary>
    /// <param name="Bookmark">Where.</param>
    public sealed record Reached(Bookmark Bookmark) : WatchItem;
}
