using Google.Protobuf;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>The items and the next request of an attachment whose connection breaks.</summary>
public sealed class AttachCursorTests
{
    /// <summary>F6</summary>
    [Fact]
    public void A_disconnect_resumes_after_the_last_byte_in_the_foreground_only()
    {
        var cursor = Cursor(new AttachOptions { TailBytes = 100 });
        Assert.Equal((100u, false), (cursor.Request().TailBytes, cursor.Request().ForegroundOnly));
        Take(cursor, Attached(Placement.Foreground), Output(7, "abc"));
        cursor.Disconnected();
        Assert.Equal((10u, true), (cursor.Request().Offset, cursor.Request().ForegroundOnly));
        Take(cursor, Attached(Placement.Background), Output(10, "d"));
        Assert.Equal(["attached", "abc", "d"], Items(cursor));
        Assert.False(cursor.IsEnded);
    }

    [Fact]
    public void A_background_task_is_followed_after_a_disconnect()
    {
        var cursor = Cursor(new AttachOptions());
        Take(cursor, Attached(Placement.Background));
        cursor.Disconnected();
        Assert.False(cursor.Request().ForegroundOnly);
    }

    [Fact]
    public void The_last_message_ends_the_stream()
    {
        var cursor = Cursor(new AttachOptions());
        Take(cursor, Attached(Placement.Foreground), Ended(new BackgroundTask()));
        Assert.True(cursor.IsEnded);
        Assert.Equal(["attached", "Detached"], Items(cursor));
    }

    [Fact]
    public void A_message_without_its_task_is_an_error() =>
        Assert.Throws<IncompleteAnswerException>(() => Cursor(new AttachOptions()).Take(Ended(null)));

    /// <summary>F6</summary>
    [Theory]
    [InlineData(0, 10)]
    [InlineData(2, 500)]
    [InlineData(3600, 1000)]
    public void A_client_tries_several_times_within_the_reattach_window(int window, int pause)
    {
        var cursor = Cursor(new AttachOptions());
        var attached = Attached(Placement.Foreground);
        var foreground = new ForegroundPolicy { ReattachWindow = Time.ToProto(TimeSpan.FromSeconds(window)) };
        attached.Attached.Task.Spec = new TaskSpec { Foreground = foreground };
        Take(cursor, attached);
        Assert.Equal(pause, cursor.LongestPause.TotalMilliseconds);
    }

    private static AttachCursor Cursor(AttachOptions options) => new(options.ToRequest("shell-a"));

    private static AttachResponse Attached(Placement placement) =>
        new() { Attached = new Attached { Task = new BackgroundTask { Placement = placement } } };

    private static AttachResponse Output(ulong offset, string text)
    {
        var chunk = new OutputChunk { Offset = offset, Data = ByteString.CopyFromUtf8(text) };
        return new() { Output = new AttachedOutput { Chunks = { chunk }, NextOffset = offset + (ulong)text.Length } };
    }

    private static AttachResponse Ended(BackgroundTask? task) =>
        new() { Ended = new AttachEnded { Task = task, Reason = AttachEndReason.Detached } };

    private static void Take(AttachCursor cursor, params AttachResponse[] messages)
    {
        foreach (var message in messages) cursor.Take(message);
    }

    private static List<string> Items(AttachCursor cursor)
    {
        var items = new List<string>();
        while (cursor.Next() is { } item)
        {
            items.Add(item switch
            {
                AttachItem.Attached => "attached",
                AttachItem.Output(var chunks, _) => string.Concat(chunks.Select(chunk => chunk.Data.ToStringUtf8())),
                AttachItem.Ended(_, var reason) => reason.ToString(),
                _ => throw new InvalidOperationException(),
            });
        }
        return items;
    }
}
