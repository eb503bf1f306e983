using System.Buffers;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>Writes the output of a run to the caller's streams, to the caller's callback, or into memory.</summary>
internal sealed class RunOutput(RunOptions options)
{
    private readonly ArrayBufferWriter<byte> _stdout = new();
    private readonly ArrayBufferWriter<byte> _stderr = new();

    internal ValueTask WriteAsync(OutputChunk chunk, CancellationToken cancellation)
    {
        var (stream, memory) = chunk.Stream == OutputStream.Stderr ? (options.Stderr, _stderr) : (options.Stdout, _stdout);
        if (stream is not null) return stream.WriteAsync(chunk.Data.Memory, cancellation);
        if (options.OnOutput is { } call) return call(chunk, cancellation);
        memory.Write(chunk.Data.Span);
        return ValueTask.CompletedTask;
    }

    /// <summary>Flushes the caller's streams, so that no output stays in a buffer after the run.</summary>
    internal async Task FlushAsync(CancellationToken cancellation)
    {
        if (options.Stdout is not null) await options.Stdout.FlushAsync(cancellation).ConfigureAwait(false);
        if (options.Stderr is not null) await options.Stderr.FlushAsync(cancellation).ConfigureAwait(false);
    }

    internal RunResult ToResult(HeelerTask handle, BackgroundTask task, AttachEndReason reason) => new()
    {
        Handle = handle,
        Task = task,
        Reason = reason,
        StdoutBytes = _stdout.WrittenMemory,
        StderrBytes = _stderr.WrittenMemory,
    };
}
