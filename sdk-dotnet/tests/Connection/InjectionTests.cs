using Heeler.V1;
using Microsoft.Extensions.DependencyInjection;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>Registration for dependency injection.</summary>
public sealed class InjectionTests
{
    [Fact]
    public async Task AddHeeler_adds_one_client_and_the_generated_one_on_its_connection()
    {
        await using var daemon = await Daemon.StartAsync();
        var services = new ServiceCollection();
        services.AddHeeler(options => options.Address = daemon.Address).AddHeeler();
        Assert.Equal(2, services.Count);
        Assert.All(services, service => Assert.Equal(ServiceLifetime.Singleton, service.Lifetime));

        var provider = new Provider(services);
        using var heeler = provider.GetRequiredService<HeelerClient>();
        Assert.Same(heeler.Raw, provider.GetRequiredService<BackgroundTasks.BackgroundTasksClient>());
        await heeler.SpawnAsync(new SpawnOptions { Argv = ["true"] }, daemon.Soon);
    }

    /// <summary>A container for singletons only.</summary>
    private sealed class Provider(IServiceCollection services) : IServiceProvider
    {
        private readonly Dictionary<Type, object> _made = [];

        public object? GetService(Type serviceType)
        {
            if (_made.TryGetValue(serviceType, out var made)) return made;
            var service = services.SingleOrDefault(service => service.ServiceType == serviceType);
            return service is null ? null : _made[serviceType] = service.ImplementationFactory!(this);
        }
    }
}
