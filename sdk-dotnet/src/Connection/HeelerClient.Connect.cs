using Heeler.V1;

namespace Heeler.Client;

/// <content>Creating a client.</content>
public partial class HeelerClient
{
    /// <summary>Creates a client of the daemon at <c>HEELER_ADDR</c>, else of the user's own. It starts no daemon.</summary>
    /// <exception cref="HeelerAddressException">There is no usable address.</exception>
    public static HeelerClient Connect() => Connect(new HeelerClientOptions());

    /// <summary>Creates a client of the daemon at this address.</summary>
    public static HeelerClient Connect(HeelerAddress address) => Connect(new HeelerClientOptions { Address = address });

    /// <summary>Creates a client with these options. It starts no daemon.</summary>
    /// <exception cref="HeelerAddressException">There is no usable address.</exception>
    /// <exception cref="HeelerCredentialsException">The token or the certificate authority cannot be used.</exception>
    public static HeelerClient Connect(HeelerClientOptions options)
    {
        ArgumentNullException.ThrowIfNull(options);
        return new HeelerClient(options, options.Address ?? HeelerAddress.FromEnvironmentOrDefault());
    }

    /// <summary>
    /// Connects to the user's own daemon and starts it if none runs, as every command does. With an address, in the options or in
    /// <c>HEELER_ADDR</c>, it only connects. It returns when the daemon has answered.
    /// </summary>
    /// <remarks>
    /// It executes <c>heeler start</c>, with the program of <see cref="HeelerClientOptions.Program"/>, else
    /// <c>HEELER_BINARY</c>, else <c>heeler</c> on <c>PATH</c>. The daemon does not depend on this program: it runs on.
    /// </remarks>
    /// <param name="options">The options of the client. Null: the defaults.</param>
    /// <param name="cancellationToken">Ends the call. A daemon that has already started runs on.</param>
    /// <exception cref="NotInstalledException">No daemon runs, and the program is not there.</exception>
    /// <exception cref="DaemonStartException">The daemon did not start; the message says why.</exception>
    /// <exception cref="DaemonNotRunningException">No daemon runs at the given address.</exception>
    /// <exception cref="HeelerAddressException">There is no usable address.</exception>
    public static async Task<HeelerClient> ConnectOrStartAsync(
        HeelerClientOptions? options = null, CancellationToken cancellationToken = default)
    {
        options ??= new HeelerClientOptions();
        var given = options.Address ?? HeelerAddress.FromEnvironment();
        try
        {
            return await ReachedAsync(options, given ?? HeelerAddress.DefaultForUser(), cancellationToken).ConfigureAwait(false);
        }
        catch (DaemonNotRunningException none) when (given is null)
        {
            var address = await DaemonStarter.StartAsync(options, none, cancellationToken).ConfigureAwait(false);
            return await ReachedAsync(options, address, cancellationToken).ConfigureAwait(false);
        }
    }

    /// <summary>Returns a client whose daemon has answered.</summary>
    private static async Task<HeelerClient> ReachedAsync(
        HeelerClientOptions options, HeelerAddress address, CancellationToken cancellation)
    {
        var client = new HeelerClient(options, address);
        try
        {
            await client.ListPageAsync(new ListRequest { PageSize = 1 }, cancellation).ConfigureAwait(false);
            return client;
        }
        catch
        {
            client.Dispose();
            throw;
        }
    }
}
