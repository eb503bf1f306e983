using Grpc.Core;
using Microsoft.Extensions.Logging;

namespace Heeler.Client;

/// <summary>
/// The host's log, for gRPC. A call that this side cancels is not a failure: a watch has no other end. gRPC reports it as one, at
/// the level Information; here it is at the level Debug.
/// </summary>
internal sealed class CallLog(ILoggerFactory host) : ILoggerFactory
{
    public ILogger CreateLogger(string categoryName) => new Logger(host.CreateLogger(categoryName));

    public void AddProvider(ILoggerProvider provider) => host.AddProvider(provider);

    /// <summary>Does nothing: the host owns its log.</summary>
    public void Dispose()
    {
    }

    private sealed class Logger(ILogger host) : ILogger
    {
        /// <summary>gRPC's entry for a call that ends with an error status.</summary>
        private const string FailedCall = "GrpcStatusError";

        public IDisposable? BeginScope<TState>(TState state)
            where TState : notnull => host.BeginScope(state);

        public bool IsEnabled(LogLevel logLevel) => host.IsEnabled(logLevel);

        public void Log<TState>(
            LogLevel logLevel, EventId eventId, TState state, Exception? exception, Func<TState, Exception?, string> formatter)
        {
            var level = eventId.Name == FailedCall && IsCancelled(state) ? LogLevel.Debug : logLevel;
            if (host.IsEnabled(level)) host.Log(level, eventId, state, exception, formatter);
        }

        private static bool IsCancelled<TState>(TState state) =>
            state is IEnumerable<KeyValuePair<string, object?>> values
            && values.Any(value => value.Value is StatusCode.Cancelled);
    }
}
