//! Certificates and their keys, as somebody who runs a daemon for other machines would have them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// An authority whose certificate is in a file.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: PathBuf,
    /// Its certificate.
    pub certificate: PathBuf,
}

/// A server's certificate and its key.
#[derive(Debug, Clone)]
pub struct Certified {
    /// The certificate's file.
    pub certificate: PathBuf,
    /// The key's.
    pub key: PathBuf,
}

impl Authority {
    /// A new one, with its files in this directory.
    pub fn new(dir: &Path, name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        let certificate = dir.join(format!("{name}.pem"));
        fs::write(&certificate, issuer.pem()).unwrap();
        Self {
            issuer,
            dir: dir.to_owned(),
            certificate,
        }
    }

    /// A certificate for a server that goes by this name or number.
    pub fn certify(&self, name: &str) -> Certified {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let files = Certified {
            certificate: self.dir.join(format!("{name}-cert.pem")),
            key: self.dir.join(format!("{name}-key.pem")),
        };
        fs::write(&files.certificate, certificate.pem()).unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    }
}
