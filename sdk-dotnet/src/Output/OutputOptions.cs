using Heeler.V1;

namespace Heeler.Client;

/// <summary>The output to read. By default, all of it.</summary>
public sealed class OutputOptions
{
    /// <summary>The first byte. Offsets count the bytes of both streams together and never change their meaning.</summary>
    public ulong Offset { get; init; }

    /// <summary>Starts this many bytes before the present end, instead of at <see cref="Offset"/>.</summary>
    public ulong? TailBytes { get; init; }

    /// <summary>
    /// Starts this many lines before the present end, instead of at <see cref="Offset"/>. With a filter: the last lines that it
    /// selects.
    /// </summary>
    public ulong? TailLines { get; init; }

    /// <summary>
    /// Starts with the first byte that was read from the task at this time or later, instead of at <see cref="Offset"/>.
    /// </summary>
    public DateTimeOffset? Since { get; init; }

    /// <summary>
    /// The part of the output to read, such as the lines that match. Null: all of it. With a pattern, each chunk is one line
    /// with its end.
    /// </summary>
    public OutputFilter? Filter { get; init; }

    /// <summary>The form of the chunks: bytes by default. With the others, a chunk has a text.</summary>
    public OutputView View { get; init; }

    /// <summary>Reads this stream only. Null: both, in the order of arrival.</summary>
    public OutputStream? Only { get; init; }

    /// <summary>Follows the output to the end of the task. False: ends with the output that exists now.</summary>
    public bool Follow { get; init; } = true;
}
