using System.Runtime.CompilerServices;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// A client of one daemon, with a method for every call of the service. It is thread-safe: create one and share it. It connects
/// on first use and reconnects by itself.
/// </summary>
/// <remarks>
/// <para>
/// While a daemon that was reached before is away, calls are repeated for up to <see cref="HeelerClientOptions.RetryFor"/>. This
/// is safe: reads have no effect; Cancel, Detach, UpdateTask, UpdateQueue and Wait are idempotent; a Spawn has a request
/// id; Remove is repeated only if the daemon did not process it, and Shutdown never.
/// </para>
/// <para>
/// Every member is virtual, so that a test can replace the client; <see cref="HeelerModelFactory"/> makes its answers. A method
/// that takes options or an id is a short form of the one that takes the contract's request: a fake that overrides the latter
/// serves both.
/// </para>
/// </remarks>
public partial class HeelerClient : IDisposable
{
    private readonly Connection? _connection;

    /// <summary>Creates a client without a connection, as the base of a fake.</summary>
    protected HeelerClient()
    {
    }

    private HeelerClient(HeelerClientOptions options, HeelerAddress address) =>
        _connection = new Connection(options, address);

    /// <summary>The address of the daemon.</summary>
    public virtual HeelerAddress Address => Connection.Address;

    /// <summary>The generated client on the same connection: no repeated calls, gRPC's own exceptions.</summary>
    public virtual BackgroundTasks.BackgroundTasksClient Raw => Connection.Raw;

    private Connection Connection => _connection
        ?? throw new InvalidOperationException("this client has no connection: override the member that was called");

    /// <summary>Returns a handle on a task. It makes no call: the id may be unknown.</summary>
    public virtual HeelerTask GetTask(string taskId) => new(this, taskId);

    /// <summary>Returns a handle on a session. It makes no call: a session exists while it has tasks.</summary>
    public virtual HeelerSession Session(string sessionId) => new(this, sessionId);

    /// <summary>Closes the connection. Tasks run on.</summary>
    public virtual void Dispose()
    {
        _connection?.Dispose();
        GC.SuppressFinalize(this);
    }

    private static TaskFilter ById(string taskId)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        return new TaskFilter { TaskIds = { taskId } };
    }

    private static T Present<T>(T? part, [CallerArgumentExpression(nameof(part))] string field = "")
        where T : class =>
        part ?? throw new IncompleteAnswerException(field);
}
