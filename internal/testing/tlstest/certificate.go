package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"sync"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/stretchr/testify/require"
)

// Birth is when each simulated world begins.
var Birth = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

var identity struct {
	sync.Once
	tls.Certificate
}

// Certificate returns a certificate for the name "world" that is the same in each process.
func Certificate(t *testing.T) tls.Certificate {
	identity.Do(func() {
		cryptotest.SetGlobalRandom(t, 17)
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		form := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"world"}, NotBefore: Birth.Add(-time.Hour),
			NotAfter: Birth.AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true}
		der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
		require.NoError(t, err)
		leaf, err := x509.ParseCertificate(der)
		require.NoError(t, err)
		identity.Certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
	})
	return identity.Certificate
}
