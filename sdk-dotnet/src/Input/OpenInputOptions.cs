namespace Heeler.Client;

/// <summary>Options of an input stream. By default, it is refused if another writer has the input.</summary>
public sealed class OpenInputOptions
{
    /// <summary>Takes the input from another writer, whose next write is refused.</summary>
    public bool TakeOver { get; init; }

    /// <summary>Leaves the input open when the stream is disposed. By default, the task then reads end-of-file.</summary>
    public bool LeaveOpen { get; init; }

    /// <summary>
    /// A write fails once the daemon has been away for this long. Null: it waits without end, and only the end of the input, when
    /// the stream is disposed, fails after <see cref="HeelerClientOptions.RetryFor"/>.
    /// </summary>
    public TimeSpan? GiveUpAfter { get; init; }
}
