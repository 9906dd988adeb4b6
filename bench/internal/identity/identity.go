// Package identity makes the certificate of the servers that are compared.
package identity

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"

	"github.com/daimon-go/daimon/secure"
)

// Files are the certificate of all servers and its key.
type Files struct{ Certificate, Key string }

// Issue makes an ECDSA certificate on P-256. Its key is readable to all, since nginx runs as nobody.
func Issue(dir string) (id Files, err error) {
	pair, err := secure.SelfSigned()
	if err != nil {
		return id, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return id, err
	}
	id = Files{filepath.Join(dir, "certificate.pem"), filepath.Join(dir, "key.pem")}
	return id, errors.Join(
		os.WriteFile(id.Certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o644),
		os.WriteFile(id.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o644))
}

// Flags returns the flags with which a server gets the identity.
func (id Files) Flags() []string { return []string{"-tls-cert", id.Certificate, "-tls-key", id.Key} }
