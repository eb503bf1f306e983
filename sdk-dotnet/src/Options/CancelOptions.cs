using Heeler.V1;

namespace Heeler.Client;

/// <summary>Options of a cancel. By default, each task's own stop policy, and an answer when the tree is proven empty.</summary>
public sealed class CancelOptions
{
    /// <summary>The way to stop. Each property that is set overrides the task's own stop policy.</summary>
    public StopOptions? Stop { get; init; }

    /// <summary>Kills the whole tree at once. Excludes <see cref="Stop"/>.</summary>
    public bool Force { get; init; }

    /// <summary>The reason, up to 4 KiB; kept with the task.</summary>
    public string? Reason { get; init; }

    /// <summary>The name of the requester, up to 256 bytes; kept with the task.</summary>
    public string? Actor { get; init; }

    /// <summary>
    /// Answers when the tree is proven empty or a kill has lasted 10 s. False: answers as soon as the intent is durable.
    /// </summary>
    public bool Wait { get; init; } = true;

    /// <summary>Also stops the tasks that the task spawned, and theirs.</summary>
    public bool Cascade { get; init; }

    /// <summary>Returns the contract's request for the selected tasks.</summary>
    /// <exception cref="ArgumentException"><see cref="Force"/> and <see cref="Stop"/> are both set.</exception>
    public CancelRequest ToRequest(TaskFilter filter)
    {
        ArgumentNullException.ThrowIfNull(filter);
        if (Force && Stop is not null)
            throw new ArgumentException($"{nameof(Force)} and {nameof(Stop)} exclude each other");
        var request = new CancelRequest
        {
            Filter = filter,
            Reason = Reason ?? "",
            Actor = Actor ?? "",
            Wait = Wait,
            Cascade = Cascade,
        };
        if (Stop is not null) request.Graceful = Stop.ToPolicy();
        if (Force) request.Force = new ForcedStop();
        return request;
    }

    /// <summary>Returns the result of this task.</summary>
    internal static CancelResult ResultOf(string taskId, CancelResponse answer) =>
        answer.Results.FirstOrDefault(result => result.Task?.Id == taskId)
        ?? throw new IncompleteAnswerException("results");
}
