package libraries

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/service"
)

// All of h2spec, which has the rules of RFC 7540 and 7541.
func TestH2spec(t *testing.T) {
	site := &httpd.Server{Handler: httpd.WithBody(0, func(w *httpd.Response, _ *httpd.Request, _ []byte) act.Action {
		_, _ = w.WriteString("Hello, World!")
		return nil
	})}
	s := &server{socket: &service.Listener{Address: "127.0.0.1:0", Handler: site.Serve}}
	s.Running = servertest.Start(t, act.Config{Schedulers: 1}, s.socket.Setup)
	_, number, err := net.SplitHostPort(s.address())
	require.NoError(t, err)
	port, err := strconv.Atoi(number)
	require.NoError(t, err)
	c := &config.Config{Host: "127.0.0.1", Port: port, Path: "/", Timeout: servertest.Timeout, MaxHeaderLen: 4000, Strict: true}
	var faults []string
	passed := 0
	for _, all := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		all.Test(c)
		passed += all.PassedCount
		for _, failed := range failures(all) {
			faults = append(faults, failed.Parent.Section+" "+failed.Desc)
		}
	}
	// The tool does not take an answer of HTTP/1, and the end of the connection, for an end.
	require.Equal(t, []string{"3.5 Sends invalid connection preface"}, faults)
	require.Equal(t, 145, passed)
	s.drain()
}

// failures returns the tests of a group that have failed.
func failures(g *spec.TestGroup) (all []*spec.TestCase) {
	for _, c := range append(g.Tests, g.StrictTests...) {
		if c.Result != nil && c.Result.Failed {
			all = append(all, c)
		}
	}
	for _, sub := range g.Groups {
		all = append(all, failures(sub)...)
	}
	return all
}
