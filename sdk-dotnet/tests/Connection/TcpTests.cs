using System.Diagnostics;
using System.Security.Authentication;
using Grpc.Core;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>A daemon over TCP: its token, and TLS with a private certificate authority.</summary>
public sealed class TcpTests : IDisposable
{
    private static readonly string[] _loopback = ["--listen", "tcp:127.0.0.1:0"];

    private readonly DirectoryInfo _root = Directory.CreateTempSubdirectory("heeler-net-");

    public void Dispose() => _root.Delete(recursive: true);

    /// <summary>N2</summary>
    [Fact]
    public async Task A_client_with_the_token_is_served()
    {
        await using var daemon = await Daemon.StartAsync(_loopback);
        var address = await daemon.TcpAddressAsync();
        HeelerClientOptions[] all =
        [
            new() { Address = address, Token = (await File.ReadAllTextAsync(daemon.TokenFile)).Trim() },
            new() { Address = address, TokenFile = daemon.TokenFile },
        ];
        foreach (var options in all)
        {
            using var heeler = HeelerClient.Connect(options);
            var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "exit 3" }, daemon.Soon);
            Assert.Equal(3, (await task.WaitAsync(daemon.Soon)).ExitCode);
            await foreach (var _ in heeler.WatchEventsAsync(new WatchOptions { AfterRevision = 0 }, daemon.Soon)) break;
        }
    }

    /// <summary>N2</summary>
    [Fact]
    public async Task A_wrong_or_missing_token_is_refused_by_reason()
    {
        await using var daemon = await Daemon.StartAsync(_loopback);
        var address = await daemon.TcpAddressAsync();
        foreach (var token in (string?[])[new string('x', 64), null])
        {
            using var heeler = HeelerClient.Connect(new HeelerClientOptions { Address = address, Token = token });
            var error = await Assert.ThrowsAsync<HeelerRefusedException>(
                () => heeler.SpawnAsync(new SpawnOptions { Argv = ["true"] }, daemon.Soon));
            Assert.Equal((StatusCode.Unauthenticated, ErrorReason.TokenRefused), (error.StatusCode, error.Reason));
        }
        var all = new ListRequest { IncludeFinished = true, IncludeFinishedForeground = true };
        Assert.Empty(await daemon.Client().ListAsync(all).ToListAsync(daemon.Soon));
    }

    /// <summary>N2</summary>
    [Theory]
    [InlineData("HEELER_TOKEN_FILE", "state/token")]
    [InlineData("HEELER_STATE_DIR", "state")]
    public async Task The_environment_names_the_token_file(string variable, string name)
    {
        await using var daemon = await Daemon.StartAsync(_loopback);
        // Only clients over TCP read it, and only these tests have such clients.
        System.Environment.SetEnvironmentVariable(variable, daemon.Path(name));
        try
        {
            using var heeler = HeelerClient.Connect(await daemon.TcpAddressAsync());
            await heeler.ListPageAsync(new ListRequest(), daemon.Soon);
        }
        finally
        {
            System.Environment.SetEnvironmentVariable(variable, null);
        }
    }

    [Theory]
    [InlineData("")]
    [InlineData("a b")]
    [InlineData("a\nb")]
    [InlineData("ä")]
    public void A_token_that_cannot_be_sent_is_refused_and_not_printed(string token)
    {
        var options = new HeelerClientOptions { Address = HeelerAddress.Tcp("127.0.0.1", 1), Token = token };
        var error = Assert.Throws<HeelerCredentialsException>(() => HeelerClient.Connect(options));
        Assert.Equal("the token is empty or has characters that are not allowed", error.Message);
    }

    [Fact]
    public void Unusable_files_are_named()
    {
        var empty = Path.Combine(_root.FullName, "empty.pem");
        File.WriteAllText(empty, "nothing");
        var address = HeelerAddress.Tls("localhost", 1);
        (HeelerClientOptions Options, string Named)[] cases =
        [
            (new() { Address = address, TokenFile = "/nowhere/token" }, "/nowhere/token"),
            (new() { Address = address, Token = "x", TlsCaFile = "/nowhere/ca" }, "/nowhere/ca"),
            (new() { Address = address, Token = "x", TlsCaFile = empty }, empty),
        ];
        foreach (var (options, named) in cases)
        {
            var error = Assert.Throws<HeelerCredentialsException>(() => HeelerClient.Connect(options));
            Assert.Contains(named, error.Message, StringComparison.Ordinal);
        }
    }

    [Fact]
    public async Task A_port_without_a_listener_is_a_daemon_that_does_not_run()
    {
        foreach (var host in (string[])["127.0.0.1", "localhost"])
        {
            var options = new HeelerClientOptions { Address = HeelerAddress.Tcp(host, 1), Token = "x" };
            using var heeler = HeelerClient.Connect(options);
            await Assert.ThrowsAsync<DaemonNotRunningException>(() => heeler.WaitAsync("shell-aaaaaaaaaa"));
        }
    }

    /// <summary>N2</summary>
    [Fact]
    public async Task A_private_authority_is_trusted_if_the_options_name_it()
    {
        var file = (string name) => Path.Combine(_root.FullName, name);
        var make = Process.Start(Repository.Path("tests/make-certificates.sh"), [_root.FullName]);
        await make.WaitForExitAsync();
        Assert.True(make.ExitCode == 0, "openssl did not make the certificates");
        await using var daemon = await Daemon.StartAsync(
            [.. _loopback, "--tls-cert", file("cert.pem"), "--tls-key", file("key.pem")]);
        var address = await daemon.TcpAddressAsync();
        Assert.Equal(HeelerAddressKind.Tls, address.Kind);
        foreach (var named in (HeelerAddress[])[address, HeelerAddress.Tls("localhost", address.Port)])
        {
            var options = new HeelerClientOptions
            {
                Address = named,
                TokenFile = daemon.TokenFile,
                TlsCaFile = file("ca.pem"),
            };
            using var heeler = HeelerClient.Connect(options);
            await heeler.ListPageAsync(new ListRequest(), daemon.Soon);
        }
        // No authority that the system trusts has signed it.
        var untrusting = new HeelerClientOptions { Address = address, TokenFile = daemon.TokenFile };
        using var refused = HeelerClient.Connect(untrusting);
        var error = await Assert.ThrowsAsync<DaemonUnreachableException>(
            () => refused.ListPageAsync(new ListRequest(), daemon.Soon));
        Assert.IsType<AuthenticationException>(error.InnerException, exactMatch: false);
        Assert.False(error.IsTransient);
    }
}
