using Google.Protobuf;
using Google.Protobuf.WellKnownTypes;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>The items and the next request of a stream over many tasks whose connection breaks.</summary>
public sealed class FollowCursorTests
{
    private static readonly FollowOutputResponse _bookmark =
        new() { Bookmark = new FollowBookmark { Epoch = "here" }, Revision = 4 };

    /// <summary>O15</summary>
    [Fact]
    public void A_disconnect_resumes_each_task_that_has_not_ended_at_its_offset()
    {
        var cursor = new FollowCursor(new FollowOutputRequest { IncludeFinished = true, Until = FollowUntil.Finished });
        Take(cursor, Begins("a"), Begins("b"), _bookmark, Output("a", "x", 7), Begins("c", 6), Ends("b", 8));
        Assert.Equal(["a", "b", "a: x", "c", "ended b"], Items(cursor));
        cursor.Disconnected();
        var request = cursor.Request();
        Assert.Equal([("a", 7ul), ("c", null)], Places(cursor));
        Assert.Equal((8u, "here", false), (request.AfterRevision, request.Epoch, request.IncludeFinished));
        Assert.Equal(FollowUntil.Finished, request.Until);
        Take(cursor, Begins("a"), Begins("c"), _bookmark, Output("a", "y", 8));
        Assert.Equal(["a: y"], Items(cursor));
        Assert.Equal(8u, cursor.Request().Cursors[0].Offset);
    }

    /// <summary>O15</summary>
    [Fact]
    public void A_task_that_has_not_started_is_resumed_at_its_first_byte()
    {
        var cursor = new FollowCursor(new FollowOutputRequest { TailLines = 1 });
        Take(cursor, _bookmark, new() { Task = new BackgroundTask { Id = "a" }, Revision = 5 });
        Assert.Equal([("a", 0ul)], Places(cursor));
    }

    /// <summary>O15</summary>
    [Fact]
    public void An_incomplete_beginning_is_requested_again_and_returned_once()
    {
        var first = new FollowOutputRequest { Cursors = { new OutputCursor { TaskId = "b", Offset = 3 } } };
        var cursor = new FollowCursor(first);
        Take(cursor, Begins("a"), Begins("b"));
        Assert.Empty(Items(cursor));
        cursor.Disconnected();
        Assert.Equal(first, cursor.Request());

        // The first task has ended in between.
        Take(cursor, Begins("b"), _bookmark);
        Assert.Equal(["b"], Items(cursor));
        Assert.Equal([("b", 3ul)], Places(cursor));
    }

    /// <summary>O15</summary>
    [Fact]
    public void A_task_that_is_gone_is_not_resumed_and_the_last_message_ends_the_stream()
    {
        var cursor = new FollowCursor(new FollowOutputRequest());
        Take(cursor, Begins("a"), _bookmark, new() { Gone = new TaskGone { TaskId = "a" }, Revision = 5 });
        Assert.Equal(["a", "gone a"], Items(cursor));
        Assert.Empty(Places(cursor));
        Assert.False(cursor.IsEnded);
        Take(cursor, new FollowOutputResponse { Finished = new FollowFinished(), Revision = 5 });
        Assert.True(cursor.IsEnded);
    }

    private static FollowOutputResponse Begins(string id, ulong revision = 4) =>
        new() { Task = new BackgroundTask { Id = id, StartTime = new Timestamp() }, Revision = revision };

    private static FollowOutputResponse Ends(string id, ulong revision) =>
        new() { Ended = new BackgroundTask { Id = id }, Revision = revision };

    private static FollowOutputResponse Output(string id, string text, ulong next)
    {
        var chunk = new OutputChunk { Data = ByteString.CopyFromUtf8(text) };
        return new() { Output = new FollowedOutput { TaskId = id, Chunks = { chunk }, NextOffset = next }, Revision = 4 };
    }

    private static void Take(FollowCursor cursor, params FollowOutputResponse[] messages)
    {
        foreach (var message in messages) cursor.Take(message);
    }

    private static List<(string Task, ulong? Offset)> Places(FollowCursor cursor) =>
        [.. cursor.Request().Cursors.Select(at => (at.TaskId, at.HasOffset ? at.Offset : (ulong?)null))];

    /// <summary>Tasks as their ids, the rest as its kind, id and text.</summary>
    private static List<string> Items(FollowCursor cursor)
    {
        var items = new List<string>();
        while (cursor.Next() is { } item)
        {
            items.Add(item switch
            {
                FollowItem.Begun(var task) => task.Id,
                FollowItem.Output(var id, var chunks, _) => $"{id}: {chunks[0].Data.ToStringUtf8()}",
                FollowItem.Ended(var task) => $"ended {task.Id}",
                FollowItem.Gone(var id) => $"gone {id}",
                _ => throw new InvalidOperationException(),
            });
        }
        return items;
    }
}
