package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"

	"github.com/daimon-go/daimon/secure"
)

// identity is the certificate of all servers and its key, as files.
type identity struct{ certificate, key string }

// issue makes an ECDSA certificate on P-256. Its key is readable to all, since nginx runs as nobody.
func issue(dir string) (id identity, err error) {
	pair, err := secure.SelfSigned()
	if err != nil {
		return id, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return id, err
	}
	id = identity{filepath.Join(dir, "certificate.pem"), filepath.Join(dir, "key.pem")}
	return id, errors.Join(
		os.WriteFile(id.certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o644),
		os.WriteFile(id.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o644))
}

func (id identity) flags() []string { return []string{"-tls-cert", id.certificate, "-tls-key", id.key} }
