package main

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os/exec"
	"syscall"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/daimon-go/daimon/examples/rpc/logv1"
	"github.com/daimon-go/daimon/examples/rpc/logv1/logv1connect"
	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

func TestMain(m *testing.M) { exectest.Main(m) }

var binary = exectest.Build{Dir: "."}

func curl(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := exec.Command(tier.Tool(t, "curl"), append([]string{"-ksS", "--noproxy", "*", "--max-time", "120"}, arguments...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// trusting does not verify the certificate, which is self-signed.
var trusting = &tls.Config{InsecureSkipVerify: true}

// The same calls by clients of all protocols, and a shutdown while streams are open.
func TestLog(t *testing.T) {
	tier.Need(t, tier.Full, "builds the program, and uses curl")
	p := exectest.Start(t, binary.Command(t, "-addr", "127.0.0.1:0", "-tls-self"))
	p.Listens(t, p.Said)
	ctx, cancel := context.WithTimeout(context.Background(), exectest.Patience)
	defer cancel()

	url := "https://" + p.Addr + "/log.v1.Log/Append"
	for i, version := range []string{"--http1.1", "--http2"} {
		require.JSONEq(t, `{"position": "`+string('1'+rune(i))+`"}`, curl(t, version, "-H", "Author: Ada", "--json", `{"text": "hello"}`, url))
		require.Contains(t, curl(t, version, "--json", `{}`, url), `"code":"invalid_argument"`)
	}

	transport := &http.Transport{TLSClientConfig: trusting, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	for i, protocol := range [][]connect.ClientOption{nil, {connect.WithGRPC()}, {connect.WithGRPCWeb()}} {
		client := logv1connect.NewLogClient(&http.Client{Transport: transport}, "https://"+p.Addr, protocol...)
		load := client.Load(ctx)
		load.RequestHeader().Set("Author", "Grace")
		for range 3 {
			require.NoError(t, load.Send(&logv1.Entry{Text: "of many"}))
		}
		last, err := load.CloseAndReceive()
		require.NoError(t, err)
		require.EqualValues(t, 5+3*i, last.Msg.Position)
		require.Equal(t, "3", last.Trailer().Get("Entries"))
		read, err := client.Read(ctx, connect.NewRequest(&logv1.ReadRequest{From: last.Msg.Position}))
		require.NoError(t, err)
		require.True(t, read.Receive(), read.Err())
		require.Equal(t, "Grace", read.Msg().Author)
		require.False(t, read.Receive())
		require.NoError(t, read.Err())
		require.NoError(t, read.Close())
		_, err = client.Append(ctx, connect.NewRequest(&logv1.Entry{}))
		require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err), "%v", err)
	}

	conn, err := grpc.NewClient(p.Addr, grpc.WithTransportCredentials(credentials.NewTLS(trusting)))
	require.NoError(t, err)
	defer conn.Close()
	follow, err := conn.NewStream(metadata.AppendToOutgoingContext(ctx, "author", "Alan"), &grpc.StreamDesc{ServerStreams: true}, logv1connect.LogReadProcedure)
	require.NoError(t, err)
	require.NoError(t, follow.SendMsg(&logv1.ReadRequest{From: 12, Follow: true}))
	require.NoError(t, follow.CloseSend())
	pipe, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, logv1connect.LogPipeProcedure)
	require.NoError(t, err)
	say := func(position int64) {
		t.Helper()
		require.NoError(t, pipe.SendMsg(&logv1.Entry{Text: "and so on"}))
		at := &logv1.Position{}
		require.NoError(t, pipe.RecvMsg(at))
		require.Equal(t, position, at.Position)
	}
	say(12)
	require.NoError(t, follow.RecvMsg(&logv1.Entry{}))
	p.Signal(t, syscall.SIGTERM)
	require.Equal(t, codes.Unavailable, status.Code(follow.RecvMsg(&logv1.Entry{})))
	say(13) // what has begun goes on
	require.NoError(t, pipe.CloseSend())
	require.Equal(t, io.EOF, pipe.RecvMsg(&logv1.Position{}))
	require.Zero(t, p.Exit(t), p.Said())
}
