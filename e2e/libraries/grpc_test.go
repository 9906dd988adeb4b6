package libraries

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	rpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// The cases of grpc-go's client for the interoperability of gRPC. A case that fails ends the process, and says why.
var cases = []struct {
	name string
	call func(context.Context, rpc.TestServiceClient, ...grpc.CallOption)
}{
	{"empty unary", interop.DoEmptyUnaryCall}, {"large unary", interop.DoLargeUnaryCall},
	{"client streaming", interop.DoClientStreaming}, {"server streaming", interop.DoServerStreaming},
	{"ping pong", interop.DoPingPong}, {"empty stream", interop.DoEmptyStream},
	{"timeout on sleeping server", interop.DoTimeoutOnSleepingServer},
	{"cancel after begin", interop.DoCancelAfterBegin}, {"cancel after first response", interop.DoCancelAfterFirstResponse},
	{"custom metadata", interop.DoCustomMetadata}, {"status code and message", interop.DoStatusCodeAndMessage},
	{"special status message", interop.DoSpecialStatusMessage},
}

// callable are the kinds of servers, over HTTP/2 without TLS.
var callable = []kind{
	{"net/http", func(t *testing.T, h http.Handler) *web {
		servertest.CheckDescriptors(t)
		s := httptest.NewUnstartedServer(h)
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
		t.Cleanup(s.Close)
		return visitor(t, s.URL, s.Close)
	}},
	{"Daimon", adapted},
}

// The service that the cases call, by the method ServeHTTP of grpc-go's server.
func TestGRPC(t *testing.T) {
	tier.Need(t, tier.Full, "a server for each case")
	for _, k := range callable {
		t.Run(k.name, func(t *testing.T) {
			service := grpc.NewServer()
			defer service.Stop()
			rpc.RegisterTestServiceServer(service, interop.NewTestServer())
			w := k.serve(t, service)
			conn, err := grpc.NewClient(strings.TrimPrefix(w.url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20)))
			require.NoError(t, err)
			defer conn.Close()
			ctx, cancel := context.WithTimeout(context.Background(), servertest.Timeout)
			defer cancel()
			client := rpc.NewTestServiceClient(conn)
			for _, c := range cases {
				t.Run(c.name, func(*testing.T) { c.call(ctx, client) })
			}
			t.Run("unimplemented", func(*testing.T) {
				interop.DoUnimplementedMethod(ctx, conn)
				interop.DoUnimplementedService(ctx, rpc.NewUnimplementedServiceClient(conn))
			})
			t.Run("1,000 calls at a time", func(t *testing.T) { crowd(ctx, t, client) })
		})
	}
}

// crowd has many calls on one connection, and one with much content among them.
func crowd(ctx context.Context, t *testing.T, client rpc.TestServiceClient) {
	var calls sync.WaitGroup
	failures := make(chan error, 1000)
	for i := range cap(failures) {
		calls.Go(func() {
			size := 100 * i % 3000
			if i == 500 {
				size = 3 << 20
			}
			payload := interop.ClientNewPayload(rpc.PayloadType_COMPRESSABLE, size)
			a, err := client.UnaryCall(ctx, &rpc.SimpleRequest{ResponseSize: int32(size), Payload: payload})
			if err == nil && len(a.Payload.Body) != size {
				err = errors.New("another size")
			}
			failures <- err
		})
	}
	calls.Wait()
	for range cap(failures) {
		require.NoError(t, <-failures)
	}
}
