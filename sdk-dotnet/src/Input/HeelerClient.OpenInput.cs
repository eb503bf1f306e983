using Heeler.V1;

namespace Heeler.Client;

/// <content>The input of a task as a stream.</content>
public partial class HeelerClient
{
    /// <summary>
    /// Opens the stdin or the terminal of a task for writing. The task needs <see cref="SpawnOptions.Input"/> or
    /// <see cref="SpawnOptions.Terminal"/>.
    /// </summary>
    /// <remarks>
    /// A write returns when the task's pipe or terminal has taken all bytes: a task that does not read makes it wait. It also waits
    /// for a daemon that is away, by default without end, and no byte is lost or written twice. Of a write that its token or
    /// <see cref="OpenInputOptions.GiveUpAfter"/> ended, the task may have a part; the next one continues behind it. Disposing the
    /// stream closes the input, and throws if the daemon is away for longer than <see cref="HeelerClientOptions.RetryFor"/>. Prefer
    /// the asynchronous writes: the others block.
    /// </remarks>
    /// <param name="taskId">The task.</param>
    /// <param name="options">Null: the stream is refused if another writer has the input, and closes it at the end.</param>
    public virtual Stream OpenInput(string taskId, OpenInputOptions? options = null)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        return new InputWriter(this, taskId, options ?? new OpenInputOptions());
    }

    /// <summary>Makes a call of an input stream, which is safe to repeat.</summary>
    /// <param name="request">The call.</param>
    /// <param name="limit">Maximum time for which it is repeated while the daemon is away. Null: no limit.</param>
    /// <param name="cancellation">Ends the call.</param>
    internal Task<WriteInputResponse> WriteInputAsync(WriteInputRequest request, TimeSpan? limit, CancellationToken cancellation) =>
        _connection is null
            ? WriteInputAsync(request, cancellation)
            : _connection.CallAsync(Retry.Always, limit, (raw, call) => raw.WriteInputAsync(request, call), cancellation);
}
