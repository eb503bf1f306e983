using System.Buffers;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>Where the output of a run goes: to the caller's streams, to the caller's callback, or into memory.</summary>
internal sealed class RunOutput(RunOptions options)
{
    private readonly ArrayBufferWriter<byte> _stdout = new();
    private readonly ArrayBufferWriter<byte> _stderr = new();

    internal ReadOnlyMemory<byte> CollectedStdout => _stdout.WrittenMemory;

    internal ReadOnlyMemory<byte> CollectedStderr => _stderr.WrittenMemory;

    internal ValueTask WriteAsync(OutputChunk chunk, CancellationToken cancellation)
    {
        var (taker, memory) = chunk.Stream == OutputStream.Stderr ? (options.Stderr, _stderr) : (options.Stdout, _stdout);
        if (taker is not null) return taker.WriteAsync(chunk.Data.Memory, cancellation);
        if (options.OnOutput is { } call) return call(chunk, cancellation);
        memory.Write(chunk.Data.Span);
        return ValueTask.CompletedTask;
    }

    /// <summary>Nothing of what was written is to wait in a buffer once the run is over.</summary>
    internal async Task FlushAsync(CancellationToken cancellation)
    {
        if (options.Stdout is not null) await options.Stdout.FlushAsync(cancellation).ConfigureAwait(false);
        if (options.Stderr is not null) await options.Stderr.FlushAsync(cancellation).ConfigureAwait(false);
    }
}
