package main

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/service"
)

func TestMain(m *testing.M) {
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// Go's resolver asks over UDP, and over TCP for what does not fit.
func TestGoAsks(t *testing.T) {
	z, err := load("")
	require.NoError(t, err)
	udp := &service.PacketListener{Address: "127.0.0.1:0", Handler: overUDP(z)}
	tcp := &service.Listener{Address: "127.0.0.1:0", Handler: overTCP(z, &admission.Limiter{Messages: 1000})}
	r := servertest.Start(t, act.Config{Schedulers: 2}, udp.Setup, tcp.Setup)
	var mu sync.Mutex // the resolver asks for addresses of both versions at a time
	var networks []string
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		mu.Lock()
		networks = append(networks, network)
		mu.Unlock()
		to := udp.Addr()
		if network == "tcp" {
			to = tcp.Addr()
		}
		return (&net.Dialer{}).DialContext(ctx, network, to.String())
	}}
	all, err := resolver.LookupNetIP(t.Context(), "ip4", "many.example.com.")
	require.NoError(t, err)
	require.Len(t, all, 100)
	require.Equal(t, []string{"udp", "tcp"}, slices.Compact(networks))
	text, err := resolver.LookupTXT(t.Context(), "txt.example.com.")
	require.NoError(t, err)
	require.Equal(t, []string{"v=spf1 -alla second string; with a semicolon"}, text)
	_, err = resolver.LookupHost(t.Context(), "none.example.com.")
	var missing *net.DNSError
	require.ErrorAs(t, err, &missing)
	require.True(t, missing.IsNotFound)
	r.Group.Shutdown(servertest.Cut)
	_ = r.End()
}
