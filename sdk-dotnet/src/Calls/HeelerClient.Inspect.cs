using Heeler.V1;

namespace Heeler.Client;

/// <content>Inspect.</content>
public partial class HeelerClient
{
    /// <summary>Returns a task with its processes, its resource use and the end of its output.</summary>
    public virtual Task<InspectResponse> InspectAsync(string taskId, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        return InspectAsync(new InspectRequest { TaskId = taskId }, cancellationToken);
    }

    /// <summary>Returns the task of the request, with as much output as the request asks for.</summary>
    public virtual Task<InspectResponse> InspectAsync(InspectRequest request, CancellationToken cancellationToken = default) =>
        Connection.CallAsync(Retry.Always, (raw, call) => raw.InspectAsync(request, call), cancellationToken);
}
