using Google.Protobuf.WellKnownTypes;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>When a call is repeated, and what becomes of spans.</summary>
public sealed class BackoffTests
{
    [Fact]
    public void Delays_double_up_to_the_longest()
    {
        var backoff = new Backoff(null);
        var delays = Enumerable.Range(0, 10).Select(_ => backoff.AfterFailure(TimeSpan.Zero, 0)!.Value).ToList();
        Assert.Equal([10.0, 20.0, 40.0], delays.Take(3).Select(delay => delay.TotalMilliseconds));
        Assert.Equal(Backoff.Longest, delays[9]);
    }

    [Fact]
    public void Jitter_takes_away_at_most_half() =>
        Assert.Equal(Backoff.First / 2, new Backoff(null).AfterFailure(TimeSpan.Zero, 1));

    [Fact]
    public void Patience_counts_delays_and_attempts_and_ends()
    {
        var backoff = new Backoff(TimeSpan.FromMilliseconds(30));
        Assert.Equal(Backoff.First, backoff.AfterFailure(TimeSpan.FromMilliseconds(10), 0));
        Assert.Null(backoff.AfterFailure(TimeSpan.FromMilliseconds(10), 0));
        Assert.Null(new Backoff(TimeSpan.Zero).AfterFailure(TimeSpan.Zero, 0));
    }

    [Fact]
    public void A_call_that_was_served_for_long_begins_anew()
    {
        var backoff = new Backoff(TimeSpan.FromMilliseconds(30));
        while (backoff.AfterFailure(TimeSpan.FromMilliseconds(10), 0) is not null)
        {
        }
        Assert.Equal(Backoff.First, backoff.AfterFailure(TimeSpan.FromMinutes(1), 0));
    }

    /// <summary>T3</summary>
    [Fact]
    public void Very_long_spans_become_the_longest_and_infinite_limits_none()
    {
        Assert.Equal(315_576_000_000, Time.ToProto(TimeSpan.MaxValue).Seconds);
        Assert.Equal(315_576_000_000, Time.ToProto(Timeout.InfiniteTimeSpan).Seconds);
        Assert.Null(Time.ToLimit(Timeout.InfiniteTimeSpan));
        Assert.Equal(new Duration(), Time.ToLimit(TimeSpan.Zero));
    }

    [Fact]
    public void What_is_left_of_a_limit_is_never_negative()
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
