using Heeler.V1;

namespace Heeler.Client;

/// <summary>A place in a task's output that moves on with each piece read, and stays where it is when a read fails.</summary>
internal sealed class OutputCursor
{
    /// <summary>How long one call waits for output; then it is asked again.</summary>
    private static readonly TimeSpan _poll = TimeSpan.FromMinutes(1);

    private readonly HeelerClient _client;
    private readonly ReadOutputRequest _request;
    private readonly OutputStream? _only;
    private bool _over;

    internal OutputCursor(HeelerClient client, string taskId, OutputOptions? options)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        _client = client;
        _only = options?.Only;
        _request = new ReadOutputRequest { TaskId = taskId, Wait = Time.ToProto(_poll) };
        if (options?.TailBytes is { } tail) _request.TailBytes = tail;
        else _request.Offset = options?.Offset ?? 0;
    }

    /// <summary>What was written next; perhaps nothing yet. None: no byte will ever come.</summary>
    internal async Task<IEnumerable<OutputChunk>?> NextAsync(CancellationToken cancellation)
    {
        if (_over) return null;
        var piece = await _client.ReadOutputAsync(_request, cancellation).ConfigureAwait(false);
        _request.Offset = piece.NextOffset;
        _over = piece.Complete && piece.NextOffset >= piece.EndOffset;
        return piece.Chunks.Where(chunk => _only is null || _only == chunk.Stream);
    }
}
