using Heeler.V1;

namespace Heeler.Client;

/// <summary>A position in a task's output. It moves with each successful read and stays when a read fails.</summary>
internal sealed class ReadCursor
{
    /// <summary>Maximum time that one call waits for output.</summary>
    private static readonly TimeSpan _poll = TimeSpan.FromMinutes(1);

    private readonly HeelerClient _client;
    private readonly ReadOutputRequest _request;
    private readonly bool _follows;
    private ulong? _end;
    private bool _ended;

    internal ReadCursor(HeelerClient client, string taskId, OutputOptions? options)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        _client = client;
        options ??= new OutputOptions();
        _follows = options.Follow;
        _request = new ReadOutputRequest
        {
            TaskId = taskId,
            Wait = _follows ? Time.ToProto(_poll) : null,
            View = options.View,
            Filter = options.Filter?.Clone(),
        };
        if (options.Only is { } only) (_request.Filter ??= new OutputFilter()).Stream = only;
        SetStart(options);
    }

    /// <summary>Refuses more than one start.</summary>
    internal static void CheckStarts(params ReadOnlySpan<object?> starts)
    {
        var given = 0;
        foreach (var start in starts) given += start is null ? 0 : 1;
        if (given > 1) throw new ArgumentException("give either TailBytes, TailLines or Since");
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
        return piece.Chunks;
    }

    private void SetStart(OutputOptions options)
    {
        CheckStarts(options.TailBytes, options.TailLines, options.Since);
        if (options.TailBytes is { } bytes) _request.TailBytes = bytes;
        else if (options.TailLines is { } lines) _request.TailLines = lines;
        else if (options.Since is { } since) _request.Since = Time.ToProto(since);
        else _request.Offset = options.Offset;
    }
}
