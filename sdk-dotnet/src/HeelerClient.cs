using System.Diagnostics;
using System.Runtime.CompilerServices;
using Grpc.Core;
using Grpc.Core.Interceptors;
using Grpc.Net.Client;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// A connection to a daemon, and a method for every call of the service. It is safe to share between threads, connects when it
/// is first used, and again by itself when the connection breaks.
/// </summary>
/// <remarks>
/// While a daemon that has been reached before is away, calls are repeated for up to
/// <see cref="HeelerClientOptions.RetryFor"/>. That is safe for all of them: reading has no effect, Cancel, Detach, UpdateQueue
/// and Wait mean the same when asked twice, a <see cref="SpawnOptions"/> carries a request id by which the daemon knows it
/// again, Remove is repeated only while it cannot have been heard, and Shutdown never.
/// </remarks>
public sealed partial class HeelerClient : IDisposable
{
    private static readonly TimeSpan _askEvery = TimeSpan.FromSeconds(30);
    private static readonly TimeSpan _answerLimit = TimeSpan.FromSeconds(20);

    private readonly GrpcChannel _channel;
    private readonly Connector _connector;
    private readonly TimeSpan _retryFor;

    private HeelerClient(HeelerClientOptions options)
    {
        Address = options.Address ?? HeelerAddress.FromEnvironmentOrDefault();
        _retryFor = options.RetryFor;
        var token = Credentials.TokenFor(Address, options);
        _connector = new Connector(Address, Credentials.Authorities(Address, options));
        // HTTP/2 wants an authority; the connector does not look at it.
        _channel = GrpcChannel.ForAddress("http://localhost", new GrpcChannelOptions
        {
            HttpHandler = new SocketsHttpHandler
            {
                ConnectCallback = (_, cancellation) => _connector.OpenAsync(cancellation),
                EnableMultipleHttp2Connections = true,
                UseProxy = false,
                // A machine that is gone says no goodbye: it is asked while calls are open.
                KeepAlivePingPolicy = HttpKeepAlivePingPolicy.WithActiveRequests,
                KeepAlivePingDelay = Address.Kind == HeelerAddressKind.Unix ? Timeout.InfiniteTimeSpan : _askEvery,
                KeepAlivePingTimeout = _answerLimit,
            },
            DisposeHttpClient = true,
            LoggerFactory = options.LoggerFactory,
            // A page is as large as its tasks; the daemon, which is the user's own, bounds it.
            MaxReceiveMessageSize = null,
        });
        Raw = new BackgroundTasks.BackgroundTasksClient(token is null ? _channel.CreateCallInvoker() : Showing(token));
    }

    /// <summary>What a failed attempt leaves open, and so whether there may be another.</summary>
    private enum Repeat
    {
        /// <summary>The call means the same when it is heard twice.</summary>
        Always,

        /// <summary>Only if it cannot have been heard.</summary>
        IfUnheard,
    }

    /// <summary>Where the daemon is.</summary>
    public HeelerAddress Address { get; }

    /// <summary>The generated client, on the same connection: no repetition, no typed errors.</summary>
    public BackgroundTasks.BackgroundTasksClient Raw { get; }

    internal bool Reached => _connector.Reached;

    /// <summary>A client of the daemon at <c>HEELER_ADDR</c>, else of the user's own. Starts none.</summary>
    /// <exception cref="HeelerAddressException">There is no usable address.</exception>
    public static HeelerClient Connect() => Connect(new HeelerClientOptions());

    /// <summary>A client of the daemon at this address.</summary>
    public static HeelerClient Connect(HeelerAddress address) => Connect(new HeelerClientOptions { Address = address });

    /// <summary>A client as these options say.</summary>
    /// <exception cref="HeelerAddressException">There is no usable address.</exception>
    /// <exception cref="HeelerCredentialsException">The token or the authority cannot be used.</exception>
    public static HeelerClient Connect(HeelerClientOptions options)
    {
        ArgumentNullException.ThrowIfNull(options);
        return new HeelerClient(options);
    }

    /// <summary>Closes the connection. Tasks run on.</summary>
    public void Dispose() => _channel.Dispose();

    /// <summary>What went wrong, by its name.</summary>
    internal Exception Explain(RpcException error, CancellationToken cancellation) =>
        Failure.From(error, Address, cancellation);

    private async Task<T> CallAsync<T>(
        Repeat repeat, Func<CallOptions, AsyncUnaryCall<T>> attempt, CancellationToken cancellation)
    {
        var backoff = new Backoff(_retryFor);
        while (true)
        {
            var begun = Stopwatch.GetTimestamp();
            Exception error;
            try
            {
                using var call = attempt(new CallOptions(cancellationToken: cancellation));
                return await call.ResponseAsync.ConfigureAwait(false);
            }
            catch (RpcException failed)
            {
                error = Explain(failed, cancellation);
            }
            if (!MayRepeat(repeat, error) || backoff.AfterFailure(Stopwatch.GetElapsedTime(begun)) is not { } pause)
                throw error;
            await Task.Delay(pause, cancellation).ConfigureAwait(false);
        }
    }

    /// <summary>A daemon that was never there is not restarting: who asks is told at once.</summary>
    private bool MayRepeat(Repeat repeat, Exception error) => error switch
    {
        DaemonNotRunningException => Reached,
        HeelerException { IsUnheard: true } => true,
        HeelerException { IsTransient: true } => repeat == Repeat.Always,
        _ => false,
    };

    /// <summary>gRPC's own credentials are not sent in the clear, not on loopback either.</summary>
    private CallInvoker Showing(string token) => _channel.Intercept(metadata =>
    {
        metadata.Add("authorization", $"Bearer {token}");
        return metadata;
    });

    private static T Present<T>(T? part, [CallerArgumentExpression(nameof(part))] string field = "")
        where T : class =>
        part ?? throw new IncompleteAnswerException(field);
}
