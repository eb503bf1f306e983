using System.Net.Sockets;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>A daemon that is killed while a client connects to it.</summary>
public sealed class DyingDaemonTests : IDisposable
{
    private readonly DirectoryInfo _directory = Directory.CreateTempSubdirectory("heeler-net-");

    public void Dispose() => _directory.Delete(recursive: true);

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task A_connection_that_dies_with_its_daemon_may_succeed_a_moment_later(bool accepted)
    {
        var path = Path.Combine(_directory.FullName, "s.sock");
        using var listener = new Socket(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified);
        listener.Bind(new UnixDomainSocketEndPoint(path));
        listener.Listen();
        var options = new HeelerClientOptions { Address = HeelerAddress.Unix(path), RetryFor = TimeSpan.Zero };
        using var heeler = HeelerClient.Connect(options);
        using var soon = new CancellationTokenSource(Daemon.Deadline);
        var calling = heeler.ListPageAsync(new ListRequest(), soon.Token);
        while (!listener.Poll(TimeSpan.Zero, SelectMode.SelectRead)) await Task.Delay(1, soon.Token);
        if (accepted) (await listener.AcceptAsync(soon.Token)).Dispose();
        listener.Dispose();
        var error = await Assert.ThrowsAnyAsync<HeelerException>(() => calling);
        Assert.True(error.IsTransient, $"{error}");
    }
}
