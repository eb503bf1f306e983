using Heeler.V1;

namespace Heeler.Client;

/// <summary>A position in a task's output. It moves with each successful read and stays when a read fails.</summary>
internal sealed class OutputCursor
{
    /// <summary>Maximum time that one call waits for output.</summary>
    private static readonly TimeSpan _poll = TimeSpan.FromMinutes(1);

    private readonly HeelerClient _client;
    private readonly ReadOutputRequest _request;
    private readonly OutputStream? _only;
    private readonly bool _follows;
    private ulong? _end;
    private bool _ended;

    internal OutputCursor(HeelerClient client, string taskId, OutputOptions? options)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        _client = client;
        _only = options?.Only;
        _follows = options?.Follow ?? true;
        _request = new ReadOutputRequest { TaskId = taskId, Wait = _follows ? Time.ToProto(_poll) : null };
        if (options?.TailBytes is { } tail) _request.TailBytes = tail;
        else _request.Offset = options?.Offset ?? 0;
    }

    /// <summary>Returns the next chunks, perhaps none yet. Null: the end was reached.</summary>
    internal async Task<IEnumerable<OutputChunk>?> NextAsync(CancellationToken cancellation)
    {
        if (_ended) return null;
        var piece = await _client.ReadOutputAsync(_request, cancellation).ConfigureAwait(false);
        _request.Offset = piece.NextOffset;
        // Without following, the end is that of the first answer: a task that writes on does not move it.
        _end ??= piece.EndOffset;
        _ended = _follows ? piece.Complete && piece.NextOffset >= piece.EndOffset : piece.NextOffset >= _end;
        return piece.Chunks.Where(chunk => _only is null || _only == chunk.Stream || chunk.Gap is not null);
    }
}
