using System.Runtime.CompilerServices;
using Heeler.V1;

namespace Heeler.Client;

/// <content>The calls that read output.</content>
public sealed partial class HeelerClient
{
    /// <summary>One piece of a task's output. Reading has no effect: any number of readers see every byte.</summary>
    public Task<ReadOutputResponse> ReadOutputAsync(
        ReadOutputRequest request, CancellationToken cancellationToken = default) =>
        CallAsync(Repeat.Always, call => Raw.ReadOutputAsync(request, call), cancellationToken);

    /// <summary>
    /// A task's output in the pieces in which it arrived, until no byte will ever come. A daemon that restarts meanwhile is
    /// waited for. To take up reading later, keep the offset behind the last piece.
    /// </summary>
    public async IAsyncEnumerable<OutputChunk> ReadChunksAsync(
        string taskId, OutputOptions? options = null, [EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        var cursor = new OutputCursor(this, taskId, options);
        while (await cursor.NextAsync(cancellationToken).ConfigureAwait(false) is { } chunks)
        {
            foreach (var chunk in chunks) yield return chunk;
        }
    }

    /// <summary>A task's output as a stream of bytes, followed to its end.</summary>
    /// <remarks>A read waits for the task to write, or to end. Prefer the asynchronous ones: the others block.</remarks>
    public Stream OpenOutput(string taskId, OutputOptions? options = null) =>
        new OutputReader(new OutputCursor(this, taskId, options));

    /// <summary>A task's output line by line, followed to its end. Lines of the two streams are never mixed.</summary>
    public async IAsyncEnumerable<OutputLine> ReadLinesAsync(
        string taskId, OutputOptions? options = null, [EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        var splitter = new LineSplitter();
        await foreach (var chunk in ReadChunksAsync(taskId, options, cancellationToken).ConfigureAwait(false))
        {
            foreach (var line in splitter.Take(chunk)) yield return line;
        }
        foreach (var line in splitter.Rest()) yield return line;
    }
}
