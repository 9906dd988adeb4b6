package site

import (
	"context"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Say is the procedure of the site: it returns its argument.
const Say = "/bench.Echo/Say"

// rpc is Say by connect-go, which answers gRPC, gRPC-Web and Connect.
var rpc = connect.NewUnaryHandler(Say,
	func(_ context.Context, r *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
		return connect.NewResponse(r.Msg), nil
	})

// GRPC returns Say on the server of grpc-go.
func GRPC() *grpc.Server {
	s := grpc.NewServer()
	say := func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		m := new(wrapperspb.StringValue)
		return m, decode(m)
	}
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Echo", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: say}},
	}, nil)
	return s
}
