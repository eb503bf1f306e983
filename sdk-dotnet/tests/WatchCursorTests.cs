using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>What a watch gives, and asks for, when its connection breaks.</summary>
public sealed class WatchCursorTests
{
    /// <summary>E2</summary>
    [Fact]
    public void A_break_resumes_after_the_last_event_in_the_same_state()
    {
        var cursor = After(4);
        Take(cursor, Bookmark(4), Event(5), Event(8));
        cursor.Broke();
        var request = cursor.Request();
        Assert.Equal(8u, request.AfterRevision);
        Assert.Equal("here", request.StateId);
        Assert.Equal([TaskEventType.Ended], request.Types_);
        Assert.Equal(["b4", "5", "8"], Given(cursor));
    }

    /// <summary>E2</summary>
    [Fact]
    public void What_comes_again_after_a_break_is_not_given_again()
    {
        var cursor = After(0);
        Take(cursor, Bookmark(0), Event(1), Event(2), Bookmark(1), Event(2), Event(3));
        Assert.Equal(["b0", "1", "2", "3"], Given(cursor));
    }

    /// <summary>E8</summary>
    [Fact]
    public void A_bookmark_moves_the_place_past_events_that_do_not_match()
    {
        var cursor = After(0);
        Take(cursor, Bookmark(0), Bookmark(90));
        Assert.Equal(90u, cursor.Request().AfterRevision);
    }

    /// <summary>E3</summary>
    [Fact]
    public void An_initial_state_that_breaks_off_is_asked_for_anew_and_given_once()
    {
        var cursor = new WatchCursor(new WatchEventsRequest { InitialState = true });
        Take(cursor, Initial("a"), Initial("b"));
        Assert.Empty(Given(cursor));
        cursor.Broke();
        Assert.True(cursor.Request().InitialState);

        Take(cursor, Initial("b"), Bookmark(7), Event(8));
        Assert.Equal(["b", "b7", "8"], Given(cursor));
        cursor.Broke();
        Assert.False(cursor.Request().InitialState);
        Assert.Equal(8u, cursor.Request().AfterRevision);
    }

    [Fact]
    public void A_watch_from_now_that_was_never_answered_is_still_from_now()
    {
        var cursor = new WatchCursor(new WatchEventsRequest());
        cursor.Broke();
        Assert.False(cursor.Request().HasAfterRevision);
        Take(cursor, Bookmark(3));
        Assert.Equal(3u, cursor.Request().AfterRevision);
    }

    [Fact]
    public void A_bookmark_that_was_given_stays_as_it_was()
    {
        var cursor = After(0);
        Take(cursor, Bookmark(1), Event(2));
        Assert.Equal(["b1", "2"], Given(cursor));
    }

    private static WatchCursor After(ulong revision) =>
        new(new WatchEventsRequest { AfterRevision = revision, Types_ = { TaskEventType.Ended } });

    private static WatchEventsResponse Event(ulong revision) => new() { Event = new TaskEvent { Revision = revision } };

    private static WatchEventsResponse Bookmark(ulong revision) =>
        new() { Bookmark = new Bookmark { Revision = revision, StateId = "here" } };

    private static WatchEventsResponse Initial(string id) => new() { Initial = new BackgroundTask { Id = id } };

    private static void Take(WatchCursor cursor, params WatchEventsResponse[] messages)
    {
        foreach (var message in messages) cursor.Take(message);
    }

    /// <summary>Events as revisions, bookmarks as <c>b</c> and revision, tasks as their ids.</summary>
    private static List<string> Given(WatchCursor cursor)
    {
        var given = new List<string>();
        while (cursor.Give() is { } item)
        {
            given.Add(item switch
            {
                WatchItem.Initial(var task) => task.Id,
                WatchItem.Happened(var happened) => $"{happened.Revision}",
                WatchItem.Reached(var bookmark) => $"b{bookmark.Revision}",
                _ => throw new InvalidOperationException(),
            });
        }
        return given;
    }
}
