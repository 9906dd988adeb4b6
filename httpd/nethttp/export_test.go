package nethttp

import "github.com/daimon-go/daimon/httpd"

// TimeoutsOf returns what the time-outs of v are for httpd.
func TimeoutsOf(v *Server) httpd.Timeouts { return v.call(nil).timeouts() }
