using Heeler.Client;

namespace Heeler.AgentStory;

/// <summary>A tool call of a subagent.</summary>
/// <param name="Tool">The name of the tool.</param>
/// <param name="Arguments">Its arguments, as text.</param>
/// <param name="RunAsync">Runs the tool and returns its result.</param>
public sealed record ToolCall(string Tool, string Arguments, Func<CancellationToken, Task<string>> RunAsync);

/// <summary>
/// A subagent that runs inside its host: it makes one tool call after the other. In a real host, a model decides on the next one.
/// </summary>
public sealed class Subagent(string name, params IReadOnlyList<ToolCall> calls)
{
    /// <summary>The name.</summary>
    public string Name { get; } = name;

    /// <summary>
    /// Works as the body of a hosted task. It reports each call, and begins no new one once it is asked to stop: what it has found
    /// by then is its result.
    /// </summary>
    public async Task<WorkResult> RunAsync(HeelerWork work, CancellationToken cancelled)
    {
        ArgumentNullException.ThrowIfNull(work);
        var found = new List<string>();
        foreach (var call in calls)
        {
            if (work.Stopping.IsCancellationRequested) return WorkResult.Cancelled(string.Join(", ", found));
            var progress = new WorkProgress
            {
                Intent = $"{call.Tool} {call.Arguments}",
                Percent = 100 * found.Count / calls.Count,
                Counts = { ["tool_calls"] = found.Count + 1 },
            };
            await work.ReportAsync(progress.ToolCall(call.Tool, call.Arguments), cancelled).ConfigureAwait(false);
            var result = await call.RunAsync(cancelled).ConfigureAwait(false);
            await work.ToolResultAsync(call.Tool, result, cancelled).ConfigureAwait(false);
            found.Add(result);
        }
        return string.Join(", ", found);
    }
}
