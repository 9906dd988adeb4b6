package client_test

import (
	"runtime"
	"testing"

	"github.com/daimon-go/daimon/internal/testing/servertest"
)

func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0))) // as servertest.Main does
	servertest.Worlds(m, 40, 2000)
}
