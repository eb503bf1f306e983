using System.Runtime.CompilerServices;
using Heeler.V1;

namespace Heeler.Client;

/// <content>Attach.</content>
public partial class HeelerClient
{
    /// <summary>
    /// Attaches to a task: first the task, then its output as it comes, last the end of the attachment. It reconnects by
    /// itself; no byte is lost or repeated.
    /// </summary>
    /// <remarks>
    /// A caller that stops before the end disconnects. If it was the last client of a foreground task, the task's
    /// <see cref="ForegroundOptions.OnDisconnect"/> applies after the reattach window. A background task depends on no client:
    /// its output is followed until its leader exits. The stream fails only if reconnecting cannot help, as with an unknown
    /// id.
    /// </remarks>
    /// <param name="taskId">The task.</param>
    /// <param name="options">The start of the output. Null: the first byte.</param>
    /// <param name="cancellationToken">Disconnects.</param>
    public virtual IAsyncEnumerable<AttachItem> AttachAsync(
        string taskId, AttachOptions? options = null, CancellationToken cancellationToken = default)
    {
        options ??= new AttachOptions();
        return ItemsAsync(options.ToRequest(taskId), options.GiveUpAfter, cancellationToken);
    }

    private async IAsyncEnumerable<AttachItem> ItemsAsync(
        AttachRequest request, TimeSpan? giveUpAfter, [EnumeratorCancellation] CancellationToken cancellation)
    {
        var stream = new ResumingStream<AttachResponse, AttachItem>(Connection, new AttachCursor(request), giveUpAfter);
        await foreach (var item in stream.ItemsAsync(cancellation).ConfigureAwait(false)) yield return item;
    }
}
