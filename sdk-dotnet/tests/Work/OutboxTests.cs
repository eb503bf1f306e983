using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Work;

/// <summary>The messages of a worker that wait for their acknowledgement.</summary>
public sealed class OutboxTests
{
    /// <summary>P8</summary>
    [Fact]
    public void What_is_not_acknowledged_is_sent_again_in_order()
    {
        var outbox = new Outbox();
        for (var n = 0; n < 3; n++) outbox.Push(new WorkRequest { Progress = new ProgressUpdate() });
        outbox.Push(new WorkRequest { Result = new WorkerResult() });
        Assert.Equal([1, 2, 3, 4], Sent(outbox));
        Assert.Empty(Sent(outbox));
        Assert.Equal(2, outbox.Acknowledge(2).Count);
        outbox.Rewind();
        Assert.Equal([3, 4], Sent(outbox));
        Assert.False(outbox.IsEmpty);
        Assert.Equal(WorkRequest.ItemOneofCase.Result, outbox.Acknowledge(4)[^1].ItemCase);
        Assert.True(outbox.IsEmpty);
    }

    [Fact]
    public void An_acknowledgement_of_what_was_never_sent_harms_nothing()
    {
        var outbox = new Outbox();
        Assert.Empty(outbox.Acknowledge(ulong.MaxValue));
        outbox.Push(new WorkRequest { Progress = new ProgressUpdate() });
        Assert.Equal([1], Sent(outbox));
    }

    private static List<ulong> Sent(Outbox outbox)
    {
        var numbers = new List<ulong>();
        while (outbox.Next() is { } request) numbers.Add(request.Sequence);
        return numbers;
    }
}
