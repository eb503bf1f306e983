using Google.Protobuf.WellKnownTypes;

namespace Heeler.Client;

/// <summary>Converts .NET's times to protobuf's. It never fails: a span that is too long becomes the longest.</summary>
internal static class Time
{
    /// <summary>The longest span of protobuf: about 10,000 years.</summary>
    private static readonly Duration _longest = new() { Seconds = 315_576_000_000 };

    /// <summary>Converts a span; <see cref="Timeout.InfiniteTimeSpan"/> becomes the longest. Null stays null.</summary>
    internal static Duration? ToProto(TimeSpan? span) => span is { } some ? ToProto(some) : null;

    /// <summary>Converts a span; <see cref="Timeout.InfiniteTimeSpan"/> becomes the longest.</summary>
    internal static Duration ToProto(TimeSpan span) =>
        span == Timeout.InfiniteTimeSpan || span.TotalSeconds >= _longest.Seconds
            ? _longest.Clone()
            : Duration.FromTimeSpan(span);

    /// <summary>Converts a moment.</summary>
    internal static Timestamp ToProto(DateTimeOffset moment) => Timestamp.FromDateTimeOffset(moment);

    /// <summary>Converts a limit; null and <see cref="Timeout.InfiniteTimeSpan"/> become null: no limit.</summary>
    internal static Duration? ToLimit(TimeSpan? span) => span == Timeout.InfiniteTimeSpan ? null : ToProto(span);

    /// <summary>Returns the rest of a limit after this time, at least zero.</summary>
    internal static Duration Less(Duration limit, TimeSpan elapsed)
    {
        // .NET cannot represent such a limit, and it does not expire soon.
        if (limit.Seconds >= _longest.Seconds) return limit;
        // The daemon refuses a negative limit.
        if (limit.Seconds < 0 || limit.Nanos < 0) return limit;
        var left = limit.ToTimeSpan() - elapsed;
        return Duration.FromTimeSpan(left > TimeSpan.Zero ? left : TimeSpan.Zero);
    }
}
