using Google.Protobuf;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>What an attachment gives, and asks for, when its connection breaks.</summary>
public sealed class AttachCursorTests
{
    /// <summary>F6</summary>
    [Fact]
    public void A_break_goes_on_behind_the_last_byte_with_the_hold_it_had()
    {
        var cursor = Cursor(new AttachOptions { TailBytes = 100 });
        Assert.Equal((100u, false), (cursor.Request().TailBytes, cursor.Request().ForegroundOnly));
        Take(cursor, Attached(Placement.Foreground), Output(7, "abc"));
        cursor.Broke();
        Assert.Equal((10u, true), (cursor.Request().Offset, cursor.Request().ForegroundOnly));
        Take(cursor, Attached(Placement.Background), Output(10, "d"));
        Assert.Equal(["attached", "abc", "d"], Given(cursor));
        Assert.False(cursor.IsOver);
    }

    [Fact]
    public void A_task_in_the_background_is_followed_after_a_break_too()
    {
        var cursor = Cursor(new AttachOptions());
        Take(cursor, Attached(Placement.Background));
        cursor.Broke();
        Assert.False(cursor.Request().ForegroundOnly);
    }

    [Fact]
    public void The_release_is_the_end()
    {
        var cursor = Cursor(new AttachOptions());
        Take(cursor, Attached(Placement.Foreground), Released(new BackgroundTask()));
        Assert.True(cursor.IsOver);
        Assert.Equal(["attached", "Detached"], Given(cursor));
    }

    [Fact]
    public void An_answer_without_its_task_is_told() =>
        Assert.Throws<IncompleteAnswerException>(() => Cursor(new AttachOptions()).Take(Released(null)));

    /// <summary>F6</summary>
    [Theory]
    [InlineData(0, 10)]
    [InlineData(2, 500)]
    [InlineData(3600, 1000)]
    public void A_holder_tries_several_times_within_its_window(int window, int pause)
    {
        var cursor = Cursor(new AttachOptions());
        var attached = Attached(Placement.Foreground);
        attached.Attached.Task.HolderWindow = Time.ToProto(TimeSpan.FromSeconds(window));
        Take(cursor, attached);
        Assert.Equal(pause, cursor.LongestPause.TotalMilliseconds);
    }

    private static AttachCursor Cursor(AttachOptions options) => new(options.ForTask("shell-a"));

    private static AttachResponse Attached(Placement placement) =>
        new() { Attached = new Attached { Task = new BackgroundTask { Placement = placement } } };

    private static AttachResponse Output(ulong offset, string text)
    {
        var chunk = new OutputChunk { Offset = offset, Data = ByteString.CopyFromUtf8(text) };
        return new() { Output = new AttachedOutput { Chunks = { chunk }, NextOffset = offset + (ulong)text.Length } };
    }

    private static AttachResponse Released(BackgroundTask? task) =>
        new() { Released = new Released { Task = task, Reason = ReleaseReason.Detached } };

    private static void Take(AttachCursor cursor, params AttachResponse[] messages)
    {
        foreach (var message in messages) cursor.Take(message);
    }

    private static List<string> Given(AttachCursor cursor)
    {
        var given = new List<string>();
        while (cursor.Give() is { } item)
        {
            given.Add(item switch
            {
                AttachItem.Attached => "attached",
                AttachItem.Output(var chunks, _) => string.Concat(chunks.Select(chunk => chunk.Data.ToStringUtf8())),
                AttachItem.Released(_, var reason) => reason.ToString(),
                _ => throw new InvalidOperationException(),
            });
        }
        return given;
    }
}
