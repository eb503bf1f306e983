using System.ComponentModel;
using Heeler.V1;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;
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

    [Fact]
    public async Task AddHeeler_takes_its_options_and_its_log_from_other_services()
    {
        await using var daemon = await Daemon.StartAsync();
        using var log = new HostLog();
        var services = new ServiceCollection();
        services.AddSingleton(_ => new HeelerClientOptions { Address = daemon.Address });
        services.AddSingleton<ILoggerFactory>(_ => log);
        services.AddHeeler(provider => provider.GetRequiredService<HeelerClientOptions>());

        using var heeler = new Provider(services).GetRequiredService<HeelerClient>();
        Assert.Equal(daemon.Address, heeler.Address);
        await heeler.ListQueuesAsync(daemon.Soon);
        Assert.NotEmpty(log.Texts);
    }

    [Fact]
    public void An_address_can_be_bound_from_configuration()
    {
        var converter = TypeDescriptor.GetConverter(typeof(HeelerAddress));
        Assert.True(converter.CanConvertFrom(typeof(string)));
        Assert.Equal(HeelerAddress.Unix("/run/x.sock"), converter.ConvertFromInvariantString("unix:/run/x.sock"));
        Assert.Equal("unix:/run/x.sock", converter.ConvertToInvariantString(HeelerAddress.Unix("/run/x.sock")));
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
