using Heeler.V1;

namespace Heeler.Client;

/// <content>UpdateTask.</content>
public partial class HeelerClient
{
    /// <summary>Changes the patterns that are looked for in the output of a live task, and returns the task.</summary>
    public virtual async Task<BackgroundTask> UpdateTaskAsync(
        string taskId, UpdateTaskOptions options, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(options);
        return Present((await UpdateTaskAsync(options.ToRequest(taskId), cancellationToken).ConfigureAwait(false)).Task, "task");
    }

    /// <summary>Changes the task of the request.</summary>
    public virtual Task<UpdateTaskResponse> UpdateTaskAsync(
        UpdateTaskRequest request, CancellationToken cancellationToken = default) =>
        Connection.CallAsync(Retry.Always, (raw, call) => raw.UpdateTaskAsync(request, call), cancellationToken);
}
