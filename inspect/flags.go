package inspect

import "flag"

// Flags defines -inspect, -inspect-token and -inspect-dir, whose defaults are Address, Token and Dir. With Flags an
// Inspector is an Option of package program. If there is neither an Address nor a Dir then, it does nothing.
func (x *Inspector) Flags(fs *flag.FlagSet) (check func() error) {
	fs.StringVar(&x.Address, "inspect", x.Address,
		"the `address` of pages that show what the server is doing, such as 127.0.0.1:6060; empty: none")
	fs.StringVar(&x.Token, "inspect-token", x.Token,
		"what requests for these pages have to bring; empty: a random `token`, which is logged")
	fs.StringVar(&x.Dir, "inspect-dir", x.Dir,
		"the `directory` for files that say what has just happened, after a panic, a stall or SIGUSR1; empty: none")
	x.off = true
	return nil
}
