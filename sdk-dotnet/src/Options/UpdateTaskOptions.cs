using Heeler.V1;

namespace Heeler.Client;

/// <summary>The changes to a live task.</summary>
public sealed class UpdateTaskOptions
{
    /// <summary>Patterns to look for in its output. One whose name the task has replaces that pattern.</summary>
    public IList<OutputPattern> SetPatterns { get; init; } = [];

    /// <summary>The names of patterns to remove. A name that the task does not have is ignored.</summary>
    public IList<string> RemovePatterns { get; init; } = [];

    /// <summary>Returns the contract's request for one task.</summary>
    public UpdateTaskRequest ToRequest(string taskId)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        return new UpdateTaskRequest { TaskId = taskId, SetPatterns = { SetPatterns }, RemovePatterns = { RemovePatterns } };
    }
}
