using Heeler.Client;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Options;

namespace Heeler.AgentHosts;

/// <summary>Runs <see cref="SilentAgents"/> for as long as the host runs.</summary>
public sealed class AgentHost(HeelerClient heeler, ILogger<AgentHost> log) : BackgroundService
{
    /// <inheritdoc/>
    protected override Task ExecuteAsync(CancellationToken stoppingToken) =>
        new SilentAgents(heeler, log).RunAsync(stoppingToken);
}

/// <summary>Registration of the service.</summary>
public static class AgentHostServiceCollectionExtensions
{
    /// <summary>Adds the client, with options from the section <c>Heeler</c> of the configuration, and the service.</summary>
    /// <example><code>builder.Services.AddAgentHost(builder.Configuration);</code></example>
    public static IServiceCollection AddAgentHost(this IServiceCollection services, IConfiguration configuration)
    {
        #region worker
        services.Configure<HeelerClientOptions>(configuration.GetSection("Heeler"));
        services.AddHeeler(provider => provider.GetRequiredService<IOptions<HeelerClientOptions>>().Value);
        #endregion
        return services.AddHostedService<AgentHost>();
    }
}
