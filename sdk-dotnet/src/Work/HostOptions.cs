using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// A hosted task: its work runs inside this program, and it has no process. A group of options that is null is not wanted. The
/// options can be used for any number of calls.
/// </summary>
/// <example>
/// <code>
/// var review = new HostOptions { SessionId = "s1", Name = "review", Silence = new() { StaleAfter = TimeSpan.FromMinutes(1) } };
/// </code>
/// </example>
public sealed record HostOptions
{
    /// <summary>The host conversation that the task belongs to: any text up to 256 bytes.</summary>
    public string? SessionId { get; init; }

    /// <summary>A name for people. It need not be unique.</summary>
    public string? Name { get; init; }

    /// <summary>Data for the client's own filters.</summary>
    public IDictionary<string, string> Labels { get; init; } = new Dictionary<string, string>();

    /// <summary>The live task that this one is a child of.</summary>
    public string? ParentId { get; init; }

    /// <summary>
    /// Time without a sign of this program after which the task is <see cref="TaskState.Lost"/>: from 1 second to 1 hour. The
    /// client gives the signs by itself. Null: 30 seconds.
    /// </summary>
    public TimeSpan? Lease { get; init; }

    /// <summary>Maximum time from the start on. Null: no limit.</summary>
    public TimeSpan? Timeout { get; init; }

    /// <summary>Maximum time without progress or a heartbeat; then the task is stopped. Null: no limit.</summary>
    public TimeSpan? IdleTimeout { get; init; }

    /// <summary>
    /// The way to stop the task: the soft grace to finish the present tool call, then the grace to return. It has no signal. Null:
    /// 10 seconds, then 5 seconds.
    /// </summary>
    public StopOptions? Stop { get; init; }

    /// <summary>Detects a task that reports neither progress nor heartbeats. Null: the task is never stale.</summary>
    public SilenceOptions? Silence { get; init; }

    /// <summary>A key that only one live task has at a time. Null: none.</summary>
    public ExclusiveOptions? Exclusive { get; init; }

    /// <summary>The queue in which the task waits for a slot: any text up to 256 bytes.</summary>
    public string? Queue { get; init; }

    /// <summary>
    /// Makes the registration safe to repeat, up to 128 bytes: the same id and options join the task that exists, in the place of
    /// its earlier worker, also after a crash of your program. Null: each call has a new id. Empty: none.
    /// </summary>
    public string? RequestId { get; init; }

    /// <summary>
    /// The reason that is kept with the task when the caller's token stops it. It is read when the token is cancelled: a .NET token
    /// carries no cause, so set it before you cancel.
    /// </summary>
    public string? Reason { get; set; }

    /// <summary>The options of the caller of which these are a copy. Null: these are the caller's own.</summary>
    internal HostOptions? Original { get; init; }

    /// <summary>Returns the contract's message, with a new request id unless <see cref="RequestId"/> has one.</summary>
    public WorkRegister ToRequest()
    {
        var spawn = new SpawnOptions
        {
            Kind = TaskKind.Hosted,
            SessionId = SessionId,
            Name = Name,
            Labels = Labels,
            ParentId = ParentId,
            Timeout = Timeout,
            IdleTimeout = IdleTimeout,
            Stop = Stop,
            Silence = Silence,
            Exclusive = Exclusive,
            Queue = Queue,
            RequestId = RequestId,
        };
        var request = spawn.ToRequest();
        return new WorkRegister { RequestId = request.RequestId, Spec = request.Spec, Lease = Time.ToProto(Lease) };
    }
}
