namespace Heeler.Client;

/// <content>The input of a task as a stream.</content>
public partial class HeelerClient
{
    /// <summary>
    /// Opens the stdin or the terminal of a task for writing. The task needs <see cref="SpawnOptions.Input"/> or
    /// <see cref="SpawnOptions.Terminal"/>.
    /// </summary>
    /// <remarks>
    /// A write returns when the task's pipe or terminal has taken all bytes: a task that does not read makes it wait. No byte is
    /// lost or written twice when the daemon restarts. Of a write that its token ended, the task may have a part; the next one
    /// continues behind it. Disposing the stream closes the input. Prefer the asynchronous writes: the others block.
    /// </remarks>
    /// <param name="taskId">The task.</param>
    /// <param name="options">Null: the stream is refused if another writer has the input, and closes it at the end.</param>
    public virtual Stream OpenInput(string taskId, OpenInputOptions? options = null)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        return new InputWriter(this, taskId, options ?? new OpenInputOptions());
    }
}
