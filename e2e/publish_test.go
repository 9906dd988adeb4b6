package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/servertest"
)

// TestPublish has a subscriber and a publisher, on two reactors.
func TestPublish(t *testing.T) {
	t.Parallel()
	outside(t)
	server := serve(t, "publish", "-reactors", "2", "-slow", "abort", "-queue", "10000")
	subscriber, publisher := dial(t, server.Addr), dial(t, server.Addr)
	servertest.Send(t, subscriber, "sub news\n")
	servertest.Expect(t, subscriber, "+ news\n")
	servertest.Send(t, publisher, "pub news it rains\npub weather it snows\npub news it pours\n")
	servertest.Expect(t, subscriber, "news it rains\nnews it pours\n")
	server.Stop(t)
	servertest.ExpectEOF(t, subscriber)
	require.NotContains(t, server.Said(), "failed")
	for _, wrong := range []string{"-slow=wait", "-queue=10"} {
		p := run(t, "publish", nil, wrong)
		require.Equal(t, 2, p.Exit(t))
	}
}
