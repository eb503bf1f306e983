using Heeler.V1;

namespace Heeler.Client;

/// <summary>The output to read. By default, all of it.</summary>
public sealed class OutputOptions
{
    /// <summary>The first byte. Offsets count the bytes of both streams together and never change their meaning.</summary>
    public ulong Offset { get; init; }

    /// <summary>Starts this many bytes before the present end, instead of at <see cref="Offset"/>.</summary>
    public ulong? TailBytes { get; init; }

    /// <summary>Reads this stream only. Null: both, in the order of arrival.</summary>
    public OutputStream? Only { get; init; }

    /// <summary>Follows the output to the end of the task. False: ends with the output that exists now.</summary>
    public bool Follow { get; init; } = true;
}
