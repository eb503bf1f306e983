namespace Heeler.Client;

/// <summary>
/// When to try again: delays that grow, are bounded and differ between clients. It has no clock: it is told how long
/// an attempt took.
/// </summary>
/// <param name="patience">How long a series of failures may last; none: for ever.</param>
internal sealed class Backoff(TimeSpan? patience)
{
    internal static readonly TimeSpan First = TimeSpan.FromMilliseconds(10);
    internal static readonly TimeSpan Longest = TimeSpan.FromSeconds(1);

    private TimeSpan _spent = TimeSpan.Zero;
    private TimeSpan _next = First;

    /// <summary>How long a delay may be: for those who have to be back sooner.</summary>
    internal TimeSpan LongestDelay { get; set; } = Longest;

    /// <summary>Ends the series: what fails from now on is a new trouble.</summary>
    internal void Reset()
    {
        _spent = TimeSpan.Zero;
        _next = First;
    }

    /// <summary>How long to pause after an attempt that lasted this long; none: give up.</summary>
    internal TimeSpan? AfterFailure(TimeSpan lasted) => AfterFailure(lasted, Random.Shared.NextDouble());

    /// <param name="lasted">
    /// How long the attempt took. One that took longer than any delay had been heard, so its failure begins a new series.
    /// </param>
    /// <param name="jitter">Between 0 and 1; takes away up to half of the delay.</param>
    internal TimeSpan? AfterFailure(TimeSpan lasted, double jitter)
    {
        if (lasted > Longest) Reset();
        else _spent += lasted;
        if (patience is { } limit && _spent >= limit) return null;
        var delay = (_next < LongestDelay ? _next : LongestDelay) * (1 - jitter / 2);
        _next = _next * 2 < Longest ? _next * 2 : Longest;
        _spent += delay;
        return delay;
    }
}
