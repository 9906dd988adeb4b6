package service_test

import (
	"path/filepath"
	"testing"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// A kind is a service by the name of its socket's kind.
type kind struct {
	name string
	*service.Listener
}

// both is a service of each kind with the handler.
func both(t *testing.T, handler func(*listener.Conn) act.Action) []kind {
	return []kind{
		{"tcp", &service.Listener{Address: loopback, Handler: handler}},
		{"unix", &service.Listener{Address: "unix:" + filepath.Join(servertest.ShortDir(t), "s"), Handler: handler}},
	}
}
