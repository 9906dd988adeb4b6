package secure_test

import (
	"crypto/tls"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/upgrade"
)

var _ upgrade.Keeper = (*secure.TLS)(nil) // for the keys of tickets

func TestFlagsChooseTheCertificate(t *testing.T) {
	id := valid(t)
	in := files(t, id)
	for name, row := range map[string]struct {
		arguments []string
		encrypts  bool
		subject   string
	}{
		"none":  {nil, false, ""},
		"files": {[]string{"-tls-cert", in.Cert, "-tls-key", in.Key}, true, ""},
		"self":  {[]string{"-tls-self"}, true, "localhost"},
	} {
		t.Run(name, func(t *testing.T) {
			x, fs := &secure.TLS{}, flag.NewFlagSet("", flag.ContinueOnError)
			check := x.Flags(fs)
			require.NoError(t, fs.Parse(row.arguments))
			require.NoError(t, check())
			require.Equal(t, row.encrypts, x.Filters() != nil)
			l := servertest.New(t, act.Config{})
			require.NoError(t, x.Setup(l.S))
			if row.encrypts {
				cert, err := x.Config.GetCertificate(&tls.ClientHelloInfo{})
				require.NoError(t, err)
				require.Equal(t, row.subject, cert.Leaf.Subject.CommonName)
			}
		})
	}
}
