using System.Runtime.CompilerServices;
using Heeler.V1;

namespace Heeler.Client;

/// <content>ReadOutput. Reading changes nothing: any number of readers see every byte.</content>
public partial class HeelerClient
{
    /// <summary>Returns one piece of a task's output.</summary>
    public virtual Task<ReadOutputResponse> ReadOutputAsync(
        ReadOutputRequest request, CancellationToken cancellationToken = default) =>
        Connection.CallAsync(Retry.Always, (raw, call) => raw.ReadOutputAsync(request, call), cancellationToken);

    /// <summary>
    /// Streams a task's output in the chunks in which it arrived, up to the end of the task or, without
    /// <see cref="OutputOptions.Follow"/>, to the present end. It waits for a daemon that restarts. To resume later, store the
    /// offset after the last chunk.
    /// </summary>
    public virtual async IAsyncEnumerable<OutputChunk> ReadChunksAsync(
        string taskId, OutputOptions? options = null, [EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        var cursor = new ReadCursor(this, taskId, options);
        while (await cursor.NextAsync(cancellationToken).ConfigureAwait(false) is { } chunks)
        {
            foreach (var chunk in chunks) yield return chunk;
        }
    }

    /// <summary>Opens a task's output as a stream of bytes, up to the end of the task.</summary>
    /// <remarks>A read waits until the task writes or ends. Prefer the asynchronous reads: the others block.</remarks>
    public virtual Stream OpenOutput(string taskId, OutputOptions? options = null) =>
        new OutputReader(new ReadCursor(this, taskId, options));

    /// <summary>Streams a task's output line by line, up to the end of the task. A line belongs to one output stream.</summary>
    public virtual async IAsyncEnumerable<OutputLine> ReadLinesAsync(
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
