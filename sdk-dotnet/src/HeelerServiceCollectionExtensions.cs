using Heeler.Client;
using Microsoft.Extensions.DependencyInjection.Extensions;
using Microsoft.Extensions.Logging;

namespace Microsoft.Extensions.DependencyInjection;

/// <summary>Heeler for dependency injection.</summary>
public static class HeelerServiceCollectionExtensions
{
    /// <summary>
    /// Adds one <see cref="HeelerClient"/> for the whole application, and the generated client on the same connection. Nothing
    /// is connected before the first call.
    /// </summary>
    /// <param name="services">Where to add it. What is there already stays.</param>
    /// <param name="configure">Where the daemon is, and so on. None: the defaults.</param>
    /// <example><code>builder.Services.AddHeeler();</code></example>
    public static IServiceCollection AddHeeler(
        this IServiceCollection services, Action<HeelerClientOptions>? configure = null)
    {
        ArgumentNullException.ThrowIfNull(services);
        services.TryAddSingleton(provider =>
        {
            var options = new HeelerClientOptions { LoggerFactory = provider.GetService<ILoggerFactory>() };
            configure?.Invoke(options);
            return HeelerClient.Connect(options);
        });
        services.TryAddSingleton(provider => provider.GetRequiredService<HeelerClient>().Raw);
        return services;
    }
}
