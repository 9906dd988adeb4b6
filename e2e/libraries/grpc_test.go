package libraries

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
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

// The service that the cases call, as a handler of two libraries.
var services = []struct {
	name    string
	handler func(*testing.T) http.Handler
}{
	{"connect", func(*testing.T) http.Handler { return connected() }},
	{"grpc-go's ServeHTTP", func(t *testing.T) http.Handler {
		s := grpc.NewServer()
		rpc.RegisterTestServiceServer(s, interop.NewTestServer())
		t.Cleanup(s.Stop)
		return s
	}},
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

func TestGRPC(t *testing.T) {
	tier.Need(t, tier.Full, "a server for each case")
	for _, service := range services {
		for _, k := range callable {
			t.Run(service.name+"/"+k.name, func(t *testing.T) {
				w := k.serve(t, service.handler(t))
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

// connected is the service by connect.
func connected() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(rpc.TestService_EmptyCall_FullMethodName, connect.NewUnaryHandler(rpc.TestService_EmptyCall_FullMethodName,
		func(context.Context, *connect.Request[rpc.Empty]) (*connect.Response[rpc.Empty], error) {
			return connect.NewResponse(&rpc.Empty{}), nil
		}))
	mux.Handle(rpc.TestService_UnaryCall_FullMethodName, connect.NewUnaryHandler(rpc.TestService_UnaryCall_FullMethodName,
		func(_ context.Context, r *connect.Request[rpc.SimpleRequest]) (*connect.Response[rpc.SimpleResponse], error) {
			a := connect.NewResponse(&rpc.SimpleResponse{Payload: payload(r.Msg.ResponseSize)})
			repeat(r.Header(), a.Header(), a.Trailer())
			return a, failure(r.Msg.ResponseStatus)
		}))
	mux.Handle(rpc.TestService_StreamingInputCall_FullMethodName, connect.NewClientStreamHandler(rpc.TestService_StreamingInputCall_FullMethodName,
		func(_ context.Context, s *connect.ClientStream[rpc.StreamingInputCallRequest]) (*connect.Response[rpc.StreamingInputCallResponse], error) {
			a := &rpc.StreamingInputCallResponse{}
			for s.Receive() {
				a.AggregatedPayloadSize += int32(len(s.Msg().Payload.Body))
			}
			return connect.NewResponse(a), s.Err()
		}))
	mux.Handle(rpc.TestService_StreamingOutputCall_FullMethodName, connect.NewServerStreamHandler(rpc.TestService_StreamingOutputCall_FullMethodName,
		func(_ context.Context, r *connect.Request[rpc.StreamingOutputCallRequest], s *connect.ServerStream[rpc.StreamingOutputCallResponse]) error {
			return stream(r.Msg, s.Send)
		}))
	mux.Handle(rpc.TestService_FullDuplexCall_FullMethodName, connect.NewBidiStreamHandler(rpc.TestService_FullDuplexCall_FullMethodName,
		func(_ context.Context, s *connect.BidiStream[rpc.StreamingOutputCallRequest, rpc.StreamingOutputCallResponse]) error {
			repeat(s.RequestHeader(), s.ResponseHeader(), s.ResponseTrailer())
			for {
				r, err := s.Receive()
				switch {
				case errors.Is(err, io.EOF):
					return nil
				case err == nil:
					err = errors.Join(failure(r.ResponseStatus), stream(r, s.Send))
				}
				if err != nil {
					return err
				}
			}
		}))
	unimplemented := connect.NewError(connect.CodeUnimplemented, errors.New("there is no such method"))
	mux.Handle("/", connect.NewUnaryHandler("", func(context.Context, *connect.Request[rpc.Empty]) (*connect.Response[rpc.Empty], error) {
		return nil, unimplemented
	}))
	return mux
}

func payload(size int32) *rpc.Payload { return &rpc.Payload{Body: bytes.Repeat([]byte{0}, int(size))} }

// repeat answers with the metadata of the request.
func repeat(from, header, trailer http.Header) {
	const initial, trailing = "X-Grpc-Test-Echo-Initial", "X-Grpc-Test-Echo-Trailing-Bin"
	for _, v := range from[initial] {
		header.Set(initial, v)
	}
	for _, v := range from[trailing] {
		trailer.Set(trailing, v)
	}
}

func failure(s *rpc.EchoStatus) error {
	if s == nil || s.Code == 0 {
		return nil
	}
	return connect.NewError(connect.Code(s.Code), errors.New(s.Message))
}

// stream sends what r asks for.
func stream(r *rpc.StreamingOutputCallRequest, send func(*rpc.StreamingOutputCallResponse) error) error {
	for _, p := range r.ResponseParameters {
		if err := send(&rpc.StreamingOutputCallResponse{Payload: payload(p.Size)}); err != nil {
			return err
		}
	}
	return nil
}
