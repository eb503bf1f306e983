using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace Heeler.Client;

/// <summary>
/// The token and the certificate authorities for a daemon over TCP. Over a Unix socket neither is read: the kernel identifies
/// both ends.
/// </summary>
internal static class Credentials
{
    private const string TokenFile = "HEELER_TOKEN_FILE";
    /// <summary>Has the token of the task that the program runs in. The daemon sets it.</summary>
    private const string TaskToken = "HEELER_TOKEN";
    private const string TlsCaFile = "HEELER_TLS_CA";

    /// <summary>Returns the token to send. Null: none is known, and the daemon's refusal says what to do.</summary>
    internal static string? TokenFor(HeelerAddress address, HeelerClientOptions options)
    {
        if (address.Kind == HeelerAddressKind.Unix) return null;
        if (options.Token is { } token) return Checked(token);
        if (Named(options.TokenFile, TokenFile) is { } path)
            return Checked(Read(path, "the token file", () => File.ReadAllText(path)).Trim());
        // Only the daemon that runs the task knows its token, so no other machine gets to see it. On loopback it comes
        // before the token of the user's own daemon, which would give a task the rights of the user.
        if (Environment.GetEnvironmentVariable(TaskToken) is { Length: > 0 } ofTask
            && (address.IsLoopback || address.IsFromEnvironment))
            return Checked(ofTask);
        return address.IsLoopback ? OwnToken() : null;
    }

    /// <summary>Returns the policy for the daemon's certificate. Null: that of the system.</summary>
    internal static X509ChainPolicy? Authorities(HeelerAddress address, HeelerClientOptions options)
    {
        if (address.Kind != HeelerAddressKind.Tls || Named(options.TlsCaFile, TlsCaFile) is not { } path) return null;
        var policy = new X509ChainPolicy
        {
            TrustMode = X509ChainTrustMode.CustomRootTrust,
            RevocationMode = X509RevocationMode.NoCheck,
        };
        Read(path, "the certificates in", () =>
        {
            policy.CustomTrustStore.ImportFromPemFile(path);
            return policy.CustomTrustStore.Count;
        });
        return policy.CustomTrustStore.Count > 0
            ? policy
            : throw new HeelerCredentialsException($"{path} has no certificate in PEM format");
    }

    private static string? Named(string? option, string variable) =>
        option ?? (Environment.GetEnvironmentVariable(variable) is { Length: > 0 } path ? path : null);

    /// <summary>Returns the token of the user's own daemon. Null: there is no usable one.</summary>
    private static string? OwnToken()
    {
        try
        {
            return Checked(File.ReadAllText(Path.Combine(StateDirectory(), "token")).Trim());
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException or HeelerCredentialsException)
        {
            return null;
        }
    }

    private static string StateDirectory()
    {
        if (Environment.GetEnvironmentVariable("HEELER_STATE_DIR") is { Length: > 0 } named) return Path.GetFullPath(named);
        var state = Environment.GetEnvironmentVariable("XDG_STATE_HOME");
        // The XDG specification says to ignore relative paths.
        var home = Environment.GetFolderPath(Environment.SpecialFolder.UserProfile);
        return Path.Combine(state is ['/', ..] ? state : Path.Combine(home, ".local/state"), "heeler");
    }

    private static string Checked(string token) =>
        token.Length > 0 && token.All(character => character is >= '!' and <= '~')
            ? token
            : throw new HeelerCredentialsException("the token is empty or has characters that are not allowed");

    private static T Read<T>(string path, string what, Func<T> read)
    {
        try
        {
            return read();
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException or CryptographicException)
        {
            throw new HeelerCredentialsException($"cannot read {what} {path}: {error.Message}", error);
        }
    }
}
