using Heeler.Client;
using Microsoft.Extensions.DependencyInjection.Extensions;
using Microsoft.Extensions.Logging;

namespace Microsoft.Extensions.DependencyInjection;

/// <summary>Registration of Heeler for dependency injection.</summary>
public static class HeelerServiceCollectionExtensions
{
    /// <summary>
    /// Adds one <see cref="HeelerClient"/> for the whole application, and the generated client on the same connection. Both are
    /// singletons; the first call connects. gRPC's logs go to the application's log.
    /// </summary>
    /// <param name="services">The collection to add to. Existing registrations stay.</param>
    /// <param name="configure">Changes the options. Null: the defaults.</param>
    /// <example><code>builder.Services.AddHeeler();</code></example>
    public static IServiceCollection AddHeeler(
        this IServiceCollection services, Action<HeelerClientOptions>? configure = null) =>
        services.AddHeeler(_ =>
        {
            var options = new HeelerClientOptions();
            configure?.Invoke(options);
            return options;
        });

    /// <summary>Adds the same with options that other services give, such as <c>IOptions</c>.</summary>
    /// <param name="services">The collection to add to. Existing registrations stay.</param>
    /// <param name="options">Returns the options. It is called once, when the client is first needed.</param>
    /// <example>
    /// <code>
    /// builder.Services.Configure&lt;HeelerClientOptions&gt;(builder.Configuration.GetSection("Heeler"));
    /// builder.Services.AddHeeler(provider => provider.GetRequiredService&lt;IOptions&lt;HeelerClientOptions&gt;&gt;().Value);
    /// </code>
    /// </example>
    public static IServiceCollection AddHeeler(
        this IServiceCollection services, Func<IServiceProvider, HeelerClientOptions> options)
    {
        ArgumentNullException.ThrowIfNull(services);
        ArgumentNullException.ThrowIfNull(options);
        services.TryAddSingleton(provider =>
        {
            var given = options(provider);
            given.LoggerFactory ??= provider.GetService<ILoggerFactory>();
            return HeelerClient.Connect(given);
        });
        services.TryAddSingleton(provider => provider.GetRequiredService<HeelerClient>().Raw);
        return services;
    }
}
