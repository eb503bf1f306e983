using System.Runtime.Versioning;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>ConnectOrStartAsync.</summary>
[SupportedOSPlatform("linux")]
[Collection(nameof(EnvironmentTests))]
public sealed class ConnectOrStartTests
{
    /// <summary>U5</summary>
    [Fact]
    public async Task The_users_daemon_is_started_once_and_outlives_its_client()
    {
        await using var own = new OwnDaemon();
        HeelerTask task;
        using (var first = await HeelerClient.ConnectOrStartAsync(null, own.Soon))
        {
            Assert.Equal(HeelerAddress.Unix(own.Path("run/heeler/heeler.sock")), first.Address);
            task = await first.SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, own.Soon);
        }
        // The program is not needed once the daemon runs.
        OwnDaemon.Set("HEELER_BINARY", "/no/such/heeler");
        using var second = await HeelerClient.ConnectOrStartAsync(null, own.Soon);
        Assert.Equal(task.Id, (await second.ListAsync(null, own.Soon).SingleAsync(own.Soon)).Id);
    }

    /// <summary>U5</summary>
    [Fact]
    public async Task Clients_that_start_the_daemon_together_share_one()
    {
        await using var own = new OwnDaemon();
        var clients = await Task.WhenAll(Enumerable.Range(0, 4).Select(_ => HeelerClient.ConnectOrStartAsync(null, own.Soon)));
        var task = await clients[0].SpawnAsync(new SpawnOptions { Argv = ["true"] }, own.Soon);
        foreach (var client in clients)
        {
            await client.WaitAsync(task.Id, own.Soon);
            client.Dispose();
        }
    }

    /// <summary>U5</summary>
    [Theory]
    [InlineData(Place.Option)]
    [InlineData(Place.Variable)]
    [InlineData(Place.Path)]
    public async Task A_program_that_is_not_there_is_named_with_the_way_to_install_it(Place place)
    {
        await using var own = new OwnDaemon();
        var missing = place == Place.Path ? "heeler" : own.Path("no-such-heeler");
        OwnDaemon.Set("HEELER_BINARY", place == Place.Variable ? missing : place == Place.Path ? "" : "/other/heeler");
        if (place == Place.Path) OwnDaemon.Set("PATH", own.Path(""));
        var options = new HeelerClientOptions { Program = place == Place.Option ? missing : null };
        var error = await Assert.ThrowsAsync<NotInstalledException>(
            () => HeelerClient.ConnectOrStartAsync(options, own.Soon));
        Assert.Equal(missing, error.Program);
        Assert.Contains($"`{missing}`", error.Message, StringComparison.Ordinal);
        Assert.Contains("cargo install --path cli", error.Message, StringComparison.Ordinal);
        Assert.Contains("HEELER_BINARY", error.Message, StringComparison.Ordinal);
    }

    /// <summary>U5</summary>
    [Fact]
    public async Task The_program_is_found_on_the_path()
    {
        await using var own = new OwnDaemon();
        File.CreateSymbolicLink(own.Path("heeler"), Daemon.Binary());
        OwnDaemon.Set("HEELER_BINARY", "");
        OwnDaemon.Set("PATH", own.Path("") + ":/usr/bin:/bin");
        using var heeler = await HeelerClient.ConnectOrStartAsync(null, own.Soon);
        await heeler.ListQueuesAsync(own.Soon);
    }

    /// <summary>U5</summary>
    [Fact]
    public async Task A_daemon_that_does_not_start_says_why()
    {
        await using var own = new OwnDaemon();
        await File.WriteAllTextAsync(own.Path("state"), "not a directory", own.Soon);
        var error = await Assert.ThrowsAsync<DaemonStartException>(() => HeelerClient.ConnectOrStartAsync(null, own.Soon));
        Assert.Contains(own.Path("state"), error.Message, StringComparison.Ordinal);
    }

    /// <summary>U5</summary>
    [Fact]
    public async Task With_an_address_no_daemon_is_started()
    {
        await using var own = new OwnDaemon();
        var address = HeelerAddress.Unix(own.Path("s.sock"));
        var options = new HeelerClientOptions { Address = address };
        await Assert.ThrowsAsync<DaemonNotRunningException>(() => HeelerClient.ConnectOrStartAsync(options, own.Soon));
        OwnDaemon.Set(HeelerAddress.EnvironmentVariable, address.ToString());
        await Assert.ThrowsAsync<DaemonNotRunningException>(() => HeelerClient.ConnectOrStartAsync(null, own.Soon));
        Assert.False(Directory.Exists(own.Path("state")));

        await using var daemon = await Daemon.StartAsync();
        OwnDaemon.Set(HeelerAddress.EnvironmentVariable, daemon.Address.ToString());
        using var heeler = await HeelerClient.ConnectOrStartAsync(null, own.Soon);
        Assert.Equal(daemon.Address, heeler.Address);
    }

    /// <summary>U5</summary>
    [Fact]
    public async Task The_token_ends_a_start_that_hangs()
    {
        await using var own = new OwnDaemon();
        var program = own.Path("slow");
        await File.WriteAllTextAsync(program, $"#!/bin/sh\necho $$ > {own.Path("pid")}\nexec sleep 600\n", own.Soon);
        File.SetUnixFileMode(program, UnixFileMode.UserRead | UnixFileMode.UserExecute);
        using var stop = CancellationTokenSource.CreateLinkedTokenSource(own.Soon);
        var starting = HeelerClient.ConnectOrStartAsync(new HeelerClientOptions { Program = program }, stop.Token);
        string pid;
        while (!File.Exists(own.Path("pid")) || (pid = await File.ReadAllTextAsync(own.Path("pid"), own.Soon)).Length == 0)
            await Task.Delay(10, own.Soon);
        await stop.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => starting);
        while (Directory.Exists($"/proc/{pid.Trim()}")) await Task.Delay(10, own.Soon);
    }

    /// <summary>The place that names the program.</summary>
    public enum Place
    {
        Option,
        Variable,
        Path,
    }
}
