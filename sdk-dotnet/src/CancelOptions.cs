using Heeler.V1;

namespace Heeler.Client;

/// <summary>How to stop tasks. Unless told otherwise, the answer comes when every process is proven gone.</summary>
public sealed class CancelOptions
{
    /// <summary>Graceful, unless told otherwise: the stop signal, then the grace, then a kill of the whole tree.</summary>
    public CancelMode Mode { get; init; }

    /// <summary>Instead of the task's own grace. Only with graceful.</summary>
    public TimeSpan? Grace { get; init; }

    /// <summary>Instead of the task's own stop signal, e.g. <c>SIGINT</c>. Only with graceful.</summary>
    public string? Signal { get; init; }

    /// <summary>Why; kept with the task.</summary>
    public string? Reason { get; init; }

    /// <summary>Who asks; kept with the task.</summary>
    public string? Actor { get; init; }

    /// <summary>Whether to wait for the proof, or to return as soon as the intent is durable.</summary>
    public bool Wait { get; init; } = true;

    /// <summary>Whether to stop first the tasks that it spawned, and theirs.</summary>
    public bool Cascade { get; init; }

    /// <summary>The contract's message for one task.</summary>
    public CancelRequest ForTask(string taskId)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        var request = ToRequest();
        request.TaskId = taskId;
        return request;
    }

    /// <summary>The contract's message for a session's live tasks.</summary>
    public CancelRequest ForSession(string sessionId)
    {
        ArgumentNullException.ThrowIfNull(sessionId);
        var request = ToRequest();
        request.SessionId = sessionId;
        return request;
    }

    /// <summary>The contract's message for every live task that matches.</summary>
    public CancelRequest ForMatching(TaskFilter filter)
    {
        ArgumentNullException.ThrowIfNull(filter);
        var request = ToRequest();
        request.Filter = filter;
        return request;
    }

    /// <summary>The result of this very task: with a cascade there are others beside it.</summary>
    internal static CancelResult ResultOf(string taskId, CancelResponse answer) =>
        answer.Results.FirstOrDefault(result => result.Task?.Id == taskId)
        ?? throw new IncompleteAnswerException("results");

    private CancelRequest ToRequest()
    {
        var request = new CancelRequest
        {
            Mode = Mode,
            Signal = Signal ?? "",
            Reason = Reason ?? "",
            Actor = Actor ?? "",
            Wait = Wait,
            Cascade = Cascade,
        };
        if (Grace is { } grace) request.Grace = Time.ToProto(grace);
        return request;
    }
}
