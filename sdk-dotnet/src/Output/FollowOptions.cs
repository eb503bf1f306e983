using Heeler.V1;

namespace Heeler.Client;

/// <summary>The output of many tasks to follow. By default, that of every live task and every later one.</summary>
public sealed record FollowOptions
{
    /// <summary>The tasks to follow, also those that match later. Null: all.</summary>
    public TaskFilter? Filter { get; init; }

    /// <summary>Tasks to follow from an offset, live or finished, whether they match or not: at most 10,000.</summary>
    public IList<OutputCursor> Cursors { get; init; } = [];

    /// <summary>
    /// Starts this many bytes before the present end of each task that is there already. Later tasks start with their first byte.
    /// </summary>
    public ulong? TailBytes { get; init; }

    /// <summary>Starts this many lines before the present end, instead of <see cref="TailBytes"/>.</summary>
    public ulong? TailLines { get; init; }

    /// <summary>Starts with the first byte that was read at this time or later, instead of <see cref="TailBytes"/>.</summary>
    public DateTimeOffset? Since { get; init; }

    /// <summary>The part of the output to return. Null: all of it.</summary>
    public OutputFilter? OutputFilter { get; init; }

    /// <summary>The form of the output: bytes by default.</summary>
    public OutputView View { get; init; }

    /// <summary>
    /// Follows finished tasks, too: the 1,000 that were created last. Excludes a revision to start after.
    /// </summary>
    public bool IncludeFinished { get; init; }

    /// <summary>The end of the stream: by default, it does not end by itself.</summary>
    public FollowUntil Until { get; init; }

    /// <summary>Follows the tasks of <see cref="Cursors"/> and those that match by an event after this revision, and no others.</summary>
    public ulong? AfterRevision { get; init; }

    /// <summary>
    /// As <see cref="AfterRevision"/>, by a stored bookmark. Refused if the daemon's epoch is another one.
    /// </summary>
    public Bookmark? AfterBookmark { get; init; }

    /// <summary>Maximum silence of the stream before a sign of life: at least 100 ms. Null: 15 seconds.</summary>
    public TimeSpan? BookmarkInterval { get; init; }

    /// <summary>Fails once the daemon has been away for this long. Null: never, once the daemon was reached.</summary>
    public TimeSpan? GiveUpAfter { get; init; }

    /// <summary>Returns the contract's request.</summary>
    /// <exception cref="ArgumentException">There are several starts.</exception>
    public FollowOutputRequest ToRequest()
    {
        ReadCursor.CheckStarts(TailBytes, TailLines, Since);
        var request = new FollowOutputRequest
        {
            Filter = Filter,
            Cursors = { Cursors },
            OutputFilter = OutputFilter,
            View = View,
            IncludeFinished = IncludeFinished,
            Until = Until,
            BookmarkInterval = Time.ToProto(BookmarkInterval),
        };
        if (TailBytes is { } bytes) request.TailBytes = bytes;
        if (TailLines is { } lines) request.TailLines = lines;
        if (Since is { } since) request.Since = Time.ToProto(since);
        if (AfterRevision is { } revision) request.AfterRevision = revision;
        if (AfterBookmark is { } bookmark) (request.AfterRevision, request.Epoch) = (bookmark.Revision, bookmark.Epoch);
        return request;
    }
}
