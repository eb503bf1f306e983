using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>The items and the next request of a watch whose connection breaks.</summary>
public sealed class WatchCursorTests
{
    /// <summary>E2</summary>
    [Fact]
    public void A_disconnect_resumes_after_the_last_event_in_the_same_epoch()
    {
        var cursor = After(4);
        Take(cursor, Bookmark(4), Event(5), Event(8));
        cursor.Disconnected();
        var request = cursor.Request();
        Assert.Equal(8u, request.AfterRevision);
        Assert.Equal("here", request.Epoch);
        Assert.Equal([TaskEventType.Ended], request.Types_);
        Assert.Equal(["b4", "5", "8"], Items(cursor));
    }

    /// <summary>E2</summary>
    [Fact]
    public void Repeated_events_are_returned_once()
    {
        var cursor = After(0);
        Take(cursor, Bookmark(0), Event(1), Event(2), Bookmark(1), Event(2), Event(3));
        Assert.Equal(["b0", "1", "2", "3"], Items(cursor));
    }

    /// <summary>E8</summary>
    [Fact]
    public void A_bookmark_moves_the_position_past_events_that_do_not_match()
    {
        var cursor = After(0);
        Take(cursor, Bookmark(0), Bookmark(90));
        Assert.Equal(90u, cursor.Request().AfterRevision);
    }

    /// <summary>E3</summary>
    [Fact]
    public void An_incomplete_initial_state_is_requested_again_and_returned_once()
    {
        var cursor = new WatchCursor(new WatchEventsRequest { InitialState = true });
        Take(cursor, Initial("a"), Initial("b"));
        Assert.Empty(Items(cursor));
        cursor.Disconnected();
        Assert.True(cursor.Request().InitialState);

        Take(cursor, Initial("b"), Bookmark(7), Event(8));
        Assert.Equal(["b", "b7", "8"], Items(cursor));
        cursor.Disconnected();
        Assert.False(cursor.Request().InitialState);
        Assert.Equal(8u, cursor.Request().AfterRevision);
    }

    [Fact]
    public void A_watch_without_an_answer_still_starts_from_now()
    {
        var cursor = new WatchCursor(new WatchEventsRequest());
        cursor.Disconnected();
        Assert.False(cursor.Request().HasAfterRevision);
        Take(cursor, Bookmark(3));
        Assert.Equal(3u, cursor.Request().AfterRevision);
    }

    [Fact]
    public void A_returned_bookmark_does_not_change()
    {
        var cursor = After(0);
        Take(cursor, Bookmark(1), Event(2));
        Assert.Equal(["b1", "2"], Items(cursor));
    }

    private static WatchCursor After(ulong revision) =>
        new(new WatchEventsRequest { AfterRevision = revision, Types_ = { TaskEventType.Ended } });

    private static WatchEventsResponse Event(ulong revision) => new() { Event = new TaskEvent { Revision = revision } };

    private static WatchEventsResponse Bookmark(ulong revision) =>
        new() { Bookmark = new Bookmark { Revision = revision, Epoch = "here" } };

    private static WatchEventsResponse Initial(string id) => new() { Initial = new BackgroundTask { Id = id } };

    private static void Take(WatchCursor cursor, params WatchEventsResponse[] messages)
    {
        foreach (var message in messages) cursor.Take(message);
    }

    /// <summary>Events as revisions, bookmarks as <c>b</c> and revision, tasks as their ids.</summary>
    private static List<string> Items(WatchCursor cursor)
    {
        var items = new List<string>();
        while (cursor.Next() is { } item)
        {
            items.Add(item switch
            {
                WatchItem.Initial(var task) => task.Id,
                WatchItem.Happened(var happened) => $"{happened.Revision}",
                WatchItem.Reached(var bookmark) => $"b{bookmark.Revision}",
                _ => throw new InvalidOperationException(),
            });
        }
        return items;
    }
}
