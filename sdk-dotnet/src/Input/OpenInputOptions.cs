namespace Heeler.Client;

/// <summary>Options of an input stream. By default, it is refused if another writer has the input.</summary>
public sealed class OpenInputOptions
{
    /// <summary>Takes the input from another writer, whose next write is refused.</summary>
    public bool TakeOver { get; init; }

    /// <summary>Leaves the input open when the stream is disposed. By default, the task then reads end-of-file.</summary>
    public bool LeaveOpen { get; init; }
}
