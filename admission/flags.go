package admission

import (
	"flag"
	"fmt"

	"github.com/daimon-go/daimon/listener"
)

// Flags defines -max-per-source and -rate-per-source, whose defaults are Conns and Rate. With Flags and Filters a Limiter is an
// Option of package program.
func (l *Limiter) Flags(fs *flag.FlagSet) (check func() error) {
	fs.IntVar(&l.Conns, "max-per-source", l.Conns,
		"the largest `number` of open connections of an IPv4 address, or of a network /64; 0: no bound")
	fs.IntVar(&l.Rate, "rate-per-source", l.Rate, "the largest `number` of new connections of such a source in a second; 0: no bound")
	return func() error {
		switch {
		case l.Conns < 0:
			return fmt.Errorf("-max-per-source must not be negative: %d", l.Conns)
		case l.Rate < 0:
			return fmt.Errorf("-rate-per-source must not be negative: %d", l.Rate)
		}
		return nil
	}
}

// Filters returns Filter, or nothing if there are no limits.
func (l *Limiter) Filters() []listener.Filter {
	if l.Conns <= 0 && l.Rate <= 0 {
		return nil
	}
	return []listener.Filter{l.Filter}
}
