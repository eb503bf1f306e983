using Heeler.V1;

namespace Heeler.Client;

/// <summary>Which output to read. Nothing set: all of it.</summary>
public sealed class OutputOptions
{
    /// <summary>Where to begin: an offset counts bytes of both streams together, and means the same byte for ever.</summary>
    public ulong Offset { get; init; }

    /// <summary>Begin this many bytes before the present end, instead of at <see cref="Offset"/>.</summary>
    public ulong? TailBytes { get; init; }

    /// <summary>Only what was written to this stream. None: both, in the order of arrival.</summary>
    public OutputStream? Only { get; init; }
}

/// <summary>A line that a task has written.</summary>
/// <param name="Stream">Where to.</param>
/// <param name="Text">The line without its end. Bytes that are no UTF-8 are replaced by U+FFFD.</param>
public sealed record OutputLine(OutputStream Stream, string Text)
{
    /// <summary>The text.</summary>
    public override string ToString() => Text;
}
