package admission

import (
	"flag"
	"fmt"

	"github.com/daimon-go/daimon/listener"
)

// Flags defines -max-per-source and -rate-per-source, whose defaults are Conns and Rate. Unless Messages is 0, it also defines
// -messages-per-source, whose default is Messages: so a program that counts messages sets Messages, to less than 0 for a default
// without a bound. With Flags and Filters a Limiter is an Option of package program.
func (l *Limiter) Flags(fs *flag.FlagSet) (check func() error) {
	fs.IntVar(&l.Conns, "max-per-source", l.Conns,
		"the largest `number` of open connections of an IPv4 address, or of a network /64; 0: no bound")
	fs.IntVar(&l.Rate, "rate-per-source", l.Rate, "the largest `number` of new connections of such a source in a second; 0: no bound")
	if l.Messages != 0 {
		fs.IntVar(&l.Messages, "messages-per-source", max(l.Messages, 0),
			"the largest `number` of requests or messages of such a source in a second; 0: no bound")
	}
	return func() error {
		switch {
		case l.Conns < 0:
			return fmt.Errorf("-max-per-source must not be negative: %d", l.Conns)
		case l.Rate < 0:
			return fmt.Errorf("-rate-per-source must not be negative: %d", l.Rate)
		case l.Messages < 0:
			return fmt.Errorf("-messages-per-source must not be negative: %d", l.Messages)
		}
		return nil
	}
}

// Filters returns [Limiter.Filter], or none if no limit is set. Package program calls it after the flags are parsed.
func (l *Limiter) Filters() []listener.Filter {
	if !l.limits() {
		return nil
	}
	return []listener.Filter{l.Filter}
}
