using Heeler.V1;

namespace Heeler.Client;

/// <summary>The events to watch. By default, every event from now on.</summary>
public sealed record WatchOptions
{
    /// <summary>Starts after this revision. 0: with the first event that is kept.</summary>
    public ulong? AfterRevision { get; init; }

    /// <summary>
    /// Starts after a stored bookmark, instead of <see cref="AfterRevision"/>. Refused if the daemon's epoch is another one.
    /// </summary>
    public Bookmark? AfterBookmark { get; init; }

    /// <summary>Returns every live task first, then the events after that. Excludes a revision to start after.</summary>
    public bool InitialState { get; init; }

    /// <summary>The tasks to watch. Null: all.</summary>
    public TaskFilter? Filter { get; init; }

    /// <summary>The types of events. Empty: all.</summary>
    public IList<TaskEventType> Types { get; init; } = [];

    /// <summary>Maximum silence of the stream, after which a bookmark comes: at least 100 ms. Null: 15 seconds.</summary>
    public TimeSpan? BookmarkInterval { get; init; }

    /// <summary>Adds a summary to <c>Ended</c> events: the end of the task in words.</summary>
    public bool Summaries { get; init; }

    /// <summary>
    /// Makes this client an owner of a session as long as the watch lasts, from its first item on. When the last owner is gone and
    /// none comes back in time, the live tasks of the session are cancelled. Null: it owns none.
    /// </summary>
    public SessionOwnershipOptions? OwnSession { get; init; }

    /// <summary>Fails once the daemon has been away for this long. Null: never, once the daemon was reached.</summary>
    public TimeSpan? GiveUpAfter { get; init; }

    /// <summary>Returns the contract's request.</summary>
    public WatchEventsRequest ToRequest()
    {
        var request = new WatchEventsRequest
        {
            InitialState = InitialState,
            Filter = Filter,
            Types_ = { Types },
            BookmarkInterval = Time.ToProto(BookmarkInterval),
            Summaries = Summaries,
            OwnSession = OwnSession?.ToOwnership(),
        };
        if (AfterRevision is { } revision) request.AfterRevision = revision;
        if (AfterBookmark is { } bookmark) (request.AfterRevision, request.Epoch) = (bookmark.Revision, bookmark.Epoch);
        return request;
    }
}
