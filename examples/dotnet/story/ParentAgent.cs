using Heeler.Client;
using Heeler.V1;

namespace Heeler.AgentStory;

/// <summary>
/// A parent agent that looks over the shoulder of a subagent, wherever that runs: inside a host, or as a process of its own.
/// </summary>
/// <param name="heeler">The client.</param>
/// <param name="judge">Returns the reason to stop the subagent with these latest blocks. Null: it goes on.</param>
public sealed class ParentAgent(HeelerClient heeler, Func<IReadOnlyList<Block>, string?> judge)
{
    private static readonly StopOptions _afterItsToolCall = new() { SoftGrace = TimeSpan.FromMinutes(5) };

    /// <summary>
    /// Inspects the subagent after each report, and stops it after its present tool call if it is off the track. Returns the
    /// finished task, with its result.
    /// </summary>
    public async Task<BackgroundTask> SuperviseAsync(string taskId, CancellationToken cancellationToken = default)
    {
        var options = new WatchOptions
        {
            Filter = new TaskFilter { TaskIds = { taskId } },
            Types = [TaskEventType.Progress, TaskEventType.Ended],
            InitialState = true,
        };
        await foreach (var item in heeler.WatchEventsAsync(options, cancellationToken).ConfigureAwait(false))
        {
            // Also after the bookmark: a task that has ended before has no event.
            var seen = await heeler.InspectAsync(taskId, cancellationToken).ConfigureAwait(false);
            if (seen.Task.EndTime is not null) return seen.Task;
            if (judge(seen.Blocks) is not { } reason) continue;
            var softly = new CancelOptions { Stop = _afterItsToolCall, Reason = reason, Actor = "the parent" };
            return (await heeler.CancelBackgroundTaskAsync(taskId, softly, cancellationToken).ConfigureAwait(false)).Task;
        }
        throw new InvalidOperationException("a watch ends only with its token");
    }
}
