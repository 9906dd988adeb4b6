package e2e

import (
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/sim/framing"
)

// mosquitto is how the clients of Mosquitto connect to a broker.
type mosquitto []string

func (m mosquitto) command(t *testing.T, program string, args []string) *exec.Cmd {
	return exec.Command(tier.Tool(t, program), slices.Concat(m, args)...)
}

// pub publishes, and ends when that is acknowledged.
func (m mosquitto) pub(t *testing.T, args ...string) {
	t.Helper()
	out, err := m.command(t, "mosquitto_pub", args).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// sub returns a client that has subscribed.
func (m mosquitto) sub(t *testing.T, args ...string) *exectest.Program {
	t.Helper()
	cmd := m.command(t, "mosquitto_sub", append(args, "-v", "-d"))
	cmd.Args = append([]string{"stdbuf", "-oL", cmd.Path}, cmd.Args[1:]...) // else it prints when it ends
	cmd.Path = tier.Tool(t, "stdbuf")
	p := exectest.Start(t, cmd)
	says(t, p, "SUBACK")
	return p
}

// says waits until a client has printed a text.
func says(t *testing.T, p *exectest.Program, text string) {
	t.Helper()
	exectest.Eventually(t, patience, text, func() bool { return strings.Contains(p.Out(), text) })
}

func TestMosquittoClients(t *testing.T) {
	outside(t)
	t.Parallel()
	id := certify(t, t.TempDir(), soon())
	for _, row := range []struct {
		name          string
		server, flags []string
		dial          func(*testing.T, string) net.Conn
	}{
		{"TCP", nil, nil, func(t *testing.T, at string) net.Conn { return dial(t, at) }},
		{"TLS", id.flags(), []string{"--cafile", id.cert}, overTLS},
	} {
		t.Run(row.name, func(t *testing.T) {
			server := serve(t, "mqtt", append(row.server, "-web", "127.0.0.1:0")...)
			_, port, err := net.SplitHostPort(server.Addr)
			require.NoError(t, err)
			m := mosquitto(append(row.flags, "-h", "127.0.0.1", "-p", port))

			all := m.sub(t, "-t", "#", "-q", "1")
			m.pub(t, "-t", "rooms/kitchen", "-m", "once")
			m.pub(t, "-t", "rooms/kitchen", "-m", "21.5", "-q", "1", "-r")
			says(t, all, "rooms/kitchen once\n")
			says(t, all, "rooms/kitchen 21.5\n")
			says(t, m.sub(t, "-t", "rooms/+"), "rooms/kitchen 21.5\n") // retained
			require.Error(t, m.command(t, "mosquitto_pub", []string{"-t", "t", "-m", "x", "-q", "2"}).Run())

			m.sub(t, "-t", "none", "--will-topic", "wills", "--will-payload", "killed").Signal(t, syscall.SIGKILL)
			says(t, all, "wills killed\n")

			older := m.sub(t, "-t", "none", "-i", "same", "--will-topic", "wills", "--will-payload", "taken over")
			m.pub(t, "-t", "rooms/hall", "-m", "newer", "-i", "same")
			says(t, all, "wills taken over\n")
			says(t, all, "rooms/hall newer\n")
			exectest.Eventually(t, patience, "the older client again", func() bool { return strings.Count(older.Out(), "CONNACK (0)") > 1 })

			absent := m.sub(t, "-t", "kept", "-i", "absent", "-c", "-q", "1")
			absent.Signal(t, syscall.SIGSTOP)
			m.pub(t, "-t", "kept", "-m", "not acknowledged", "-q", "1")
			absent.Signal(t, syscall.SIGKILL)
			m.pub(t, "-t", "kept", "-m", "while it was absent", "-q", "1")
			present := m.sub(t, "-t", "kept", "-i", "absent", "-c", "-q", "1")
			says(t, present, "kept while it was absent\n")
			require.Equal(t, 1, strings.Count(present.Out(), "kept not acknowledged\n"))

			overWebSocket(t, server, row.dial)
			server.Stop(t)
			require.NotContains(t, server.Said(), "ERROR")
		})
	}
}

// overWebSocket subscribes over WebSocket, which the clients of Mosquitto 2.0 cannot.
func overWebSocket(t *testing.T, server *exectest.Program, dial func(*testing.T, string) net.Conn) {
	listening := regexp.MustCompile(`listening on (\S+)\n`).FindAllStringSubmatch(server.Said(), -1)
	require.Len(t, listening, 2)
	conn := dial(t, listening[1][1])
	web := framing.WebSocket{Conn: conn, Header: "Sec-WebSocket-Protocol: mqtt\r\nOrigin: https://elsewhere.example\r\n"}
	require.NoError(t, web.Open("/mqtt"))
	require.NoError(t, web.Write(framing.Binary, []byte("\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00\x82\x0a\x00\x01\x00\x05rooms\x00")))
	for _, want := range []string{"\x20\x02\x00\x00", "\x90\x03\x00\x01\x00"} {
		_, got, err := web.Read()
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	require.NoError(t, conn.Close())
}
