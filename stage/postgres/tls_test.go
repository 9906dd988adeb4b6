package postgres_test

import (
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/pgserver"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/stage/postgres"
)

// All connections are encrypted if the URL says so: those of the pool, that of heartbeats, and the one that listens.
func TestTLS(t *testing.T) {
	tier.Need(t, tier.Full, "starts PostgreSQL")
	tier.Tool(t, "initdb")
	srv, err := pgserver.Start(pgserver.ForTests)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	root := encrypts(t, srv)
	stranger := filepath.Join(t.TempDir(), "stranger.crt")
	certificate(t, stranger, filepath.Join(t.TempDir(), "stranger.key"))

	plain := srv.URL("postgres")
	connection := func(root string) string {
		return strings.Replace(plain, "sslmode=disable",
			"sslmode=verify-full&application_name=encrypted&sslrootcert="+url.QueryEscape(root), 1)
	}
	_, err = postgres.Open(t.Context(), postgres.Config{Connection: connection(stranger)})
	require.ErrorContains(t, err, "certificate")
	s := open(t, postgres.Config{Connection: connection(root)})
	_, stop := hints(t, s)
	listens(t, s, 1)
	require.NoError(t, renewed(t, s, claimed(t, s, time.Hour), time.Minute))
	const ours = `pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'encrypted'`
	require.GreaterOrEqual(t, count(t, s, ours), 3)
	require.Zero(t, count(t, s, ours+` AND NOT ssl`))
	require.Error(t, stop())
}

// encrypts has a server speak TLS, and returns the file of its certificate.
func encrypts(t *testing.T, srv *pgserver.Server) (root string) {
	t.Helper()
	data, err := srv.Do("postgres", "SHOW data_directory")
	require.NoError(t, err)
	root = filepath.Join(data, "server.crt")
	certificate(t, root, filepath.Join(data, "server.key"))
	_, err = srv.Do("postgres", "ALTER SYSTEM SET ssl = on")
	require.NoError(t, err)
	require.NoError(t, srv.Restart())
	return root
}

// certificate writes a certificate for 127.0.0.1 and its key, for the owner of the folder of each.
func certificate(t *testing.T, certFile, keyFile string) {
	t.Helper()
	c, err := secure.SelfSigned("127.0.0.1")
	require.NoError(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
		folder, err := os.Stat(filepath.Dir(file))
		require.NoError(t, err)
		owner := folder.Sys().(*syscall.Stat_t)
		require.NoError(t, os.Chown(file, int(owner.Uid), int(owner.Gid)), file)
	}
}
