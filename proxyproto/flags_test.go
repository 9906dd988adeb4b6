package proxyproto_test

import (
	"flag"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/proxyproto"
)

func TestFlagsSayWhoIsTrusted(t *testing.T) {
	for list, want := range map[string]proxyproto.Config{
		"":                           {},
		"unix":                       {Unix: true},
		"10.0.0.0/8,::1":             {Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}},
		"::ffff:10.9.9.9/104,::/0":   {Trusted: []netip.Prefix{netip.MustParsePrefix("10.9.9.9/8"), netip.MustParsePrefix("::/0")}},
		"::ffff:192.0.2.1,192.0.2.2": {Trusted: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")}},
	} {
		var c, strict proxyproto.Config
		strict.RefuseOthers = true
		for _, x := range []*proxyproto.Config{&c, &strict} {
			fs := flag.NewFlagSet("", flag.ContinueOnError)
			check := x.Flags(fs)
			if list != "" {
				require.NoError(t, fs.Set("proxy-from", list))
			}
			require.Equal(t, x == &strict && list == "", check() != nil, "all would be served")
		}
		require.Equal(t, want, c)
		require.Equal(t, list != "", c.Filters() != nil)
	}
}

func TestFlagsRefuseWhatIsNoNetwork(t *testing.T) {
	for _, list := range []string{"", "x", "10.0.0.0/33", "::ffff:10.0.0.0/95"} {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		(&proxyproto.Config{}).Flags(fs)
		require.ErrorContains(t, fs.Set("proxy-from", "unix,"+list), `"`+list+`" is neither an address nor a network`)
	}
}
