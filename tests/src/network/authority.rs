//! Certificates and keys of a daemon that serves other machines.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// A certificate authority.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: PathBuf,
    /// The file of its certificate.
    pub certificate: PathBuf,
}

/// The files of a server's certificate and key.
#[derive(Debug, Clone)]
pub struct Certified {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    /// Makes an authority whose files are in this directory.
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

    /// Issues a certificate for a server of this name or IP address.
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
