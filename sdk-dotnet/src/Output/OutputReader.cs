namespace Heeler.Client;

/// <summary>
/// A task's output as a <see cref="Stream"/>: forward only, for one reader at a time. A cancelled read loses nothing: the next
/// one continues at the same byte.
/// </summary>
internal sealed class OutputReader(ReadCursor cursor) : Stream
{
    private readonly CancellationTokenSource _closed = new();
    private readonly LinkedList<ReadOnlyMemory<byte>> _ready = new();
    private bool _disposed;

    public override bool CanRead => !_disposed;

    public override bool CanSeek => false;

    public override bool CanWrite => false;

    public override long Length => throw new NotSupportedException();

    public override long Position
    {
        get => throw new NotSupportedException();
        set => throw new NotSupportedException();
    }

    public override async ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
    {
        ObjectDisposedException.ThrowIf(_disposed, this);
        cancellationToken.ThrowIfCancellationRequested();
        if (buffer.IsEmpty) return 0;
        if (_ready.Count == 0 && !await FillAsync(cancellationToken).ConfigureAwait(false)) return 0;
        return Drain(buffer.Span);
    }

    public override Task<int> ReadAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken) =>
        ReadAsync(buffer.AsMemory(offset, count), cancellationToken).AsTask();

    public override int Read(byte[] buffer, int offset, int count) =>
        ReadAsync(buffer.AsMemory(offset, count)).AsTask().GetAwaiter().GetResult();

    public override void Flush()
    {
    }

    public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

    public override void SetLength(long value) => throw new NotSupportedException();

    public override void Write(byte[] buffer, int offset, int count) => throw new NotSupportedException();

    /// <summary>Cancels a read that is in progress.</summary>
    protected override void Dispose(bool disposing)
    {
        if (disposing && !_disposed)
        {
            _disposed = true;
            _closed.Cancel();
            _closed.Dispose();
        }
        base.Dispose(disposing);
    }

    /// <summary>Waits for bytes. False: the output is complete.</summary>
    private async Task<bool> FillAsync(CancellationToken cancellation)
    {
        using var either = CancellationTokenSource.CreateLinkedTokenSource(cancellation, _closed.Token);
        while (await cursor.NextAsync(either.Token).ConfigureAwait(false) is { } chunks)
        {
            foreach (var chunk in chunks)
            {
                var bytes = OutputBytes.Of(chunk);
                if (!bytes.IsEmpty) _ready.AddLast(bytes);
            }
            if (_ready.Count > 0) return true;
        }
        return false;
    }

    private int Drain(Span<byte> buffer)
    {
        var filled = 0;
        while (filled < buffer.Length && _ready.First is { } piece)
        {
            var taken = Math.Min(piece.Value.Length, buffer.Length - filled);
            piece.Value.Span[..taken].CopyTo(buffer[filled..]);
            filled += taken;
            piece.Value = piece.Value[taken..];
            if (piece.Value.IsEmpty) _ready.RemoveFirst();
        }
        return filled;
    }
}
