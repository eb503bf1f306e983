using Google.Protobuf.WellKnownTypes;

namespace Heeler.Client;

/// <summary>Between .NET's spans and protobuf's. Nothing here fails: a span that is too long becomes the longest.</summary>
internal static class Time
{
    /// <summary>The longest span that protobuf has: about 10,000 years.</summary>
    private static readonly Duration _longest = new() { Seconds = 315_576_000_000 };

    /// <summary>A span for a request; <see cref="Timeout.InfiniteTimeSpan"/> becomes the longest.</summary>
    internal static Duration ToProto(TimeSpan span) =>
        span == Timeout.InfiniteTimeSpan || span.TotalSeconds >= _longest.Seconds
            ? _longest.Clone()
            : Duration.FromTimeSpan(span);

    /// <summary>A limit for a request; none, or <see cref="Timeout.InfiniteTimeSpan"/>: no limit.</summary>
    internal static Duration? ToLimit(TimeSpan? span) =>
        span is { } limit && limit != Timeout.InfiniteTimeSpan ? ToProto(limit) : null;

    /// <summary>What is left of a limit after this long, and never less than nothing.</summary>
    internal static Duration Less(Duration limit, TimeSpan elapsed)
    {
        // A limit that .NET could not represent is not going to be over soon.
        if (limit.Seconds >= _longest.Seconds) return limit;
        // A bad limit is for the daemon to refuse.
        if (limit.Seconds < 0 || limit.Nanos < 0) return limit;
        var left = limit.ToTimeSpan() - elapsed;
        return Duration.FromTimeSpan(left > TimeSpan.Zero ? left : TimeSpan.Zero);
    }
}
