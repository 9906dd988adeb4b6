package handover_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/service"
)

// A state is passed on without sockets, and an Inspector without an address has none.
func TestOnlyServicesThatListenArePassedOn(t *testing.T) {
	all := handover.Listeners([]any{&inspect.Inspector{}, &service.Listener{}, "a state", &inspect.Inspector{Address: "127.0.0.1:0"}})
	require.Len(t, all, 2)
	for _, l := range all {
		sockets, err := l.Sockets()
		require.NoError(t, err)
		require.Nil(t, sockets, "it has not been set up")
	}
}
