namespace Heeler.Client;

/// <content>Progress. Every report and every heartbeat counts as activity.</content>
public abstract partial class HeelerWork
{
    /// <summary>
    /// Reports progress. It waits only if the daemon is slow or away and 256 reports are not acknowledged; what was taken is sent
    /// again until the daemon has it. After the end of the task it does nothing.
    /// </summary>
    /// <param name="progress">The change.</param>
    /// <param name="cancellationToken">Ends the wait.</param>
    /// <exception cref="ArgumentException">The percent or a counter is out of range: nothing is reported.</exception>
    public virtual Task ReportAsync(WorkProgress progress, CancellationToken cancellationToken = default) => throw NotOverridden();

    /// <summary>Says that the work goes on.</summary>
    /// <param name="cancellationToken">Ends the wait.</param>
    public virtual Task HeartbeatAsync(CancellationToken cancellationToken = default) => throw NotOverridden();

    /// <summary>Reports the present activity in one line.</summary>
    public virtual Task IntentAsync(string intent, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(intent);
        return ReportAsync(new WorkProgress { Intent = intent }, cancellationToken);
    }

    /// <summary>Reports the part that is done, from 0 to 100.</summary>
    public virtual Task PercentAsync(int percent, CancellationToken cancellationToken = default) =>
        ReportAsync(new WorkProgress { Percent = percent }, cancellationToken);

    /// <summary>Reports text that the worker has written.</summary>
    public virtual Task TextAsync(string text, CancellationToken cancellationToken = default) =>
        ReportAsync(new WorkProgress().Text(text), cancellationToken);

    /// <summary>Reports reasoning of the worker.</summary>
    public virtual Task ThoughtAsync(string text, CancellationToken cancellationToken = default) =>
        ReportAsync(new WorkProgress().Thought(text), cancellationToken);

    /// <summary>Reports the call of a tool.</summary>
    public virtual Task ToolCallAsync(string name, string arguments, CancellationToken cancellationToken = default) =>
        ReportAsync(new WorkProgress().ToolCall(name, arguments), cancellationToken);

    /// <summary>Reports the result of a tool.</summary>
    public virtual Task ToolResultAsync(string name, string text, CancellationToken cancellationToken = default) =>
        ReportAsync(new WorkProgress().ToolResult(name, text), cancellationToken);

    /// <summary>Reports anything else.</summary>
    public virtual Task NoteAsync(string text, CancellationToken cancellationToken = default) =>
        ReportAsync(new WorkProgress().Note(text), cancellationToken);
}
