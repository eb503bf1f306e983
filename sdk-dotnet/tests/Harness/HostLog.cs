using System.Collections.Concurrent;
using Microsoft.Extensions.Logging;

namespace Heeler.Client.Tests;

/// <summary>A log in memory.</summary>
internal sealed class HostLog : ILoggerFactory, ILogger
{
    private readonly ConcurrentQueue<(LogLevel Level, string Text)> _entries = new();

    internal IEnumerable<string> Texts => _entries.Select(entry => entry.Text);

    internal IEnumerable<string> Notable =>
        _entries.Where(entry => entry.Level >= LogLevel.Information).Select(entry => entry.Text);

    public ILogger CreateLogger(string categoryName) => this;

    public void AddProvider(ILoggerProvider provider) => throw new NotSupportedException();

    public void Dispose()
    {
    }

    public IDisposable? BeginScope<TState>(TState state)
        where TState : notnull => null;

    public bool IsEnabled(LogLevel logLevel) => true;

    public void Log<TState>(
        LogLevel logLevel, EventId eventId, TState state, Exception? exception, Func<TState, Exception?, string> formatter) =>
        _entries.Enqueue((logLevel, formatter(state, exception)));
}
