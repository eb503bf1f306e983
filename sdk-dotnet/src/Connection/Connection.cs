using System.Diagnostics;
using Grpc.Core;
using Grpc.Core.Interceptors;
using Grpc.Net.Client;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>The repetition of a unary call whose attempt failed because the daemon is away.</summary>
internal enum Retry
{
    /// <summary>The call is idempotent.</summary>
    Always,

    /// <summary>Only if the daemon cannot have started to process the attempt.</summary>
    IfUnprocessed,

    /// <summary>A repeated call would reach the next daemon.</summary>
    Never,
}

/// <summary>The gRPC channel to one daemon, with the token on every call, repeated attempts and typed exceptions.</summary>
internal sealed class Connection : IDisposable
{
    private static readonly TimeSpan _keepAliveDelay = TimeSpan.FromSeconds(30);
    private static readonly TimeSpan _keepAliveTimeout = TimeSpan.FromSeconds(20);

    private readonly GrpcChannel _channel;
    private readonly Connector _connector;

    internal Connection(HeelerClientOptions options, HeelerAddress address)
    {
        Address = address;
        RetryFor = options.RetryFor;
        var token = Credentials.TokenFor(Address, options);
        _connector = new Connector(Address, Credentials.Authorities(Address, options));
        // HTTP/2 requires an authority; the connector ignores it.
        _channel = GrpcChannel.ForAddress("http://localhost", new GrpcChannelOptions
        {
            HttpHandler = new SocketsHttpHandler
            {
                ConnectCallback = (_, cancellation) => _connector.OpenAsync(cancellation),
                EnableMultipleHttp2Connections = true,
                UseProxy = false,
                // A remote machine that crashed closes nothing: ping it while calls are open.
                KeepAlivePingPolicy = HttpKeepAlivePingPolicy.WithActiveRequests,
                KeepAlivePingDelay = Address.Kind == HeelerAddressKind.Unix ? Timeout.InfiniteTimeSpan : _keepAliveDelay,
                KeepAlivePingTimeout = _keepAliveTimeout,
            },
            DisposeHttpClient = true,
            LoggerFactory = options.LoggerFactory is { } log ? new CallLog(log) : null,
            // The daemon, which is the user's own, bounds the size of a page.
            MaxReceiveMessageSize = null,
        });
        Raw = new BackgroundTasks.BackgroundTasksClient(token is null ? _channel.CreateCallInvoker() : WithToken(token));
    }

    internal HeelerAddress Address { get; }

    internal BackgroundTasks.BackgroundTasksClient Raw { get; }

    /// <summary>Maximum time for which a call is repeated while the daemon is away.</summary>
    internal TimeSpan RetryFor { get; }

    /// <summary>True once a connection succeeded: a daemon that is away is then restarting.</summary>
    internal bool Reached => _connector.Reached;

    public void Dispose() => _channel.Dispose();

    internal Task<T> CallAsync<T>(
        Retry retry,
        Func<BackgroundTasks.BackgroundTasksClient, CallOptions, AsyncUnaryCall<T>> attempt,
        CancellationToken cancellation) =>
        CallAsync(retry, RetryFor, attempt, cancellation);

    /// <param name="retry">The attempts that are repeated.</param>
    /// <param name="limit">Maximum time for which they are. Null: no limit.</param>
    /// <param name="attempt">Makes one attempt.</param>
    /// <param name="cancellation">Ends the call.</param>
    internal Task<T> CallAsync<T>(
        Retry retry,
        TimeSpan? limit,
        Func<BackgroundTasks.BackgroundTasksClient, CallOptions, AsyncUnaryCall<T>> attempt,
        CancellationToken cancellation)
    {
        return RepeatAsync(retry, limit, CallOnceAsync, cancellation);

        async Task<T> CallOnceAsync()
        {
            try
            {
                using var call = attempt(Raw, new CallOptions(cancellationToken: cancellation));
                return await call.ResponseAsync.ConfigureAwait(false);
            }
            catch (RpcException failed)
            {
                throw CallFailure.From(failed, Address, cancellation);
            }
        }
    }

    /// <summary>Repeats an attempt that fails while the daemon is away.</summary>
    internal async Task<T> RepeatAsync<T>(
        Retry retry, TimeSpan? limit, Func<Task<T>> attempt, CancellationToken cancellation)
    {
        var backoff = new Backoff(limit);
        while (true)
        {
            var begun = Stopwatch.GetTimestamp();
            TimeSpan pause;
            try
            {
                return await attempt().ConfigureAwait(false);
            }
            catch (HeelerException error) when (MayRepeat(retry, error))
            {
                if (backoff.AfterFailure(Stopwatch.GetElapsedTime(begun), error) is not { } next) throw;
                pause = next;
            }
            await Task.Delay(pause, cancellation).ConfigureAwait(false);
        }
    }

    /// <summary>A daemon that was never reached is not restarting: the caller gets the error at once.</summary>
    private bool MayRepeat(Retry retry, HeelerException error) => (retry, error) switch
    {
        (Retry.Never, _) => false,
        (_, DaemonNotRunningException or DaemonUnreachableException) => Reached && error.IsUnprocessed,
        (_, { IsUnprocessed: true }) => true,
        (_, { IsTransient: true }) => retry == Retry.Always,
        _ => false,
    };

    /// <summary>gRPC's own call credentials are refused on a connection without TLS, even on loopback.</summary>
    private CallInvoker WithToken(string token) => _channel.Intercept(metadata =>
    {
        metadata.Add("authorization", $"Bearer {token}");
        return metadata;
    });
}
