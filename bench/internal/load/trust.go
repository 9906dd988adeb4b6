package load

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Trust returns the config of a client that trusts the certificate of a file only, and that agrees on what all servers are
// compared with: see Agreed.
func Trust(certificate string) (*tls.Config, error) {
	text, err := os.ReadFile(certificate)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", certificate)
	}
	return &tls.Config{
		RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS13,
		CurvePreferences: []tls.CurveID{tls.X25519}, DynamicRecordSizingDisabled: true,
	}, nil
}

// Agreed returns an error unless the peers have agreed on TLS_AES_128_GCM_SHA256 and X25519.
func Agreed(s tls.ConnectionState) error {
	if s.CipherSuite != tls.TLS_AES_128_GCM_SHA256 || s.CurveID != tls.X25519 {
		return fmt.Errorf("the server chose %s and %s", tls.CipherSuiteName(s.CipherSuite), s.CurveID)
	}
	return nil
}
