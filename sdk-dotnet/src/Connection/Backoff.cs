namespace Heeler.Client;

/// <summary>
/// Delays between attempts: they grow up to a maximum and have jitter. It reads no clock: the caller reports the duration of each
/// attempt.
/// </summary>
/// <param name="limit">Maximum duration of a series of failures. Null: no limit.</param>
internal sealed class Backoff(TimeSpan? limit)
{
    internal static readonly TimeSpan First = TimeSpan.FromMilliseconds(10);
    internal static readonly TimeSpan Longest = TimeSpan.FromSeconds(1);

    private TimeSpan _spent = TimeSpan.Zero;
    private TimeSpan _next = First;

    /// <summary>Maximum delay, for a caller that must be back sooner.</summary>
    internal TimeSpan LongestDelay { get; set; } = Longest;

    /// <summary>Ends the series of failures.</summary>
    internal void Reset()
    {
        _spent = TimeSpan.Zero;
        _next = First;
    }

    /// <summary>Returns the delay after an attempt that lasted this long and failed with this error. Null: give up.</summary>
    internal TimeSpan? AfterFailure(TimeSpan lasted, Exception error) =>
        AfterFailure(lasted, CallFailure.WasConnected(error), Random.Shared.NextDouble());

    /// <param name="lasted">Duration of the attempt.</param>
    /// <param name="connected">
    /// True if the attempt had a connection. If it also lasted longer than any delay, it was served, so its failure begins a new
    /// series. An attempt that could not connect is time without a daemon, however long.
    /// </param>
    /// <param name="jitter">From 0 to 1; removes up to half of the delay.</param>
    internal TimeSpan? AfterFailure(TimeSpan lasted, bool connected, double jitter)
    {
        if (connected && lasted > Longest) Reset();
        else _spent += lasted;
        if (limit is { } most && _spent >= most) return null;
        var delay = (_next < LongestDelay ? _next : LongestDelay) * (1 - jitter / 2);
        _next = _next * 2 < Longest ? _next * 2 : Longest;
        _spent += delay;
        return delay;
    }
}
