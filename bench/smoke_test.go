// Package bench has no code but a test that runs each program of the folders once, as small as it can be.
package bench

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

func TestMain(m *testing.M) { exectest.Main(m) }

// Each program prints a table, and leaves nothing behind. A limit that cannot be kept is an error.
func TestEachProgramRuns(t *testing.T) {
	tier.Need(t, tier.Full, "builds all programs that are compared")
	for _, row := range []struct {
		program, flags string
		status         int
		says           string
	}{
		{"attacks", "-pairs 1 -time 100ms -attacks resets,bomb -limit 0.0001", 1, "beside bomb the p99 is"},
		{"chat", "-visitors 120 -talkers 3 -lines 6 -every 1s -max 1ns", 1, "the p99, "},
		{"echo", "-pairs 2 -conns 10 -messages 500 -coro -uring -plain -loops -fib=false", 0, "coro/daimon"},
		{"echo", "-pairs 1 -conns 10 -messages 500 -rate 5000", 0, "p99.9 of the latency"},
		{"gateway", "-pairs 1 -scale 0.005", 0, "reuse: "},
		{"http", "-pairs 1 -conns 10 -requests 500 -max 0.001", 1, "is above 0.001"},
		{"http", "-pairs 1 -conns 10 -requests 500 -rate 5000 -depth 1 -servers daimon,epoll,garbage,epoll-control", 0, "p99.9 of the latency"},
		{"http2", "-pairs 1 -scale 0.001 -rows get,upload-tls,rpc,waiting -servers native,net/http,control,nethttp,inline,nginx,grpc-go", 0, "native/net/http"},
		{"idle", "-strategies interrupt,busy -rounds 1 -rest 20ms -scale 0.0005", 0, "| interrupt | "},
		{"machines", "-runs 1 -last 200ms -rate 100 -topics 2", 0, "daimon"},
		{"nethttp", "-pairs 1 -scale 0.001 -apart=false -rows small1,file1m-tls,stream,upload-chunked,proxy", 0, "| proxy | "},
		{"process", "-pairs 1 -scale 0.001", 0, "hand-off"},
		{"process", "-rows nothing", 1, "-rows takes some of hand-off,"},
		{"queue", "-pairs 1 -scale 0.001 -workers 10 -rate 200 -rows drain", 0, "river"},
		{"replace", "-n 1 -every 100ms -resting 4 -rtt 1ms -systems daimon,nginx,haproxy", 0, "haproxy"},
		{"shared", "-test.benchtime 100x -count 1", 0, "owner"},
		{"tls", "-pairs 1 -conns 10 -exchanges 200 -handshakes 30 -idle 50 -flood 100ms -rows http,resumed,idle,flood", 0, "daimon"},
		{"topics", "-pairs 1 -subscribers 5 -messages 20", 0, "two/one"},
		{"udp", "-pairs 1 -packets 500 -rows echo", 0, "conversations/loop"},
		{"websocket", "-pairs 1 -conns 10 -messages 300 -idle 50 -receivers 20 -broadcasts 2", 0, "gorilla"},
	} {
		t.Run(row.program+" "+row.flags, func(t *testing.T) {
			t.Parallel()
			left, err := os.MkdirTemp("", "bench") // a short name for sockets, in which another user may look
			require.NoError(t, err)
			require.NoError(t, os.Chmod(left, 0o755))
			defer os.RemoveAll(left)
			cmd := exectest.Build{Dir: row.program}.Command(t, strings.Fields(row.flags)...)
			cmd.Env = append(os.Environ(), "TMPDIR="+left)
			cmd.Dir = row.program
			p := exectest.Start(t, cmd)
			require.Equal(t, row.status, p.Exit(t), "%s", p.Said())
			require.Contains(t, p.Out()+p.Said(), row.says)
			files, err := os.ReadDir(left)
			require.NoError(t, err)
			require.Empty(t, files)
		})
	}
}
