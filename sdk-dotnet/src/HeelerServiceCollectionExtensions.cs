using Heeler.Client;
using Microsoft.Extensions.DependencyInjection.Extensions;
using Microsoft.Extensions.Logging;

namespace Microsoft.Extensions.DependencyInjection;

/// <summary>Registration of Heeler for dependency injection.</summary>
public static class HeelerServiceCollectionExtensions
{
    /// <summary>
    /// Adds one <see cref="HeelerClient"/> for the whole application, and the generated client on the same connection. Both are
    /// singletons; the first call connects.
    /// </summary>
    /// <param name="services">The collection to add to. Existing registrations stay.</param>
    /// <param name="configure">Changes the options. Null: the defaults.</param>
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
