using Heeler.V1;

namespace Heeler.Client;

/// <content>WriteInput and ResizeTerminal.</content>
public partial class HeelerClient
{
    /// <summary>
    /// Writes to the stdin or the terminal of a task. The answer says how much was taken. With an offset, or without data, the call
    /// is safe to repeat.
    /// </summary>
    public virtual Task<WriteInputResponse> WriteInputAsync(
        WriteInputRequest request, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        var retry = request.HasOffset || request.Data.IsEmpty ? Retry.Always : Retry.IfUnprocessed;
        return Connection.CallAsync(retry, (raw, call) => raw.WriteInputAsync(request, call), cancellationToken);
    }

    /// <summary>Changes the size of a task's terminal, from 1 to 1000 columns and rows.</summary>
    public virtual Task ResizeTerminalAsync(
        string taskId, uint columns, uint rows, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        return ResizeTerminalAsync(new ResizeTerminalRequest { TaskId = taskId, Columns = columns, Rows = rows }, cancellationToken);
    }

    /// <summary>Changes the size of the terminal of the request.</summary>
    public virtual Task<ResizeTerminalResponse> ResizeTerminalAsync(
        ResizeTerminalRequest request, CancellationToken cancellationToken = default) =>
        Connection.CallAsync(Retry.Always, (raw, call) => raw.ResizeTerminalAsync(request, call), cancellationToken);
}
