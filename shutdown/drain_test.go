package shutdown_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/shutdown"
)

func TestWhatIsLeftIsALine(t *testing.T) {
	for says, left := range map[string]shutdown.Unfinished{
		"main.job, ready": {Kind: "main.job", Name: "main.job", State: "ready", Still: -1},
		"httpd: GET / of tcp 127.0.0.1:80, peer 127.0.0.1:5, still for 12s, waits for input from 127.0.0.1:5, a timer due in 3s": {
			Kind: "tcp 127.0.0.1:80", Name: "httpd: GET /", State: "waiting", Peer: "127.0.0.1:5",
			Waits: []string{"input from 127.0.0.1:5", "a timer due in 3s"}, Still: 12100 * time.Millisecond},
		"a closed connection of tcp 127.0.0.1:80, still for 2s, waits for its peer to close": {
			Kind: "closed connections", Name: "a closed connection of tcp 127.0.0.1:80", State: "closing",
			Waits: []string{"its peer to close"}, Still: 2 * time.Second},
		"a long name of k, still for 0s, waiting": {Kind: "k", Name: "a long\nname", State: "waiting"},
	} {
		require.Equal(t, says, left.String())
	}
}

func TestADrainIsALine(t *testing.T) {
	for says, drain := range map[string]shutdown.Drain{
		"ending for 0s, announced: 0 tasks; 0 tasks ended since the last report": {},
		"ending for 1.1s, spreading, for 12s more at most: 3 tasks, 2 lingering closes (3 × tcp 127.0.0.1:80); 1 task ended since the last report" +
			"; scheduler 1 does not answer; scheduler 3 does not answer; the oldest: j, ready": {
			Phase: shutdown.Spreading, For: 1101 * time.Millisecond, Bound: 12001 * time.Millisecond, Ended: 1, Silent: []int{1, 3},
			Cut: shutdown.Cut{Tasks: 3, Lingering: 2, Kinds: []shutdown.Count{{"tcp 127.0.0.1:80", 3}},
				Left: []shutdown.Unfinished{{Kind: "j", Name: "j", State: "ready", Still: -1}}}},
	} {
		require.Equal(t, says, drain.String())
	}
	require.Equal(t, "finishing Phase(9)", fmt.Sprint(shutdown.Finishing, shutdown.Phase(9)))
}

func TestACutKeepsTheOldestOfEachKind(t *testing.T) {
	all := &shutdown.Cut{}
	for i := range 40 {
		all.Add(&shutdown.Cut{Left: []shutdown.Unfinished{{Kind: "crowd", Still: time.Duration(i)}}})
	}
	all.Add(&shutdown.Cut{Left: []shutdown.Unfinished{{Kind: "job", Still: -1}}, Kinds: []shutdown.Count{{"job", 1}}})
	require.Len(t, all.Left, 16)
	require.Equal(t, []shutdown.Unfinished{{Kind: "crowd", Still: 39}, {Kind: "job", Still: -1}, {Kind: "crowd", Still: 38}}, all.Left[:3])
	require.Equal(t, []shutdown.Count{{"job", 1}}, all.Kinds)
}
