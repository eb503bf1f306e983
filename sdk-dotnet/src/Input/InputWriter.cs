using Google.Protobuf;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// A task's input as a <see cref="Stream"/>, for one writer at a time. Each write names its offset, so a call that is repeated
/// after a crash of the daemon writes no byte twice.
/// </summary>
internal sealed class InputWriter(HeelerClient client, string taskId, OpenInputOptions options) : Stream
{
    /// <summary>The most bytes in one call.</summary>
    private const int Piece = 256 << 10;

    /// <summary>Maximum time that one call waits for room.</summary>
    private static readonly TimeSpan _poll = TimeSpan.FromMinutes(1);

    private readonly CancellationTokenSource _closed = new();
    private readonly HashSet<string> _earlierIds = [""];
    private string _writerId = "";

    /// <summary>The offset of the next byte. Null: not known, because nothing was written or a write was interrupted.</summary>
    private ulong? _offset;
    private bool _disposed;

    public override bool CanRead => false;

    public override bool CanSeek => false;

    public override bool CanWrite => !_disposed;

    public override long Length => throw new NotSupportedException();

    public override long Position
    {
        get => throw new NotSupportedException();
        set => throw new NotSupportedException();
    }

    /// <summary>Returns when the task's pipe or terminal has taken all bytes.</summary>
    public override async ValueTask WriteAsync(ReadOnlyMemory<byte> buffer, CancellationToken cancellationToken = default)
    {
        ObjectDisposedException.ThrowIf(_disposed, this);
        using var either = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken, _closed.Token);
        while (!buffer.IsEmpty)
        {
            var offset = _offset ?? await ClaimAsync(either.Token).ConfigureAwait(false);
            var request = new WriteInputRequest
            {
                TaskId = taskId,
                WriterId = _writerId,
                Offset = offset,
                Data = UnsafeByteOperations.UnsafeWrap(buffer[..Math.Min(buffer.Length, Piece)]),
                Wait = Time.ToProto(_poll),
            };
            _offset = null;
            try
            {
                var answer = await CallAsync(request, either.Token).ConfigureAwait(false);
                _offset = answer.Offset;
                buffer = buffer[(int)answer.TakenBytes..];
            }
            catch (HeelerRefusedException error) when (IsHeldByInterruptedWrite(error))
            {
                // It took the input while this stream claimed it: claim it again.
            }
        }
    }

    public override Task WriteAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken) =>
        WriteAsync(buffer.AsMemory(offset, count), cancellationToken).AsTask();

    public override void Write(byte[] buffer, int offset, int count) =>
        WriteAsync(buffer.AsMemory(offset, count)).AsTask().GetAwaiter().GetResult();

    /// <summary>Does nothing: the task has what was written.</summary>
    public override void Flush()
    {
    }

    public override Task FlushAsync(CancellationToken cancellationToken) => Task.CompletedTask;

    public override int Read(byte[] buffer, int offset, int count) => throw new NotSupportedException();

    public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

    public override void SetLength(long value) => throw new NotSupportedException();

    public override async ValueTask DisposeAsync()
    {
        if (_disposed) return;
        _disposed = true;
        await _closed.CancelAsync().ConfigureAwait(false);
        _closed.Dispose();
        if (!options.LeaveOpen) await EndAsync(CallBrieflyAsync, CancellationToken.None).ConfigureAwait(false);
        await base.DisposeAsync().ConfigureAwait(false);
    }

    protected override void Dispose(bool disposing)
    {
        if (disposing && !_disposed) DisposeAsync().AsTask().GetAwaiter().GetResult();
        base.Dispose(disposing);
    }

    /// <summary>Closes the input, and waits for a daemon that is away as a write does. Nothing is left to dispose.</summary>
    internal async Task CloseAsync(CancellationToken cancellation)
    {
        _disposed = true;
        _closed.Dispose();
        await EndAsync(CallAsync, cancellation).ConfigureAwait(false);
    }

    /// <summary>Returns true for a refusal after which there is nothing to write or to close: the input is gone, or another's.</summary>
    internal static bool IsOver(HeelerException error) => error is HeelerRefusedException
    {
        Reason: ErrorReason.InputClosed or ErrorReason.InputHeld or ErrorReason.InputTakenOver or ErrorReason.InputMissing
            or ErrorReason.TaskFinished or ErrorReason.TaskNotFound,
    };

    /// <summary>
    /// Takes the input, unless another writer has it, and returns its end. Under a new id: a write that was interrupted may still
    /// wait in the daemon, and is refused from then on.
    /// </summary>
    private async Task<ulong> ClaimAsync(CancellationToken cancellation)
    {
        _earlierIds.Add(_writerId);
        _writerId = Guid.CreateVersion7().ToString("N");
        var found = await CallAsync(new WriteInputRequest { TaskId = taskId }, cancellation).ConfigureAwait(false);
        // Without the claim, the write that follows is refused.
        if (!_earlierIds.Contains(found.WriterId) && !options.TakeOver) return found.Offset;
        var claim = new WriteInputRequest { TaskId = taskId, WriterId = _writerId, TakeOver = true };
        return (await CallAsync(claim, cancellation).ConfigureAwait(false)).Offset;
    }

    private bool IsHeldByInterruptedWrite(HeelerRefusedException error) =>
        (error.Is(ErrorReason.InputHeld) || error.Is(ErrorReason.InputTakenOver))
        && error.Metadata.TryGetValue("writer_id", out var holder) && holder.Length > 0 && _earlierIds.Contains(holder);

    /// <summary>Makes a call, and repeats it while the daemon is away. Each is safe to repeat.</summary>
    private Task<WriteInputResponse> CallAsync(WriteInputRequest request, CancellationToken cancellation) =>
        client.WriteInputAsync(request, options.GiveUpAfter, cancellation);

    /// <summary>As <see cref="CallAsync"/>, but with a limit in any case: disposing a stream must not last for ever.</summary>
    private Task<WriteInputResponse> CallBrieflyAsync(WriteInputRequest request, CancellationToken cancellation) =>
        options.GiveUpAfter is null ? client.WriteInputAsync(request, cancellation) : CallAsync(request, cancellation);

    private async Task EndAsync(
        Func<WriteInputRequest, CancellationToken, Task<WriteInputResponse>> call, CancellationToken cancellation)
    {
        var close = new WriteInputRequest { TaskId = taskId, WriterId = _writerId, Close = true, TakeOver = options.TakeOver };
        try
        {
            await call(close, cancellation).ConfigureAwait(false);
        }
        catch (HeelerException error) when (IsOver(error))
        {
            // The task does not read any more, or another writer has the input: there is nothing to close.
        }
    }
}
