package proxyproto

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"strings"

	"github.com/daimon-go/daimon/listener"
)

// Flags defines -proxy-from, which adds to Trusted and sets Unix. With Flags and Filters a Config is an Option of package program.
// With RefuseOthers the flag may be left out only if somebody is trusted without it.
func (c *Config) Flags(fs *flag.FlagSet) (check func() error) {
	fs.Func("proxy-from", "`networks` of trusted proxies, such as 10.0.0.0/8,::1 (or unix): connections from there begin with a PROXY header",
		c.trust)
	return func() error {
		if c.RefuseOthers && c.nobody() {
			return errors.New("-proxy-from has to name the proxies: all others are refused")
		}
		return nil
	}
}

// trust adds the proxies that are listed.
func (c *Config) trust(list string) error {
	for from := range strings.SplitSeq(list, ",") {
		network, err := netip.ParsePrefix(from)
		if addr, bad := netip.ParseAddr(from); bad == nil {
			network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		network = plain(network)
		switch {
		case from == "unix":
			c.Unix = true
		case err != nil, !network.IsValid():
			return fmt.Errorf("%q is neither an address nor a network", from)
		default:
			c.Trusted = append(c.Trusted, network)
		}
	}
	return nil
}

// Filters returns the filter of [Server], or none if nobody is trusted. Package program calls it after the flags are parsed.
func (c *Config) Filters() []listener.Filter {
	if c.nobody() {
		return nil
	}
	return []listener.Filter{Server(*c)}
}

func (c *Config) nobody() bool { return len(c.Trusted) == 0 && !c.Unix }
