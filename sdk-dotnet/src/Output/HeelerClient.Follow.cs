using System.Runtime.CompilerServices;
using Heeler.V1;

namespace Heeler.Client;

/// <content>FollowOutput.</content>
public partial class HeelerClient
{
    /// <summary>
    /// Streams the output of many tasks, also of tasks that start later, across every restart of the daemon. No byte is lost or
    /// repeated.
    /// </summary>
    /// <remarks>
    /// Each task begins with <see cref="FollowItem.Begun"/> and ends with <see cref="FollowItem.Ended"/>. Tasks take turns: none
    /// waits for the end of another one's output. The stream ends after the last task with <see cref="FollowUntil.Finished"/>,
    /// else only with an error that reconnecting cannot cure.
    /// </remarks>
    /// <param name="options">The tasks and their output. Null: every live task and every later one, from the first byte.</param>
    /// <param name="cancellationToken">Ends the stream.</param>
    public virtual async IAsyncEnumerable<FollowItem> FollowOutputAsync(
        FollowOptions? options = null, [EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        options ??= new FollowOptions();
        var cursor = new FollowCursor(options.ToRequest());
        var stream = new ResumingStream<FollowOutputResponse, FollowItem>(Connection, cursor, options.GiveUpAfter);
        await foreach (var item in stream.ItemsAsync(cancellationToken).ConfigureAwait(false)) yield return item;
    }
}
