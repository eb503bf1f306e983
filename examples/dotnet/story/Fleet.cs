using Heeler.Client;
using Heeler.V1;

namespace Heeler.AgentStory;

/// <summary>
/// A fleet with one task for each member. New work for a member replaces its previous task: the daemon stops that one, proves it
/// gone, and only then lets the new one begin. This also holds for work that another manager of the same fleet assigns.
/// </summary>
public sealed class Fleet(HeelerClient heeler, string name)
{
    private const string Member = "member";

    /// <summary>Gives a member new work, and returns its task when it has ended.</summary>
    /// <returns>
    /// The finished task. If other work replaced it, its end reason is <see cref="EndReason.Replaced"/>, and it has the result of
    /// its tool calls so far.
    /// </returns>
    public Task<BackgroundTask> AssignAsync(string member, Subagent work, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(work);
        var options = new HostOptions
        {
            SessionId = name,
            Name = $"{member}: {work.Name}",
            Labels = { [Member] = member },
            Exclusive = new() { Key = $"{name}/{member}", Mode = ExclusiveMode.Replace },
        };
        return heeler.HostAsync(options, work.RunAsync, cancellationToken);
    }

    /// <summary>Returns the present task of each member that has one.</summary>
    public async Task<IReadOnlyDictionary<string, BackgroundTask>> MembersAsync(CancellationToken cancellationToken = default)
    {
        var running = new ListRequest { Filter = new TaskFilter { States = { TaskState.Running } } };
        var tasks = heeler.Session(name).ListAsync(running, cancellationToken);
        return await tasks.ToDictionaryAsync(task => task.Spec.Labels[Member], cancellationToken: cancellationToken)
            .ConfigureAwait(false);
    }
}
