using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// The failure of a call. A call that its own <see cref="CancellationToken"/> ended throws an
/// <see cref="OperationCanceledException"/> instead.
/// </summary>
public abstract class HeelerException : Exception
{
    private protected HeelerException(string message, Exception? inner = null)
        : base(message, inner)
    {
    }

    /// <summary>True if the daemon did not process the call, and the same call may succeed a moment later.</summary>
    public virtual bool IsUnprocessed => false;

    /// <summary>True if the same call may succeed a moment later: the daemon is away or restarting.</summary>
    public virtual bool IsTransient => IsUnprocessed;

    /// <summary>Returns true for a refusal with this reason. For exception filters.</summary>
    /// <example><code>catch (HeelerException error) when (error.Is(ErrorReason.TaskNotFound))</code></example>
    public bool Is(ErrorReason reason) => this is HeelerRefusedException refused && refused.Reason == reason;
}

/// <summary>The address of the daemon is invalid, or there is none.</summary>
public sealed class HeelerAddressException : HeelerException
{
    /// <summary>Creates the exception.</summary>
    public HeelerAddressException(string message, Exception? inner = null)
        : base(message, inner)
    {
    }
}

/// <summary>The token or the certificate authority for a daemon over TCP cannot be used.</summary>
public sealed class HeelerCredentialsException : HeelerException
{
    /// <summary>Creates the exception.</summary>
    public HeelerCredentialsException(string message, Exception? inner = null)
        : base(message, inner)
    {
    }
}

/// <summary>The daemon's answer lacks a part that the contract promises.</summary>
public sealed class IncompleteAnswerException : HeelerException
{
    /// <summary>Creates the exception for a field of the answer.</summary>
    public IncompleteAnswerException(string field)
        : base($"the daemon's answer has no {field}")
    {
    }
}

/// <summary>A run was cancelled, and processes of its task have outlived a kill of 10 s. The kill goes on.</summary>
public sealed class TaskSurvivedException : HeelerException
{
    /// <summary>Creates the exception of a task with survivors.</summary>
    public TaskSurvivedException(BackgroundTask task)
        : base(Words(task)) => Task = task;

    /// <summary>The task; <see cref="BackgroundTask.Survivors"/> names the processes.</summary>
    public BackgroundTask Task { get; }

    private static string Words(BackgroundTask task)
    {
        ArgumentNullException.ThrowIfNull(task);
        var processes = string.Join(", ", task.Survivors.Select(process => $"{process.Pid} ({process.Command})"));
        return $"{task.Id} was killed, but these processes still exist: {processes}; the kill goes on";
    }
}
