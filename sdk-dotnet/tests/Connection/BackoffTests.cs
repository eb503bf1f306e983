using Google.Protobuf.WellKnownTypes;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>Delays between attempts, and the conversion of time spans.</summary>
public sealed class BackoffTests
{
    [Fact]
    public void Delays_double_up_to_the_longest()
    {
        var backoff = new Backoff(null);
        var delays = Enumerable.Range(0, 10).Select(_ => backoff.AfterFailure(TimeSpan.Zero, true, 0)!.Value).ToList();
        Assert.Equal([10.0, 20.0, 40.0], delays.Take(3).Select(delay => delay.TotalMilliseconds));
        Assert.Equal(Backoff.Longest, delays[9]);
    }

    [Fact]
    public void Jitter_removes_at_most_half() =>
        Assert.Equal(Backoff.First / 2, new Backoff(null).AfterFailure(TimeSpan.Zero, true, 1));

    [Fact]
    public void The_limit_counts_delays_and_attempts()
    {
        var backoff = new Backoff(TimeSpan.FromMilliseconds(30));
        Assert.Equal(Backoff.First, backoff.AfterFailure(TimeSpan.FromMilliseconds(10), true, 0));
        Assert.Null(backoff.AfterFailure(TimeSpan.FromMilliseconds(10), true, 0));
        Assert.Null(new Backoff(TimeSpan.Zero).AfterFailure(TimeSpan.Zero, true, 0));
    }

    [Fact]
    public void A_failure_after_a_long_call_begins_a_new_series()
    {
        var backoff = new Backoff(TimeSpan.FromMilliseconds(30));
        while (backoff.AfterFailure(TimeSpan.FromMilliseconds(10), true, 0) is not null)
        {
        }
        Assert.Equal(Backoff.First, backoff.AfterFailure(TimeSpan.FromMinutes(1), true, 0));
    }

    [Fact]
    public void Attempts_to_connect_count_however_long_they_take()
    {
        var backoff = new Backoff(TimeSpan.FromSeconds(25));
        var timeout = TimeSpan.FromSeconds(10);
        Assert.Equal(Backoff.First, backoff.AfterFailure(timeout, false, 0));
        Assert.Equal(Backoff.First * 2, backoff.AfterFailure(timeout, false, 0));
        Assert.Null(backoff.AfterFailure(timeout, false, 0));
        Assert.False(CallFailure.WasConnected(new DaemonUnreachableException(HeelerAddress.Tls("example.com", 7117), new TimeoutException())));
    }

    /// <summary>T3</summary>
    [Fact]
    public void Very_long_spans_become_the_longest_and_infinite_limits_become_null()
    {
        Assert.Equal(315_576_000_000, Time.ToProto(TimeSpan.MaxValue).Seconds);
        Assert.Equal(315_576_000_000, Time.ToProto(Timeout.InfiniteTimeSpan).Seconds);
        Assert.Null(Time.ToLimit(Timeout.InfiniteTimeSpan));
        Assert.Equal(new Duration(), Time.ToLimit(TimeSpan.Zero));
    }

    [Fact]
    public void The_rest_of_a_limit_is_never_negative()
    {
        var minute = Time.ToProto(TimeSpan.FromMinutes(1));
        Assert.Equal(20, Time.Less(minute, TimeSpan.FromSeconds(40)).Seconds);
        Assert.Equal(new Duration(), Time.Less(minute, TimeSpan.FromHours(1)));
        var longest = Time.ToProto(TimeSpan.MaxValue);
        Assert.Equal(longest, Time.Less(longest, TimeSpan.FromHours(1)));
        var bad = new Duration { Seconds = -3 };
        Assert.Equal(bad, Time.Less(bad, TimeSpan.Zero));
    }
}
