using Heeler.V1;

namespace Heeler.Client;

/// <content>Spawn.</content>
public partial class HeelerClient
{
    /// <summary>
    /// Starts a task and returns when its leader runs or, if the task has to wait in a queue, at once.
    /// <see cref="HeelerTask.Notices"/> of the handle has the differences between the request and the task.
    /// </summary>
    /// <exception cref="HeelerRefusedException">The daemon refused: nothing was started.</exception>
    public virtual async Task<HeelerTask> SpawnAsync(SpawnOptions options, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(options);
        var answer = await SpawnAsync(options.ToRequest(), cancellationToken).ConfigureAwait(false);
        return new HeelerTask(this, Present(answer.Task).Id, answer.Notices);
    }

    /// <summary>Starts the task of the request and returns its first state.</summary>
    public virtual Task<SpawnResponse> SpawnAsync(SpawnRequest request, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        var retry = request.RequestId.Length > 0 ? Retry.Always : Retry.IfUnprocessed;
        return Connection.CallAsync(retry, (raw, call) => raw.SpawnAsync(request, call), cancellationToken);
    }
}
